"""The quick reading of a command line gives what the parser gives, or leaves the line to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import main
from agent.cli.quick import mistyped, values_of
from agent.cli.table import COMMANDS, Command, Option, normalise


class Parsed(Exception):
    """Carries the values that the parser gave."""


def take(values: dict[str, Any]) -> int:
    raise Parsed(values)


def parsed(command: Command, words: list[str]) -> dict[str, Any] | None:
    """What the parser makes of the words; None where it refuses them."""
    import typer

    made = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    made.command("x")(main._function(command._replace(run=f"{__name__}:take")))
    try:
        made(args=words, standalone_mode=False)
    except Parsed as found:
        return found.args[0]
    except Exception:  # noqa: BLE001  # the parser's own refusals, of several kinds
        return None
    return None


TEXT = st.sampled_from(["word", "two words", "a=b", "", "-", "7", "0.5", "--", "-x", "--nosuch", "--cd", "é"])


@st.composite
def lines(draw: st.DrawFn) -> tuple[Command, list[str]]:
    """A command and words for it: mostly right, sometimes not."""
    command = draw(st.sampled_from(COMMANDS))
    words: list[str] = []
    for _ in range(draw(st.integers(0, 5))):
        option = draw(st.sampled_from([*command.options, None]))
        words += draw(TEXT.map(lambda t: [t])) if option is None else draw(written(option))
    return command, words


def written(option: Option) -> st.SearchStrategy[list[str]]:
    flags = st.sampled_from(option.flags)
    if option.kind is bool:
        return flags.map(lambda f: [f])
    value = {int: st.sampled_from(["3", "x"]), float: st.sampled_from(["2", "0.25", "x"])}.get(option.kind, TEXT)
    apart = st.tuples(flags, value).map(list)
    return apart | st.tuples(flags.filter(lambda f: f.startswith("--")), value).map(lambda p: [f"{p[0]}={p[1]}"])


@settings(deadline=None, max_examples=150)
@given(lines())
def test_what_is_read_quickly_is_read_as_the_parser_reads_it(line: tuple[Command, list[str]]) -> None:
    command, words = line
    quick = values_of(command, words)
    if quick is not None:
        assert quick == parsed(command, words)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fix", "it"],
        ["--model", "local", "-c"],
        ["-p", "hi", "--yolo"],
        ["-m", "scripted:x", "--resume"],
        ["--set=a=b"],
    ],
)
def test_everyday_lines_are_read_quickly(words: list[str]) -> None:
    command, *rest = normalise(words)
    chat = next(c for c in COMMANDS if c.name == command)
    values = values_of(chat, rest)
    assert values is not None
    assert values == parsed(chat, rest)


@pytest.mark.parametrize("words", [["--nosuch"], ["--model"], ["--max-turns", "x"], ["--yolo=1"], ["-mlocal"]])
def test_what_is_odd_is_left_to_the_parser(words: list[str]) -> None:
    assert values_of(COMMANDS[0], words) is None


@pytest.mark.parametrize(
    ("line", "meant", "prompt"),
    [
        ("session", "refold sessions", "refold -- session"),
        ("docter", "refold doctor", "refold -- docter"),
        ("Sesions --json", "refold sessions --json", "refold --json -- Sesions"),
        ("session rm x", "refold sessions rm x", "refold -- session rm x"),
        ("permission explain ls", "refold permissions explain ls", "refold -- permission explain ls"),
    ],
)
def test_a_slip_of_a_command_is_no_prompt(
    line: str, meant: str, prompt: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = line.split()
    said = f"refold: there is no command {words[0]!r}; did you mean `{meant}`? To send it as a prompt: `{prompt}`\n"
    assert main.run(words) == 2
    assert tuple(capsys.readouterr()) == ("", said)
    assert mistyped(prompt.split()[1:]) == mistyped([words[0], "-p"]) == ""


@pytest.mark.parametrize(
    "line", ["", "fix", "hello", "session is slow", "sessions", "version", "help", "--json", "- x", "demo.py", "héllo"]
)
def test_what_is_no_slip(line: str) -> None:
    assert mistyped(line.split()) == ""


@pytest.mark.parametrize(
    ("line", "typed"), [("--chek x", "refold"), ("chat --chek", "refold chat"), ("x --max-turns 0.5", "refold")]
)
def test_a_refusal_names_what_was_typed(line: str, typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"Usage: {typed} [OPTIONS] [PROMPT]...\nTry '{typed} --help' for help.\n\nrefold: ")
