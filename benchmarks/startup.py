"""How long a command takes from the first byte to the last, against the bare interpreter.

Whole processes, taken in turns so that none has the warmer machine; the figure is the median.
Run: python benchmarks/startup.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 15


def commands(folder: Path) -> dict[str, list[str]]:
    """Name -> command line."""
    script = folder / "script.jsonl"
    script.write_text('{"text": "Four."}\n')
    main = [sys.executable, str(ROOT / "main.py")]
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "refold --version": [*main, "--version"],
        "refold --help": [*main, "--help"],
        "refold sessions": [*main, "sessions"],
        "refold -p, scripted model": [*main, "-p", "What is two and two?", "-m", f"scripted:{script}"],
        "python -c 'import openai'": [sys.executable, "-c", "import openai"],
    }


def run(argv: list[str], folder: Path, env: dict[str, str]) -> tuple[float, float]:
    """(wall, processor) seconds of a whole process. Raises CalledProcessError where it fails."""
    start = time.perf_counter()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(argv, cwd=folder, env=env, stdin=quiet, stdout=quiet, stderr=quiet)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return wall, used.ru_utime + used.ru_stime


def main() -> None:
    """Runs everything in turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env["REFOLD_HOME"] = str(folder / "home")
        spans: dict[str, list[tuple[float, float]]] = {}
        for number in range(ROUNDS + 1):
            for what, argv in commands(folder).items():
                span = run(argv, folder, env)
                if number:  # the first time modules are compiled
                    spans.setdefault(what, []).append(span)
    bare = median(cpu for _, cpu in spans["python -c pass"])
    print(f"{'milliseconds':28}{'wall':>8}{'processor':>12}{'times the bare interpreter':>28}")
    for what, found in spans.items():
        wall, cpu = median(w for w, _ in found), median(c for _, c in found)
        print(f"{what:28}{wall * 1_000:>8.0f}{cpu * 1_000:>12.0f}{cpu / bare:>28.1f}")


if __name__ == "__main__":
    main()
