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


def main() -> None:
    """Runs everything in turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {**os.environ, "REFOLD_HOME": str(folder / "home")}
        spans: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            for what, argv in commands(folder).items():
                start = time.perf_counter()
                subprocess.run(argv, cwd=folder, env=env, capture_output=True, check=True, stdin=subprocess.DEVNULL)
                spans.setdefault(what, []).append(time.perf_counter() - start)
    bare = median(spans["python -c pass"])
    print(f"{'':28}{'milliseconds':>13}{'times the bare interpreter':>28}")
    for what, found in spans.items():
        print(f"{what:28}{median(found) * 1_000:>13.0f}{median(found) / bare:>28.1f}")


if __name__ == "__main__":
    main()
