"""Each setting of the table in docs/folding.md, set by its name as a person sets it, changes what a fold does."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.session import Session
from agent.settings import Settings
from runtime.context.engine import ContextEngine
from tests.runtime.test_strategies_reached import read_step, talk
from tests.support.histories import put
from transcripts.records import Assistant, ToolCall, ToolResult, User

NOTES = "The logs were read one after the other; the plan was talked over and nothing is decided."
ROOT = Path(__file__).resolve().parents[2]


class Story:
    """A session under the settings of an environment, on the way to its first fold by `step`."""

    def __init__(self, folder: Path, step: Callable[[int], list], count: int, notes: Any = NOTES, **env: str) -> None:
        script = folder / "script.json"
        script.write_text(json.dumps([{"notes": notes}, {"text": "ok"}]))
        found = {"CONTEXT_WINDOW": "16000", "REFOLD_HOME": str(folder / "home"), "REFOLD_ENV_FILE": "", **env}
        settings = Settings.load({"model": f"scripted:{script}", "permission_mode": "yolo"}, found, folder)
        with Session.start(settings, cwd=folder, persist=False) as session:
            self.engine: ContextEngine = session.engine
            put(self.engine, [User("Find out why the service stalls. Never restart it.")])
            for n in range(count):
                put(self.engine, step(n))
            self.estimate, self.trigger = self.engine.estimate(), self.engine.policy.trigger
            self.fold = asyncio.run(self.engine.compact(session.model)).checkpoint

    @property
    def whole(self) -> list[str]:
        """Kinds of the messages that the fold leaves as they are."""
        fates = self.engine.fates()
        return [e.kind for e in self.engine.history.messages if fates[e.seq] == "shown"]

    def gone(self, reason: str) -> int:
        """How many messages left for this reason."""
        return sum(fate in (reason, f"left out: {reason}") for fate in self.engine.fates().values())


def paste(n: int) -> list:
    return [User("Here is everything:\n" + "some line of the paste\n" * 4_000), Assistant("I see. " * 2_500)]


def thought(n: int) -> list:
    return [Assistant(f"thought {n} about the plan " * 60)]


def huge_step(n: int) -> list:
    call = ToolCall(f"h{n}", "bash", '{"command": "make"}')
    text = "\n".join(f"target {n} part {i} is built" for i in range(210))
    return [Assistant("thinking " * 700, (call,)), ToolResult(call.id, "bash", text)]


def test_how_large_the_window_is(tmp_path):
    assert Story(tmp_path, read_step, 4, CONTEXT_WINDOW="9000").trigger == 7_200
    assert Story(tmp_path, read_step, 4, CONTEXT_WINDOW="90000").trigger == 72_000


def test_when_a_fold_begins(tmp_path):
    assert Story(tmp_path, read_step, 4, COMPRESSION_THRESHOLD="0.5").trigger == 8_000
    late = Story(tmp_path, read_step, 4, COMPRESSION_THRESHOLD="0.95", OUTPUT_RESERVE="4000")
    assert late.trigger == 12_000


def test_what_a_character_is_worth(tmp_path):
    few, many = (Story(tmp_path, read_step, 4, CHARS_PER_TOKEN=n).estimate for n in ("4", "2"))
    assert 1.8 < many / few < 2.2


def test_how_many_results_stay_whole(tmp_path):
    whole = [Story(tmp_path, read_step, 30, KEEP_LAST=n).whole.count("tool_result") for n in ("2", "5")]
    assert whole == [2, 5]


def test_how_long_a_stub_is(tmp_path):
    def longest(value: str) -> int:
        fold = Story(tmp_path, read_step, 24, MAX_RESULT_CHARS=value).fold
        assert fold is not None
        return max(len(re.sub(r"^\[.*?shows it\] ", "", text)) for text in fold.texts.values())

    assert [longest("200"), longest("40")] == [200, 40]


def test_how_many_steps_the_sliding_window_leaves(tmp_path):
    left = [Story(tmp_path, huge_step, 20, KEEP_TURNS=n, SUMMARISE="no").gone("sliding_window") for n in ("8", "3")]
    assert left == [2 * (20 - 8), 2 * (20 - 3)]


def test_what_truncation_cuts_down_to(tmp_path):
    folds = [Story(tmp_path, paste, 1, TOKEN_BUDGET=n).fold for n in ("0", "4000")]
    assert [fold is not None and fold.tokens_after <= 8_000 for fold in folds] == [True, True]
    long = [Story(tmp_path, thought, 30, TOKEN_BUDGET=n, KEEP_TURNS="30").fold for n in ("0", "5000")]
    assert long[0] is not None and long[1] is not None
    assert long[1].tokens_after < 5_000 < long[0].tokens_after


def test_how_many_of_the_newest_messages_are_left_alone(tmp_path):
    whole = [
        Story(tmp_path, thought, 30, MIN_KEEP=n, KEEP_TURNS="30", TOKEN_BUDGET="3500").whole.count("assistant")
        for n in ("1", "5")
    ]
    assert whole == [1, 5]


def test_how_many_rounds_stay_beside_the_notes(tmp_path):
    left = [
        Story(tmp_path, talk, 40, MIN_RETAIN_ROUNDS=n, KEEP_TURNS="1").whole.count("assistant") for n in ("30", "2")
    ]
    assert left[0] > left[1] == 1


def test_how_long_notes_may_take_and_whether_they_are_asked_for(tmp_path):
    slow = {"text": NOTES, "delay": 30}
    late = Story(tmp_path, talk, 40, notes=slow, SUMMARY_TIMEOUT="1").fold
    assert late is not None and (late.notes, late.notes_status) == ("", "no notes: timed out after 1 s")
    story = Story(tmp_path, talk, 40, SUMMARISE="false")
    assert story.fold is not None and (story.fold.notes, story.fold.notes_status) == ("", "")
    assert [e for e in story.engine.log.entries if e.kind == "request"] == []
    assert Story(tmp_path, talk, 40).fold.notes == NOTES  # type: ignore[union-attr]


def test_every_one_of_them_is_in_the_table_with_its_default():
    table = (ROOT / "docs/folding.md").read_text()
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| ([^|]+?) \|", table, re.MULTILINE))
    plain = Settings.load({}, {"REFOLD_HOME": "/nowhere", "REFOLD_ENV_FILE": ""}, ROOT)
    defaults = {name: getattr(plain, name.lower()) for name in rows}
    for name, default in defaults.items():
        if default is not None:
            assert str(default).lower() == rows[name].replace(":", " ").split()[0].lower() or default == float(
                rows[name].split()[0]
            ), name
    assert set(rows) >= {
        "CONTEXT_WINDOW", "COMPRESSION_THRESHOLD", "KEEP_LAST", "MAX_RESULT_CHARS", "KEEP_TURNS", "TOKEN_BUDGET",
        "MIN_KEEP", "MIN_RETAIN_ROUNDS", "SUMMARY_TIMEOUT", "CHARS_PER_TOKEN",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["KEEP_LAST", "MIN_KEEP"])
def test_by_its_name_for_one_run(name, tmp_path):
    """The same as `--set NAME=VALUE` and as REFOLD_NAME."""
    env = {"REFOLD_HOME": str(tmp_path), "REFOLD_ENV_FILE": "", f"REFOLD_{name}": "7"}
    assert getattr(Settings.load({}, env, tmp_path), name.lower()) == 7
