#!/usr/bin/env python3
"""Makes the virtual environment that has the rivals of codebook.fit: packages of PyPI, each in one version.

Every version has wheels for Python 3.11 (Debian 12) and 3.12 (Ubuntu 24.04), on x86-64 and ARM.
"""
import json
import subprocess
import sys

FOLDER = "codebook_peers"  # of the build
VERSIONS = {
    "faiss-cpu": "1.15.1",
    "scikit-learn": "1.9.1",
    "scipy": "1.17.1",  # has the matrix product of scikit-learn
    "numpy": "2.4.6",
    "threadpoolctl": "3.8.0",  # says which BLAS each of them has, and limits its threads
    "opencv-python-headless": "4.13.0.92",  # SIFT, for codebook_table.py
}
SECONDS_MAX = 900  # of a slow network: 81 MB, and 60 more for OpenCV
LOOK = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"


def has(python, names):
    try:
        done = subprocess.run([python, "-c", LOOK, *names], capture_output=True, text=True, timeout=60)
    except OSError:
        return False
    return done.returncode == 0 and json.loads(done.stdout) == {name: VERSIONS[name] for name in names}


def python_with(build, names, may_install=True):
    """(the environment's Python, which has these packages, and ""); or (None, the reason) if it cannot be made."""
    folder = build.resolve() / FOLDER
    python = folder / "bin" / "python"
    if has(python, names):
        return python, ""
    if not may_install:
        return None, "they are not installed"
    print(f"installing {', '.join(names)} into {folder}", file=sys.stderr)
    pinned = [f"{name}=={VERSIONS[name]}" for name in names]
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1",
               "--only-binary", ":all:"]
    steps = {  # a second venv over an unfinished one completes it
        "python3 -m venv failed (install python3-venv)": [sys.executable, "-m", "venv", folder],
        "pip could not install what is pinned": [python, *install, *pinned],
    }
    for action, command in steps.items():
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None, f"{action}: not done after {SECONDS_MAX} s"
        if done.returncode:
            said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            return None, f"{action}: {said[-1] if said else f'exit code {done.returncode}'}"
    return python, ""
