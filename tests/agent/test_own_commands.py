"""Slash commands that are files: whose they are, what they send, and that a folder's do nothing untrusted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent.commands._own import commands_for, expanded
from agent.commands.base import load_commands
from agent.extend.front import FrontError, page_of
from agent.extend.prompts import Prompt
from tests.support.command import refold, script
from tests.support.extended import World
from tests.support.plain_face import PlainFace


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return World(tmp_path)


@pytest.mark.parametrize(
    ("body", "words", "sent"),
    [
        ("Look at $ARGUMENTS now.", "a b", "Look at a b now."),
        ("$1 then $2, not $3.", "'a b' c", "a b then c, not ."),
        ("Fix it.", "soon", "Fix it.\n\nsoon"),
        ("Fix it.", "", "Fix it."),
        ("It costs $100 and $1.", "much", "It costs $100 and much."),
        ("$1 $ARGUMENTS", "$2 $1", "$2 $2 $1"),
        ("$1", "it's", "it's"),
    ],
)
def test_arguments(body: str, words: str, sent: str) -> None:
    assert Prompt("x", "", "", body, "x.md", True).expand(words) == sent


@pytest.mark.parametrize(
    ("text", "head", "body"),
    [
        ("---\ndescription: Say it\nargument-hint: '[who]'\n---\nHello\n", ("Say it", "[who]"), "Hello"),
        ('\ufeff---\r\nDescription: "a: \\"b\\""\r\n---\r\nx\r\n', ('a: "b"', None), "x"),
        ("---\ndescription: >-\n  one\n  two\nallowed-tools:\n  - Bash\n---\nx", ("one two", None), "x"),
        ("No head.\n---\nhere", (None, None), "No head.\n---\nhere"),
    ],
)
def test_front_matter(text: str, head: tuple[str | None, str | None], body: str) -> None:
    page = page_of(text.encode())
    assert ((page.head.get("description"), page.head.get("argument-hint")), page.body) == (head, body)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"---\ndescription: x\n", "its front matter has no end (a line with --- only)"),
        (b"---\nwhat is this\n---\n", "its front matter has a line that is no `key: value`: what is this"),
        (b"\xff\xfe\x00", "it is not UTF-8 text"),
        (b"a\0b", "it is not text"),
    ],
)
def test_a_head_that_cannot_be_read(data: bytes, why: str) -> None:
    with pytest.raises(FrontError) as error:
        page_of(data)
    assert str(error.value) == why


def test_a_command_is_the_persons_message(world: World) -> None:
    world.put("~/commands/fix.md", "---\ndescription: Mend an issue\nargument-hint: NUMBER\n---\nMend issue $1.")
    world.put("~/commands/git/tidy.md", "Tidy up the branch.")
    with world.open() as talk:
        face = PlainFace(talk.session)
        found = {n: (c.summary, c.takes) for n, c in commands_for(talk.session).items() if c.own}
        asyncio.run(commands_for(talk.session)["fix"].run(face, "7"))
        asyncio.run(load_commands()["help"].run(face, ""))
        asyncio.run(load_commands()["help"].run(face, "fix"))
        said = talk.said
    assert found == {"fix": ("Mend an issue", "NUMBER"), "git:tidy": ("Tidy up the branch.", "")}
    assert said == ["Mend issue 7."]
    assert {"/fix NUMBER | Mend an issue", "/git:tidy | Tidy up the branch."} <= set(face.lines)
    assert face.lines[-1] == "**/fix** NUMBER\n\nMend an issue\n\nFrom ~/.refold/commands/fix.md"


def test_a_folders_commands_are_there_once_they_are_trusted(world: World) -> None:
    shared = world.put(".claude/commands/deploy.md", "Deploy to $1.")
    world.put(".refold/commands/deep/er.md", "Deeper.")
    with world.open() as talk:
        assert [c for c in commands_for(talk.session).values() if c.own] == []
        assert expanded(talk.session, "/deploy here") == "/deploy here"
        assert talk.session.notices == [
            "This folder brings along 2 files (command) that do nothing until you trust them: "
            "/trust, or `refold trust`."
        ]
    world.trust()
    with world.open() as talk:
        assert expanded(talk.session, "/deploy here") == "Deploy to here."
        assert expanded(talk.session, "/deep:er") == "Deeper."
        assert talk.session.notices == []
    shared.write_text("Delete everything.")
    with world.open() as talk:
        assert expanded(talk.session, "/deploy here") == "/deploy here"
        assert talk.session.notices == [
            "This folder brings along 1 file (command) that does nothing until you trust it again, "
            "for it has changed: /trust, or `refold trust`."
        ]


def test_a_name_that_is_taken_stays_what_it_is(world: World) -> None:
    world.put("~/commands/help.md", "Not the help.")
    world.put("~/commands/quit.md", "Not the end.")
    world.put("~/commands/mine.md", "Mine.")
    world.put(".refold/commands/mine.md", "Theirs.")
    world.trust()
    with world.open() as talk:
        assert (expanded(talk.session, "/help me"), expanded(talk.session, "/mine")) == ("/help me", "Mine.")
        commands_for(talk.session)
        assert talk.session.notices == [
            f"/mine is {world.own}/commands/mine.md; {world.ws}/.refold/commands/mine.md has the same name and is "
            "left out.",
            "/help is refold's own; ~/.refold/commands/help.md is left out.",
            "/quit is refold's own; ~/.refold/commands/quit.md is left out.",
        ]


def test_a_broken_file_is_one_line(world: World) -> None:
    world.put("~/commands/open.md", "---\ndescription: never closed\n")
    world.put("~/commands/two words.md", "x")
    world.put("~/commands/empty.md", "")
    with world.open() as talk:
        assert expanded(talk.session, "/open") == "/open"
        assert talk.session.notices == [
            f"{world.own}/commands/empty.md is no command: it has no text.",
            f"{world.own}/commands/open.md is no command: its front matter has no end (a line with --- only).",
            f"{world.own}/commands/two words.md is no command: a name is letters, digits, - and _.",
        ]


def test_bare_knows_none(world: World) -> None:
    world.put("~/commands/fix.md", "Mend it.")
    with world.open(bare=True) as talk:
        assert expanded(talk.session, "/fix") == "/fix"


def test_in_one_shot_mode(world: World) -> None:
    world.put("~/commands/fix.md", "Mend issue $1, see:\n$ARGUMENTS")
    world.put("~/commands/help.md", "x")
    model = script(world.ws / "s.jsonl", {"text": "ok"})
    env = {"REFOLD_HOME": str(world.own)}
    done = refold("-p", "/fix 7", "-m", model, cwd=world.ws, env=env, input="the log")
    shown = refold("sessions", "show", "latest", cwd=world.ws, env=env)
    refused = refold("-p", "/help 7", "-m", model, cwd=world.ws, env=env)
    unknown = refold("-p", "/etc/hosts is what?", "-m", model, "-q", cwd=world.ws, env=env)
    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert "you: Mend issue 7, see:\n7\n\n<stdin>\nthe log\n</stdin>" in shown.stdout
    assert (refused.returncode, "/help is refold's own; " in refused.stderr) == (0, True)
    assert (unknown.returncode, unknown.stderr) == (0, "")
