#!/usr/bin/env python3
"""Fits 256 anchors to the same vectors in codebook.fit, FAISS and scikit-learn, in turns, and writes the times as JSON.

usage: codebook.py BUILD_FOLDER OUT_JSON [--rounds N] [--installed]      (--installed: fetches no package)
       codebook.py --worker PROGRAM VECTORS_NPY THREADS      (one fit of a rival; prints JSON)

Each round runs each program once, in a process of its own; the order turns by one from round to round. All do 31
iterations, as many as the published fit of these vectors has. The time of codebook.fit is that of its one tick, cold:
conversion of half precision, first anchors, 31 iterations. A rival is timed in train() or fit() alone, after a short fit
before; it has single precision and its first centroids, which are the first 256 vectors. Ratios are made within a round.

The OpenBLAS in FAISS's wheel is of 2021 and does not know newer processors: it falls back to kernels of 2004 there. So
FAISS is measured twice: with the newest kernels that the processor can run, named by OPENBLAS_CORETYPE, and as installed.
The ratio is to the former. Its threads also sleep while they wait (OMP_WAIT_POLICY). On two cores with nothing else to do
that made no difference in ten runs; beside one busy process two threads took 0.22 s, and 2 s if they spun.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import write_performance  # noqa: E402: found by the line above

from codebook_packages import python_with  # noqa: E402: the same
from compare import row, turned  # noqa: E402: the same

COUNT, DIMENSIONS, ANCHORS, ITERATIONS = 10_000, 128, 256, 31
WARM_UP_ITERATIONS = 3  # begin the threads and touch the memory
SECONDS_MAX = 120
PACKAGES = ["faiss-cpu", "scikit-learn", "scipy", "numpy", "threadpoolctl"]
OURS, FAISS, FAISS_AS_INSTALLED, SCIKIT_LEARN = "millrace", "FAISS", "FAISS, as installed", "scikit-learn"
PRODUCT = "numpy, the matrix product of one pass"


# ---- one fit of a rival, in its environment: only there are the packages that these functions import ---------------


def milliseconds(work):
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e3


def energy_of(vectors, anchors):
    """Mean squared distance to the nearest anchor."""
    import numpy
    vectors, anchors = vectors.astype(numpy.float64), numpy.asarray(anchors, numpy.float64)
    squares = (vectors ** 2).sum(1)[:, None] - 2 * vectors @ anchors.T + (anchors ** 2).sum(1)
    return float(squares.min(1).mean())


def blas_of(package):
    """The BLAS in this package's wheel, and the kernels that it chose."""
    import threadpoolctl
    for library in threadpoolctl.threadpool_info():
        if library["user_api"] == "blas" and f"/{package}.libs/" in library["filepath"]:
            name = library["internal_api"].replace("openblas", "OpenBLAS")
            return f"{name} {library['version']} (kernels: {library.get('architecture')})"
    return "a BLAS that does not say its name"


def fit_faiss(vectors, threads):
    import faiss
    faiss.omp_set_num_threads(threads)

    def prepared(iterations):
        return faiss.Kmeans(DIMENSIONS, ANCHORS, niter=iterations, nredo=1, max_points_per_centroid=COUNT,
                            min_points_per_centroid=1)
    prepared(WARM_UP_ITERATIONS).train(vectors, init_centroids=vectors[:ANCHORS])
    means = prepared(ITERATIONS)
    ms = milliseconds(lambda: means.train(vectors, init_centroids=vectors[:ANCHORS]))
    return {"ms": ms, "iterations": len(means.iteration_stats), "energy": energy_of(vectors, means.centroids),
            "words": f"FAISS {faiss.__version__} with {blas_of('faiss_cpu')}"}


def fit_scikit_learn(vectors, threads):
    import sklearn.cluster
    import threadpoolctl

    def prepared(iterations):
        return sklearn.cluster.KMeans(n_clusters=ANCHORS, init=vectors[:ANCHORS], n_init=1, max_iter=iterations, tol=0,
                                      algorithm="lloyd")
    with threadpoolctl.threadpool_limits(threads):
        prepared(WARM_UP_ITERATIONS).fit(vectors)
        means = prepared(ITERATIONS)
        ms = milliseconds(lambda: means.fit(vectors))
    return {"ms": ms, "iterations": means.n_iter_, "energy": energy_of(vectors, means.cluster_centers_),
            "words": f"scikit-learn {sklearn.__version__} with {blas_of('scipy')}"}


def multiply(vectors, threads):
    import numpy
    import threadpoolctl
    anchors = vectors[:ANCHORS].T.copy()
    with threadpoolctl.threadpool_limits(threads):
        for _ in range(WARM_UP_ITERATIONS):
            vectors @ anchors
        ms = milliseconds(lambda: vectors @ anchors)
    return {"ms": ms, "words": f"numpy {numpy.__version__} with {blas_of('numpy')}"}


WORKERS = {FAISS: fit_faiss, FAISS_AS_INSTALLED: fit_faiss, SCIKIT_LEARN: fit_scikit_learn, PRODUCT: multiply}


def work(program, vectors, threads):
    import numpy
    print(json.dumps(WORKERS[program](numpy.load(vectors).astype(numpy.float32), int(threads))))


# ---- the rounds ----------------------------------------------------------------------------------------------------


def called(command, environment=None):
    try:
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=SECONDS_MAX, env=environment,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{pathlib.Path(command[0]).name}: not done after {SECONDS_MAX} s") from None
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name}: exit code {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def fitted(build, vectors, threads, folder, settings, *more):
    """One run of codebook.fit over a file: its time in ms, and its records; `more` are edges of the pipeline."""
    report, records = folder / "report.json", folder / "iterations.jsonl"
    line = (f"tensor.from_npy name=v stacked=false path={vectors} ! "
            f"codebook.fit name=fit threads={threads} budget=60m {settings}  fit.iterations ! record.to_json path={records}")
    called([build / "millrace", "run", "  ".join([line, *more]), "--quiet", "--json", report])
    return json.loads(report.read_text())["handlers"]["fit"]["max_us"] / 1e3, json.loads(records.read_text())["records"]


def made_vectors(build, folder, name, settings):
    """The path of vectors that test.vectors gives."""
    called([build / "millrace", "run", f"test.vectors {settings} ! tensor.to_npy path={folder}/{name}-{{index}}.npy", "--quiet"])
    return folder / f"{name}-000000.npy"


def ours(build, vectors, threads):
    ms, records = fitted(build, vectors, threads, vectors.parent, f"m={ANCHORS}")
    return {"ms": ms, "iterations": len(records), "energy": records[-1]["energy"], "words": ""}


def kernels():
    """The newest kernels of OpenBLAS 0.3.15 that this processor can run, as OPENBLAS_CORETYPE names them; "": its choice."""
    found = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    flags = set(found[1].split()) if found else set()
    return "SkylakeX" if {"avx512dq", "avx512bw", "avx512vl"} <= flags else "Haswell" if {"avx2", "fma"} <= flags else ""


def theirs(python, program, vectors, threads):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "OPENBLAS_"))}
    if program == FAISS:
        environment["OMP_WAIT_POLICY"] = "passive"
        if kernels():
            environment["OPENBLAS_CORETYPE"] = kernels()
    told = json.loads(called([python, __file__, "--worker", program, vectors, threads], environment))
    return {"energy": None, "iterations": ITERATIONS} | told


def jobs_of(build, vectors, may_install, missing):
    """{(threads, program): its call}. A rival that cannot be called is named in `missing`."""
    jobs = {(threads, OURS): lambda threads=threads: ours(build, vectors, threads) for threads in (1, 2)}
    python, reason = python_with(build, PACKAGES, may_install)
    if not python:
        missing.append(f"FAISS, scikit-learn and numpy's matrix product are not measured: {reason}")
        return jobs
    as_installed = [(1, FAISS_AS_INSTALLED)] if kernels() else []
    for threads, program in (1, FAISS), (2, FAISS), *as_installed, (1, SCIKIT_LEARN), (1, PRODUCT):
        call = lambda threads=threads, program=program: theirs(python, program, vectors, threads)  # noqa: E731
        try:
            call()  # also reads its files from the disk
            jobs[threads, program] = call
        except RuntimeError as error:
            missing.append(f"{program} is not measured: {str(error).splitlines()[-1]}")
    return jobs


def measure(jobs, rounds):
    """{(threads, program): what each round gave}."""
    results = {key: [] for key in jobs}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for key in turned(list(jobs), number):
            told = jobs[key]()
            # scikit-learn has no way to go on once no label changes.
            if told["iterations"] != ITERATIONS and key[1] != SCIKIT_LEARN:
                sys.exit(f"{key[1]}: {told['iterations']} iterations instead of {ITERATIONS}")
            results[key].append(told)
    return results


def rows_of(results):
    def case(threads):
        return f"{COUNT:,} × {DIMENSIONS}, {threads} thread{'s' if threads > 1 else ''}"

    ms = {key: [told["ms"] for told in rounds] for key, rounds in results.items()}

    def ratio(metric, one, other):
        return row("fit", case(one[0]), OURS, metric, "ratio", [a / b for a, b in zip(ms[one], ms[other])])

    for (threads, program), times in sorted(ms.items(), key=lambda item: item[0][0]):
        yield row("fit", case(threads), program, "time", "ms", times)
    yield ratio("of_one_thread", (2, OURS), (1, OURS))
    if (1, FAISS) in ms:
        yield ratio("of_faiss", (1, OURS), (1, FAISS))
    for (threads, program), rounds in results.items():
        if threads == 1 and rounds[0]["energy"] is not None:
            yield row("fit", case(threads), program, "energy", "10⁻³", [told["energy"] * 1e3 for told in rounds])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--installed", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.build / "peers_codebook"
    folder.mkdir(exist_ok=True)
    vectors = made_vectors(arguments.build, folder, "waves", f"n={COUNT} d={DIMENSIONS}")
    missing = []
    results = measure(jobs_of(arguments.build, vectors, not arguments.installed, missing), arguments.rounds)
    for (_, program), rounds in results.items():
        fewest = min(told["iterations"] for told in rounds)
        if fewest < ITERATIONS:
            missing.append(f"{program} ended by itself after {fewest} iterations")
    words = list(dict.fromkeys(told["words"] for rounds in results.values() for told in rounds if told["words"]))
    result = {"date": datetime.date.today().isoformat(), "rounds": arguments.rounds, "load": os.getloadavg()[0],
              "machine": write_performance.machine(), "programs": words, "rows": list(rows_of(results)), "missing": missing}
    arguments.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    for line in result["rows"]:
        print(f"{line['case']:24} {line['program']:38} {line['metric']:14} {line['p50']:9.3f} {line['p99']:9.3f} {line['unit']}")
    for line in words:
        print(line)
    for line in missing:
        print(line, file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        sys.exit(work(*sys.argv[2:]))
    main()
