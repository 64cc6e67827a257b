"""What has to be true of a one-shot answer: a command that passes, a schema that fits."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.exits import Exit
from agent.headless.guard import Guard
from agent.headless.outcome import Outcome
from tools._keeper import Keeper

SHOWN = 6_000
"""Characters of a failed check's output that go back to the model: its end, where the failure stands."""
BRIEF = 500
"""Characters of it for a small model."""


@dataclass(frozen=True)
class Problem:
    """Something that does not hold. `of`: check or schema; `message` is what the model is told, `brief` what a small
    model is told that begins anew, `why` what the person is told."""

    of: str
    code: Exit
    cause: str
    why: str
    message: str
    brief: str = ""


async def run_check(command: str, cwd: Path, guard: Guard, env: Mapping[str, str]) -> Problem | None:
    """Runs the command in bash; None where it exits 0 (or the run was stopped meanwhile)."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", command, cwd=cwd, env=dict(env), start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip

    def kill() -> None:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)

    guard.beside.append(kill)
    keeper = Keeper.of_group(process.pid)
    try:
        if guard.stopped is not None or guard.cut:
            kill()
        data, _ = await process.communicate()
    finally:
        guard.beside.remove(kill)
        kill()
        keeper.close()
    if process.returncode == 0:
        return None
    said = data.decode("utf-8", errors="replace").strip()
    shown = said if len(said) <= SHOWN else f"[{len(said) - SHOWN:,} characters left out]\n{said[-SHOWN:]}"
    words = (
        f"The check `{command}` must pass and does not: exit code {process.returncode}. Its output:\n{shown}\n"
        "Find the cause, mend it, and say when it is done. The check itself must not be changed."
    )
    why = f"the required check still fails: `{command}` exits {process.returncode}"
    brief = f"An earlier try is in the folder and `{command}` failed:\n{said[-BRIEF:]}"
    return Problem("check", Exit.CHECK, "check_failed", why, words, brief)


def load_schema(given: str) -> dict[str, Any]:
    """A JSON Schema from a file or, where it begins with a brace, from the words themselves. Raises ValueError."""
    text = given if given.lstrip().startswith("{") else Path(os.path.expanduser(given)).read_text(encoding="utf-8-sig")
    schema = json.loads(text)
    if not isinstance(schema, dict):
        raise ValueError("it is not a JSON object")
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        raise ValueError(error.message) from None
    return schema


def schema_words(schema: dict[str, Any]) -> str:
    """What the model is told about the form of its answer."""
    return (
        "\n\nYour final answer must be one JSON value that is valid against this JSON Schema, and nothing else "
        f"around it:\n{json.dumps(schema, ensure_ascii=False)}"
    )


def answer_problem(schema: dict[str, Any], outcome: Outcome) -> tuple[Problem | None, Outcome]:
    """What is wrong with an answer, or None and the outcome with its value as `structured`."""
    try:
        value = json_in(outcome.text)
    except ValueError:
        return _unfit("it is not JSON"), outcome
    from jsonschema.validators import validator_for

    error = next(iter(validator_for(schema)(schema).iter_errors(value)), None)
    if error is not None:
        where = "/".join(map(str, error.absolute_path))
        return _unfit(f"{error.message[:500]}{f' (at {where})' if where else ''}"), outcome
    return None, replace(outcome, structured=value)


def _unfit(what: str) -> Problem:
    words = f"Your answer does not fit the JSON Schema: {what}. Answer again with the JSON value alone."
    return Problem(
        "schema", Exit.FAILED, "json_schema", f"the answer does not fit the JSON schema: {what}", words, words
    )


def json_in(text: str) -> Any:
    """The JSON value an answer consists of; a code fence or a sentence around it is forgiven. Raises ValueError."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    decoder = json.JSONDecoder()
    for at, char in enumerate(text):
        if char in "{[":
            try:
                return decoder.raw_decode(text, at)[0]
            except ValueError:
                continue
    raise ValueError("no JSON value in it")
