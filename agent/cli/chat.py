"""The body of `refold`: the chat in a terminal, one task where there is none."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from agent.cli.settings import open_settings, resumes
from agent.edges import INTERRUPTED, interruptible
from agent.exits import NO_MODEL, THREE_WAYS, Exit, Stop
from agent.settings import Settings, SettingsError

Values = dict[str, Any]


def chat(values: Values) -> int:
    """The chat; with --print, or where there is no terminal, one task. What the person must know before the chat can
    begin goes to stderr."""
    if values["print"] or not (os.isatty(0) and os.isatty(1)):
        return importlib.import_module("agent.cli.session").run(values)
    try:
        return _chat(values)
    except Stop as stop:
        code, why = stop.code, f"{stop.help}\nrefold: {stop.why}" if stop.help else stop.why
    except SettingsError as error:
        code, why = Exit.CONFIG, str(error)
    except KeyboardInterrupt:
        code, why = Exit.INTERRUPTED, INTERRUPTED
    if why:
        print(why if "\n" in why else f"refold: {why}", file=sys.stderr)
    return int(code)


def _chat(values: Values) -> int:
    settings, cwd = open_settings(values)
    choose = values["resume"] == "?"
    if settings.screen_reader or os.environ.get("TERM", "dumb") in ("", "dumb"):
        return _in_lines({**values, "resume": ""} if choose else values, settings, cwd)
    app = importlib.import_module("agent.terminal.app")
    start = app.Start(
        settings,
        cwd,
        lambda chosen, ref: _first({**values, "resume": ref or values["resume"]}, chosen, cwd),
        lambda chosen, **words: _another(chosen, cwd, **words),
        prompt=" ".join(values["prompt"]),
        choose=choose,
        resumes=resumes(values),
    )
    with interruptible():
        return app.chat(start)


def _in_lines(values: Values, settings: Settings, cwd: Path) -> int:
    """The chat on a terminal that has no cursor to move."""
    if not settings.model and not resumes(values):
        raise Stop(Exit.NO_MODEL, NO_MODEL, THREE_WAYS)
    session = _first(values, settings, cwd)
    linear = importlib.import_module("agent.terminal.linear")
    prompt = " ".join(values["prompt"])
    return linear.chat(settings, session, lambda **words: _another(settings, cwd, **words), dict(os.environ), prompt)


def _first(values: Values, settings: Settings, cwd: Path) -> Any:
    """The session of the command line. Raises Stop. The engine is imported here, behind the prompt."""
    return importlib.import_module("agent.cli.session").first_session(values, settings, cwd)


def _another(settings: Settings, cwd: Path, **words: Any) -> Any:
    """A session opened from within the chat: (resume, fork, name)."""
    return importlib.import_module("agent.session").Session.start(settings, cwd=cwd, **words)
