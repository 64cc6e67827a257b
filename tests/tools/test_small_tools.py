"""todo, recall, ask_user, and what every tool has in common."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools.base import DEFAULT, PATCH, SMALL, TASK, load_tools

TOOLS = load_tools()


def tokens(names) -> float:
    """A quarter of the characters of the compact schema."""
    return sum(len(json.dumps(TOOLS[n].spec(), ensure_ascii=False, separators=(",", ":"))) for n in names) / 4


def test_schemas_are_small():
    assert tokens((*DEFAULT, TASK)) <= 2500
    assert tokens((*PATCH, TASK)) <= 2500
    assert tokens([TASK]) <= 170
    assert tokens(SMALL) <= 700


def test_the_profiles_name_every_tool():
    assert set(DEFAULT) | set(PATCH) | set(SMALL) | {TASK} == set(TOOLS)


def test_what_each_tool_may_do():
    assert {name: tool.effect for name, tool in TOOLS.items()} == {
        "apply_patch": "write",
        "ask_user": "read",
        "bash": "execute",
        "edit": "write",
        "fetch": "execute",
        "glob": "read",
        "grep": "read",
        "jobs": "read",
        "read": "read",
        "recall": "read",
        "task": "execute",
        "todo": "read",
        "write": "write",
    }


@pytest.mark.parametrize("name", TOOLS)
def test_every_parameter_is_described(name):
    tool = TOOLS[name]
    assert 20 < len(tool.description) < 200
    assert (tool.writes is None, tool.preview is None) == ((tool.effect != "write"),) * 2
    for key, schema in tool.schema["properties"].items():
        assert schema["type"] in {"string", "integer", "boolean", "array"}
        assert "description" in schema or key in {"ignore_case"}


@pytest.mark.parametrize(
    ("name", "args", "path_key"),
    [
        ("read", {"file_path": "f", "limit": "1"}, ""),
        ("edit", {"filePath": "f", "oldString": "a", "newString": "b", "replaceAll": "true"}, ""),
        ("edit", {"file_path": "f", "old_string": "a", "new_string": "b"}, ""),
        ("edit", {"path": "f", "edits": '[{"old_string": "a", "new_string": "b"}]'}, ""),
        ("bash", {"cmd": "cat f"}, ""),
        ("write", {"file_path": "g", "contents": "x"}, ""),
    ],
)
def test_names_that_other_programs_use_are_understood(ws, name, args, path_key):
    ws.put("f", "a\n")
    assert ws.call(name, **args).ok


def test_a_wrong_argument_is_named(ws):
    assert ws.call("read", path="f", lines=3).text == "read: unknown argument lines. It takes: path, offset, limit."
    assert ws.call("bash").text == "bash: missing command. It takes: command, timeout, background, outside."
    assert ws.call("nothing").text.startswith("There is no tool 'nothing'. The tools are: apply_patch, ask_user, ")


def test_todo_replaces_the_list(ws):
    items = [{"text": "look  at\nit", "status": "done"}, {"text": "mend it", "status": "doing"}]
    out = ws.call("todo", items=items)
    assert out.text == "[x] look at it\n[>] mend it"
    kept = [{"text": "look at it", "status": "done"}, {"text": "mend it", "status": "doing"}]
    assert out.meta["todo"] == ws.ctx.state["todo"] == kept
    assert ws.call("todo", items=[]).text == "(the list is empty)" and ws.ctx.state["todo"] == []


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([{"text": "", "status": "done"}], "Every item needs a text."),
        ([{"text": "x", "status": "pending"}] * 51, "51 items are too many; 50 at most."),
        ([{"text": "x", "status": "soon"}], "must be one of pending, doing, done"),
        ([{"text": "x"}], "missing status"),
    ],
)
def test_a_bad_list_is_refused(ws, items, words):
    out = ws.call("todo", items=items)
    assert not out.ok and words in out.text and "todo" not in ws.ctx.state


def test_recall_asks_the_log(ws):
    assert ws.call("recall", id="r7").text == "Nothing can be recalled: this session keeps no log."
    asked = []

    def log(**args) -> str:
        asked.append(args)
        return "found"

    ws.ctx.recall = log
    assert ws.call("recall", id="r7", start=-3).text == "found"
    assert asked == [{"id": "r7", "query": "", "path": "", "start": 1, "count": 200}]
    assert ws.call("recall").text == "Say what to recall: an id, words (query) or a path."


def test_ask_user(ws):
    assert ws.call("ask_user", question="Which?").text == (
        "Nobody is there to answer. Decide yourself, and say at the end what you assumed."
    )

    async def ask(question, choices) -> str:
        return f"{question} {list(choices)}"

    ws.ctx.ask = ask
    out = ws.call("ask_user", question=" Which? ", choices=["a", " b", ""])
    assert out.text == "The person answered: Which? ['a', 'b']"
    assert ws.call("ask_user", question=" ").text == "The question is empty."


def test_the_page_about_tools_is_true():
    page = (Path(__file__).resolve().parents[2] / "docs" / "tools.md").read_text("utf-8")
    table = {
        m[1]: (m[2], m[3]) for m in re.finditer(r"^\| `(\w+)` \| (.*) \| (read|write|execute) \|$", page, re.MULTILINE)
    }
    assert table == {name: (arguments(tool.schema), tool.effect) for name, tool in TOOLS.items()}


def arguments(schema) -> str:
    defaults = {k: p.get("default") for k, p in schema["properties"].items()}
    said = {k: str(d).lower() if isinstance(d, bool) else d for k, d in defaults.items()}
    return ", ".join(f"`{k}`" if d is None else f"`{k}` = {d}" for k, d in said.items())
