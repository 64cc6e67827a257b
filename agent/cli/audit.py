"""`refold audit`: what each answer could not see, and what it cost."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agent.audit.findings import Audit, audit
from agent.audit.svg import audit_svg
from agent.audit.text import audit_lines
from agent.cli.common import told
from agent.cli.settings import folder_of
from agent.exits import Exit, Stop
from agent.faults import reason
from agent.settings import home_folder
from transcripts.catalog import NotFound, find_session
from transcripts.lines import VersionError
from transcripts.log import TranscriptLog


def run(values: dict[str, Any]) -> int:
    """Audits one session. Opens its log for reading only, so it works while the session goes on."""
    return told(lambda: _run(values))


def _run(values: dict[str, Any]) -> None:
    found = _audited(values)
    if values["svg"]:
        path = Path(os.path.expanduser(values["svg"]))
        try:
            path.write_text(audit_svg(found), encoding="utf-8")
        except OSError as error:
            raise Stop(Exit.FAILED, f"The picture cannot be written to {path}: {reason(error, path)}") from None
    if values["json"]:
        print(json.dumps(asdict(found), ensure_ascii=False))
        return
    for line in audit_lines(found):
        print(line)
    if values["svg"]:
        print(f"\nThe picture is in {values['svg']}")


def _audited(values: dict[str, Any]) -> Audit:
    cwd = folder_of(values)
    home = home_folder(cwd)
    try:
        log = TranscriptLog.open(find_session(home, cwd, values["session"] or "latest"), readonly=True)
    except NotFound as error:
        raise Stop(Exit.USAGE, str(error)) from None
    except (VersionError, OSError) as error:
        raise Stop(Exit.FAILED, f"the session {values['session']} cannot be read: {reason(error)}") from None
    try:
        return audit(log)
    finally:
        log.close()
