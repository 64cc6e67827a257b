"""`refold replay`: the requests of a session, built again from its log."""

from __future__ import annotations

import json
import sys
from typing import Any

from agent.cli.common import told
from agent.cli.settings import folder_of
from agent.exits import Exit, Stop
from agent.faults import reason
from agent.replay import Rebuilt, rebuild, reworded_words, verify
from agent.settings import home_folder
from transcripts.catalog import NotFound, find_session
from transcripts.log import TranscriptLog, VersionError


def replay(values: dict[str, Any]) -> int:
    """Lists the requests of a session, prints one, or compares all with what was sent."""
    return told(lambda: _replay(values))


def _replay(values: dict[str, Any]) -> int:
    cwd = folder_of(values)
    home = home_folder(cwd)
    try:
        log = TranscriptLog.open(find_session(home, cwd, values["session"]), readonly=True)
    except (NotFound, VersionError) as error:
        raise Stop(Exit.USAGE, str(error)) from None
    except OSError as error:
        raise Stop(Exit.FAILED, f"the session {values['session']} cannot be read: {reason(error)}") from None
    try:
        if values["verify"]:
            return _verify(log)
        return _step(log, values["step"]) if values["step"] is not None else _list(log)
    finally:
        log.close()


def _verify(log: TranscriptLog) -> int:
    found = verify(log)
    print(f"{found.same:,} of {found.requests:,} requests come out as they were sent")
    if found.reworded:
        print(f"{found.reworded:,} {reworded_words(found.reworded)}")
    if not found.differences:
        return int(Exit.OK)
    print(f"first difference: {found.differences[0]}")
    return int(Exit.CHECK)


def _step(log: TranscriptLog, number: int) -> int:
    last = 0
    for one in rebuild(log):
        last = one.number
        if one.number == number:
            print(json.dumps(one.body, indent=1))
            if one.problem and not one.reworded:
                raise Stop(Exit.CHECK, f"this is not what was sent: {one.problem}")
            if one.reworded:
                print(f"refold: not byte for byte what was sent: {one.problem}", file=sys.stderr)
            return int(Exit.OK)
    raise Stop(Exit.USAGE, f"there is no request {number}; this session made {last}")


def _list(log: TranscriptLog) -> int:
    for one in rebuild(log):
        print(_row(one))
    return int(Exit.OK)


def _row(one: Rebuilt) -> str:
    request = one.request
    state = one.problem if one.reworded else f"DIFFERS: {one.problem}" if one.problem else "as sent"
    size = f"{request.messages:>5} messages  {request.estimate:>9,} tokens"
    return f"{one.number:>5}  #{one.entry.seq:<6} {one.entry.at[:19]}  {request.purpose:<8} {size}  {state}"
