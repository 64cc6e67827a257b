"""`.refold/config.toml`: what a trusted folder may set, and that it is never more than the person allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.folder_settings import ALLOWED
from agent.settings import NAMES, Settings
from tests.support.command import refold, script
from tests.support.extended import World

FILE = ".refold/config.toml"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def load(world: World, env: dict[str, str] | None = None, **flags: Any) -> Settings:
    """The settings with nothing but what is named here."""
    return Settings.load(flags, {"REFOLD_HOME": str(world.own), "REFOLD_ENV_FILE": "", **(env or {})}, world.ws)


def test_the_order(world: World) -> None:
    world.put("~/config.toml", "keep_last = 1\nmin_keep = 1\nkeep_turns = 1\nmin_retain_rounds = 1\n")
    file = world.put(FILE, "keep_last = 2\nmin_keep = 2\nkeep_turns = 2\n")
    world.trust()
    found = load(world, {"MIN_KEEP": "3", "KEEP_TURNS": "3"}, keep_turns="4")
    names = ("keep_last", "min_keep", "keep_turns", "min_retain_rounds")
    assert {n: (getattr(found, n), found.source(n)) for n in names} == {
        "min_retain_rounds": (1, f"in {world.own}/config.toml"),
        "keep_last": (2, f"in {file}"),
        "min_keep": (3, "MIN_KEEP in the environment"),
        "keep_turns": (4, "--set keep_turns"),
    }
    assert found.warnings == ()


def test_it_counts_in_every_folder_of_the_workspace(world: World) -> None:
    (world.ws / ".git").mkdir()
    (world.ws / "deep" / "er").mkdir(parents=True)
    world.put(FILE, "keep_last = 7\n")
    world.put("deep/er/.refold/config.toml", "keep_last = 8\n")
    world.trust()
    found = Settings.load({}, {"REFOLD_HOME": str(world.own), "REFOLD_ENV_FILE": ""}, world.ws / "deep" / "er")
    assert found.keep_last == 7


def test_untrusted_or_changed_it_does_nothing(world: World) -> None:
    plain = load(world)
    file = world.put(FILE, "keep_last = 7\n")
    assert (load(world), load(world).warnings) == (plain, ())
    world.trust()
    assert load(world).keep_last == 7
    assert load(world, bare=True).keep_last == 2
    file.write_text("keep_last = 8\n")
    assert (load(world).keep_last, load(world).warnings) == (2, ())


VALUES = {"theme": "dark", "colors": "accent=red", "editing": "vi"}


@pytest.mark.parametrize("name", sorted({*NAMES, "home", "add_dirs", "allow", "deny", "system_prompt"} - ALLOWED))
def test_what_is_not_listed_is_left_out_and_named(world: World, name: str) -> None:
    plain = load(world)
    file = world.put(FILE, f"{name} = '{VALUES.get(name, '1')}'\nkeep_last = 7\n")
    world.trust()
    found = load(world)
    assert found.keep_last == 7
    assert {n for n in vars(plain) if getattr(plain, n) != getattr(found, n)} == {"keep_last", "sources", "warnings"}
    assert found.warnings == (f"{file}: what a folder cannot set, or not to this value, is left out: {name}",)


@pytest.mark.parametrize(
    ("mine", "theirs", "counts"),
    [
        ("", "plan", "plan"),
        ("", "ask", "ask"),
        ("", "edits", ""),
        ("", "auto", ""),
        ("edits", "ask", "ask"),
        ("edits", "auto", "edits"),
        ("auto", "yolo", "auto"),
        ("yolo", "auto", "auto"),
        ("plan", "ask", "plan"),
    ],
)
def test_a_mode_only_gets_stricter(world: World, mine: str, theirs: str, counts: str) -> None:
    if mine:
        world.put("~/config.toml", f"permission_mode = '{mine}'\n")
    world.put(FILE, f"permission_mode = '{theirs}'\n")
    world.trust()
    found = load(world)
    assert (found.permission_mode, len(found.warnings)) == (counts, counts != theirs)
    assert load(world, permission_mode="yolo").permission_mode == "yolo"


@pytest.mark.parametrize(
    ("mine", "theirs", "counts"),
    [
        ("openai_chat:gpt-5", "openai_chat:gpt-5-mini", "openai_chat:gpt-5-mini"),
        ("openai_chat:gpt-5", "openai_responses:gpt-5", "openai_chat:gpt-5"),
        ("openai_chat:gpt-5", "scripted:x.jsonl", "openai_chat:gpt-5"),
        ("local", "openai_chat:gpt-5", "local"),
        ("local", "local:other.gguf", "local"),
        ("", "openai_chat:gpt-5", ""),
    ],
)
def test_a_model_only_of_the_same_provider(world: World, mine: str, theirs: str, counts: str) -> None:
    """Another provider would be sent the conversation."""
    if mine:
        world.put("~/config.toml", f"model = '{mine}'\n")
    world.put(FILE, f"model = '{theirs}'\n")
    world.trust()
    assert (load(world).model, len(load(world).warnings)) == (counts, counts != theirs)


@pytest.mark.parametrize(("mine", "theirs", "counts"), [(0, 20, 20), (0, 200, 100), (30, 31, 30), (30, 20, 20)])
def test_a_turn_only_gets_shorter(world: World, mine: int, theirs: int, counts: int) -> None:
    if mine:
        world.put("~/config.toml", f"max_steps = {mine}\n")
    world.put(FILE, f"max_steps = {theirs}\n")
    world.trust()
    assert (load(world).max_steps, len(load(world).warnings)) == (counts, counts != theirs)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("keep_last = ", "cannot be read, so none of it counts: Invalid value (at end of document)"),
        ("keep_last = 'x'\n", None),
        ("keep_last = [2]\n", None),
    ],
)
def test_a_broken_file_is_one_line(world: World, text: str, words: str | None) -> None:
    file = world.put(FILE, text)
    world.trust()
    found = load(world)
    assert (found.keep_last, len(found.warnings)) == (2, 1)
    if words:
        assert found.warnings == (f"{file} {words}",)


def test_it_is_told_once_in_a_session(world: World) -> None:
    file = world.put(FILE, "base_url = 'http://evil.example'\nmax_steps = 1\n")
    model = script(world.own / "s.jsonl", {"calls": [{"name": "todo", "arguments": {"items": []}}]}, {"text": "ok"})
    env = {"REFOLD_HOME": str(world.own)}
    before = refold("-p", "go", "-m", model, cwd=world.ws, env=env)
    world.trust()
    after = refold("-p", "go", "-m", model, cwd=world.ws, env=env)
    assert (before.returncode, after.returncode) == (0, 4)
    assert "This folder brings along 1 file (configuration) that does nothing" in before.stderr
    assert after.stderr.count(f"{file}: what a folder cannot set, or not to this value, is left out: base_url") == 1
