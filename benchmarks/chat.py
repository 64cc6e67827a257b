"""The chat, measured on a real pseudo-terminal: start-up, echo of a key while text streams, and a very long session.

    python benchmarks/chat.py            the first two
    python benchmarks/chat.py start      from the command to a prompt that takes keys (milliseconds, median of 15)
    python benchmarks/chat.py echo       from a key to its echo while 200 tokens a second stream (milliseconds)
    python benchmarks/chat.py long       2,000 turns with 20 MB of output: memory growth (MB), echo at start and end

The figures are wall clock; on a busy machine they say more about the machine (as root, `chrt -f 20 python ...` gives
the program its two cores back). Measured on 2 cores: start 180 ms, echo 4.5 ms (95 %: 14, worst 30).
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.screen import Terminal  # noqa: E402

PARAGRAPH = "The quick brown fox jumps over the lazy dog, and **then** it reads `main.py` again. "
TURNS, OUTPUT = 2_000, 10_000
"""Turns of the long session, and bytes of a command's output in each."""


@contextmanager
def chat(answers: Sequence[Any]) -> Iterator[Terminal]:
    """A chat with a scripted model in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.jsonl")
        script.write_text("\n".join(map(json.dumps, answers)))
        env = {**os.environ, "REFOLD_HOME": f"{folder}/home", "REFOLD_ENV_FILE": "", "TERM": "xterm-256color"}
        words = [sys.executable, str(ROOT / "main.py"), "--model", f"scripted:{script}", "--yolo"]
        with Terminal(words, columns=100, rows=40, env=env, cwd=Path(folder)) as terminal:
            yield terminal


def start(times: int = 15) -> None:
    """A key is sent at once; its echo ends the measurement."""
    taken: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        with chat([{"text": "x"}]) as terminal:
            terminal.type("x")
            terminal.wait("› x")
            taken.append((time.perf_counter() - began) * 1000)
    print(f"start: median {statistics.median(taken):.0f} ms, best {min(taken):.0f}, worst {max(taken):.0f}")


def echo() -> None:
    """Keys at random moments while a long answer streams: six tokens each 30 ms."""
    with chat([{"text": PARAGRAPH * 600, "stream_delay": 0.03}]) as terminal:
        terminal.wait("^yolo")
        terminal.type("go\r")
        terminal.wait("Esc stops")
        report("echo while streaming", echoes(terminal, 150))


def long() -> None:
    """One message a turn; each runs a command that prints much, and answers."""
    command = {"calls": [{"name": "bash", "arguments": {"command": f"head -c {OUTPUT} /dev/zero | tr '\\0' x | fold"}}]}
    with chat([step for n in range(TURNS + 1) for step in (command, {"text": f"Turn {n} is over."})]) as terminal:
        terminal.wait("^yolo")
        turn(terminal, 0)
        before, first = memory(terminal), echoes(terminal, 60)
        terminal.type("\x15")
        for n in range(1, TURNS + 1):
            turn(terminal, n)
            if n % 200 == 0:
                print(f"  turn {n}: {memory(terminal):.0f} MB", file=sys.stderr)
        report("echo at the start", first)
        report("echo at the end", echoes(terminal, 60))
        print(f"memory: {before:.0f} MB at the start, {memory(terminal) - before:+.0f} MB after {TURNS} turns")


def turn(terminal: Terminal, n: int) -> None:
    terminal.type("next\r")
    terminal.wait(f"Turn {n} is over", 60)


def echoes(terminal: Terminal, keys: int) -> list[float]:
    """Milliseconds from each of so many keys to its echo in the input line."""
    dice, typed, taken = random.Random(1), "", []
    for _ in range(keys):
        pause(terminal, dice.uniform(0.03, 0.08))
        letter = dice.choice("abcdefghijklmnopqrstuvwxyz")
        typed += letter
        began = time.perf_counter()
        terminal.type(letter)
        while last_line(terminal) != typed[-len(last_line(terminal)) :] or not last_line(terminal).endswith(letter):
            terminal.read(0.002)
            if time.perf_counter() - began > 2:
                raise AssertionError(f"no echo:\n{terminal.text()}")
        taken.append((time.perf_counter() - began) * 1000)
        if len(typed) > 60:
            typed = ""
            terminal.type("\x15")
            pause(terminal, 0.3)
    return taken


def last_line(terminal: Terminal) -> str:
    row = terminal.screen.buffer[terminal.screen.cursor.y]
    return "".join(row[x].data for x in range(2, terminal.screen.columns)).rstrip()


def pause(terminal: Terminal, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        terminal.read(0.005)


def memory(terminal: Terminal) -> float:
    """Resident memory of the program, in MB."""
    status = Path(f"/proc/{terminal.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def report(what: str, taken: list[float]) -> None:
    ordered = sorted(taken)
    at95 = ordered[int(0.95 * len(ordered))]
    print(f"{what}: median {statistics.median(ordered):.1f} ms, 95 % {at95:.1f}, worst {ordered[-1]:.1f}")


if __name__ == "__main__":
    for name in sys.argv[1:] or ["start", "echo"]:
        {"start": start, "echo": echo, "long": long}[name]()
