"""How long grep takes over many files, measured side by side with ripgrep itself.

python benchmarks/grep_speed.py [FILES]     prints, for each pattern, our best time, ripgrep's and the ratio
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools._search import ripgrep
from tools.base import Toolbox, ToolContext, load_tools

ROUNDS = 7
PATTERNS = ("needle here", "w17 w", "w1.* w2", "not there at all")


def fill(root: Path, files: int) -> None:
    """Files of 30 lines, a hundred a folder; one in five hundred has the needle."""
    random.seed(1)
    words = [f"w{n}" for n in range(3000)]
    for n in range(files):
        path = root / f"d{n // 100}" / f"f{n % 100}.py"
        path.parent.mkdir(exist_ok=True)
        lines = [" ".join(random.choices(words, k=8)) for _ in range(30)]
        path.write_text("\n".join([*lines, *(["needle here"] if n % 500 == 0 else []), ""]))


async def measure(root: Path) -> None:
    """Takes turns, so that both meet the same machine."""
    box = Toolbox(load_tools(["grep"]), ToolContext(root, root))
    for pattern in PATTERNS:
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            await box.run("grep", {"pattern": pattern})
            ours.append(time.perf_counter() - started)
            started = time.perf_counter()
            subprocess.run([ripgrep(), "-n", "-e", pattern, "."], cwd=root, stdout=subprocess.PIPE, check=False)
            theirs.append(time.perf_counter() - started)
        ratio = min(ours) / min(theirs)
        print(f"{pattern:20} ours {min(ours):.3f} s   ripgrep {min(theirs):.3f} s   ratio {ratio:.2f}")


def main() -> None:
    """Fills a folder and measures."""
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
        asyncio.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
