#!/usr/bin/env python3
"""Prints a table of the energies that codebook.fit reaches, by maintenance and beside plain k-means, on five sets of vectors.

usage: codebook_table.py BUILD_FOLDER

Every fit chooses its first anchors farthest-first, so all of one set with as many anchors begin alike. Lloyd's k-means is
the handler with T and rate so that α is 1 to a millionth, plain means, no momentum, and no limit of a step. Energies are
mean squared distances between vectors and the anchors of their labels, summed here in double precision; those of
fits without a last step are compared with the handler's own. Runs itself in the environment of codebook_packages.py,
which has NumPy, and OpenCV for SIFT.
"""
import argparse
import os
import pathlib
import sys
import time

from codebook import fitted, made_vectors
from codebook_packages import python_with

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ["numpy", "opencv-python-headless"]
FILM = ROOT / "media" / "vtest.avi"
PICTURES_APART, DESCRIPTORS_MAX, ROWS = 9, 600, 20_000
# name: (settings of test.vectors, or None for SIFT; anchors)
SETS = {
    "waves, 300 × 64": ("n=300 d=64", 10),
    "waves, 10,000 × 128": ("n=10000 d=128", 256),
    "mixture of 64, 3,000 × 64": ("data=mixture n=3000 d=64 centers=64 spread=1.5", 64),
    "mixture of 200, 5,000 × 32": ("data=mixture n=5000 d=32 centers=200 spread=0.5", 128),
    "SIFT, 20,000 × 128": (None, 256),
}
LLOYD = "rate=1 momentum=0 step_max=65504 temperature=1000000 cooling_rate=0 mean=plain iterations=200 last_step=true"
LAST_STEP = "mean=plain last_step=true"
ERROR_MAX = 1e-6  # relative, between the handler's energy and ours


def written_sift(path):
    """Descriptors of every ninth picture of a film: the first 20,000, in half precision, which has all their whole numbers."""
    import cv2
    import numpy
    cv2.setNumThreads(1)
    film, sift, rows, number = cv2.VideoCapture(str(FILM)), cv2.SIFT_create(nfeatures=DESCRIPTORS_MAX), [], 0
    while sum(map(len, rows)) < ROWS:
        is_read, picture = film.read()
        if not is_read:
            sys.exit(f"{FILM} ends after {sum(map(len, rows))} descriptors; ./dev setup lays it out")
        if number % PICTURES_APART == 0:
            found = sift.detectAndCompute(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), None)[1]
            rows.append(found[:DESCRIPTORS_MAX])
        number += 1
    numpy.save(path, numpy.concatenate(rows)[:ROWS].astype(numpy.float16))
    return path


def energy_of(vectors, anchors, labels):
    """The vectors are those of one file, the anchors and labels those of one tick."""
    import numpy
    apart = vectors.astype(numpy.float64) - anchors.astype(numpy.float64)[labels]
    return float((apart ** 2).sum(1).mean())


def fit(build, folder, vectors, settings):
    """One row of the table, without its names; and the number of anchors."""
    import numpy
    codebook, labels = folder / "codebook.npy", folder / "labels.npy"
    ms, records = fitted(build, vectors, 1, folder, settings, f"fit.codebook ! tensor.to_npy path={codebook}",
                         f"fit.labels ! tensor.to_npy path={labels}")
    # tensor.to_npy stacks ticks, and there is one.
    energy, last = energy_of(numpy.load(vectors), numpy.load(codebook)[0], numpy.load(labels)[0]), records[-1]
    if "last_step=true" not in settings and abs(energy - last["energy"]) > ERROR_MAX * energy:
        sys.exit(f"{settings}: the energy is {energy}, and the handler says {last['energy']}")
    anchors = f"{last['anchors']}" + (f" ({last['empty']} empty)" if last["empty"] else "")
    ended = "" if last["converged"] else ", not calm"
    return f"{energy:.7g} | {anchors} | {len(records)}{ended} | {ms / 1e3:.3f}", last["anchors"]


def rows_of(build, folder):
    for name, (data, anchors) in SETS.items():
        vectors = made_vectors(build, folder, "table", data) if data else written_sift(folder / "sift.npy")

        def line(fit_name, settings, m=anchors):
            row, at_end = fit(build, folder, vectors, f"m={m} {settings}")
            return f"| {name} | {m} | {fit_name} | {row} |", at_end
        yield line("maintenance: none", "maintenance=none")[0]
        published, at_end = line("maintenance: as_published", "maintenance=as_published")
        yield published
        yield line("maintenance: corrected", "maintenance=corrected")[0]
        if at_end != anchors:
            yield line("maintenance: corrected, as many anchors as as_published", "maintenance=corrected", at_end)[0]
        yield line("annealed, plain means, last_step", LAST_STEP)[0]
        yield line("Lloyd", LLOYD)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    arguments = parser.parse_args()
    python, reason = python_with(arguments.build, PACKAGES)
    if not python:
        sys.exit(reason)
    if pathlib.Path(sys.prefix) != python.parents[1]:
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    begun = time.monotonic()
    folder = arguments.build / "peers_codebook"
    folder.mkdir(exist_ok=True)
    print("| vectors | m | fit | energy | anchors at the end | iterations | s, one thread |\n|---|---|---|---|---|---|---|")
    for line in rows_of(arguments.build, folder):
        print(line, flush=True)
    print(f"{time.monotonic() - begun:.0f} s, load average {os.getloadavg()[0]:.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
