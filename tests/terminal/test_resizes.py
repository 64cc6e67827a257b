"""A terminal that gets lower and higher again, as tmux does it: what is pushed out at the top comes back."""

from __future__ import annotations

import re
from pathlib import Path

import pyte

from tests.support.processes import within
from tests.support.screen import Terminal
from tests.terminal.conftest import environment

LONG = {"text": " ".join(f"w{n}" for n in range(4000)), "stream_delay": 0.01}


class Tmux(pyte.HistoryScreen):
    """Lines below the cursor go first, then those at the top, into the history; a higher screen takes them back."""

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        assert lines is not None
        assert columns == self.columns
        rows = [self.buffer[y] for y in range(self.lines)]
        push = max(0, self.cursor.y + 1 - lines)
        self.history.top.extend(rows[:push])
        rows = rows[push : push + lines]
        pull = min(max(0, lines - self.lines), len(self.history.top))
        rows = [*(self.history.top.pop() for _ in range(pull))][::-1] + rows
        self.buffer.clear()
        self.buffer.update(enumerate(rows))
        self.cursor.y += pull - push
        self.lines = lines
        self.set_margins()


def test_lower_and_higher_again_leaves_nothing_of_the_live_lines(home: Path, work: Path, words) -> None:
    env = environment(home, TMUX="/tmp/tmux-0/default,1,0")
    with Terminal(words([{"text": "answer"}]), columns=60, rows=36, env=env, cwd=work, screen=Tmux) as terminal:
        terminal.wait("^ask")
        terminal.type("go\r")
        terminal.wait("^answer")
        terminal.type("\n".join(f"row {n}" for n in range(11)))
        terminal.wait("row 10$")
        before = terminal.scrollback()
        for rows in (7, 36, 9, 20, 6, 36):
            resized(terminal, 60, rows)
            terminal.wait("row 10$")
        assert terminal.scrollback() == before


def test_the_live_lines_take_a_third_of_the_screen(home: Path, work: Path, words) -> None:
    with Terminal(words([LONG]), columns=60, rows=24, env=environment(home), cwd=work) as terminal:
        terminal.wait("^ask")
        terminal.type("go\r")
        terminal.wait("w300 ")
        assert len(re.findall(r"^w\d+ ", terminal.text(), re.M)) <= 8


def resized(terminal: Terminal, columns: int, rows: int) -> None:
    """Another size, and what is drawn for it: a person looks at each."""
    before = len(terminal.raw)
    terminal.resize(columns, rows)
    within(5, lambda: terminal.read(0.02) and len(terminal.raw) > before)
    terminal.settle(0.3)


def test_a_question_stands_once_however_often_the_size_changes(home: Path, work: Path, words) -> None:
    touch = {"calls": [{"name": "bash", "arguments": {"command": "touch ran"}}]}
    env = environment(home, TMUX="/tmp/tmux-0/default,1,0")
    with Terminal(words([touch, {"text": "over"}]), columns=80, rows=30, env=env, cwd=work, screen=Tmux) as terminal:
        terminal.wait("^ask")
        terminal.type("/mode\r")
        terminal.wait("What may run unasked")
        for rows in (9, 30, 5, 30):
            resized(terminal, 80, rows)
        assert terminal.scrollback().count("What may run unasked") == 1
        terminal.type("\x1b")
        terminal.wait("^›$")
        terminal.type("go\r")
        terminal.wait("Run this command")
        for rows in (9, 30, 5, 12, 30):
            resized(terminal, 80, rows)
        assert terminal.scrollback().count("Run this command") == 1
        terminal.type("y")
        terminal.wait("^over")
        assert (work / "ran").exists()
