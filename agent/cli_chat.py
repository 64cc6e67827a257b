"""The body of `refold` in a terminal: words of the command line -> settings, session, chat, exit code."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from agent.cli_session import open_session, open_settings, resumes
from agent.exits import NO_MODEL, Exit, Stop
from agent.headless import failed
from agent.session import Session, SessionError
from agent.settings import Settings, SettingsError
from agent.terminal import app
from runtime.model import ModelError

Values = dict[str, Any]


def chat(values: Values) -> int:
    """Talks until the person leaves. What they must know before it can begin goes to stderr."""
    try:
        return _chat(values)
    except Stop as stop:
        code, why = stop.code, stop.why
    except SettingsError as error:
        code, why = Exit.CONFIG, str(error)
    except SessionError as error:
        code, why = Exit.USAGE, str(error)
    except ModelError as error:
        code, why = failed(error).code, error.message
    print(why if "\n" in why else f"refold: {why}", file=sys.stderr)
    return int(code)


def _chat(values: Values) -> int:
    settings, cwd = open_settings(values)
    if not settings.model and not resumes(values):
        raise Stop(Exit.NO_MODEL, NO_MODEL)
    session = open_session(values, settings, cwd)
    return app.chat(settings, session, partial(_another, settings, cwd), prompt=" ".join(values["prompt"]))


def _another(settings: Settings, cwd: Path, *, resume: str = "", fork: bool = False, name: str = "") -> Session:
    """A session opened from within the chat."""
    return Session.start(settings, cwd=cwd, resume=resume, fork=fork, name=name)
