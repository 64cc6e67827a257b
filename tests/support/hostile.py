"""Runs an installed `refold` in a folder that has packages of its own by our names, with PYTHONPATH=. set.

    python hostile.py /path/to/refold FOLDER

Exits 1 where the folder's code was imported or the task was not done. A script, because it is about the installed
command; tests/test_packaging.py runs it over an editable install.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

NAMES = ("agent", "tools", "runtime", "transcripts")
TRAP = "import pathlib\npathlib.Path({marker!r}).write_text(__name__)\nraise SystemExit('the folder was imported')\n"


def lay(folder: Path) -> Path:
    """Makes the folder; gives the marker that its code would write."""
    marker = folder / "imported"
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        for module in ("__init__", "base", "settings", "loop", "cli", "version", "session", "records"):
            (folder / name / f"{module}.py").write_text(TRAP.format(marker=str(marker)))
    (folder / "main.py").write_text(TRAP.format(marker=str(marker)))
    return marker


def check(command: str, folder: Path) -> str:
    """ "" where the command did its task with its own code; else what went wrong."""
    marker = lay(folder)
    answers = [
        {"text": "I write it.", "calls": [{"name": "write", "arguments": {"path": "hello.txt", "content": "hello\n"}}]},
        {"text": "Done: hello.txt is there."},
    ]
    script = folder / "answers.jsonl"
    script.write_text("".join(json.dumps(a) + "\n" for a in answers))
    env = {**os.environ, "PYTHONPATH": ".", "REFOLD_HOME": str(folder / "home"), "REFOLD_ENV_FILE": ""}
    words = [command, "-p", "Write hello.txt", "--model", f"scripted:{script}", "--yolo"]
    done = subprocess.run(
        words, cwd=folder, env=env, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    if marker.exists():
        return f"the folder's {marker.read_text()} was imported"
    if done.returncode != 0 or done.stdout != "Done: hello.txt is there.\n":
        return f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    if (folder / "hello.txt").read_text() != "hello\n":
        return "hello.txt is not what was asked for"
    return ""


if __name__ == "__main__":
    problem = check(sys.argv[1], Path(sys.argv[2]))
    print(problem or "the installed command ran its own code")
    sys.exit(bool(problem))
