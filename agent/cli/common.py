"""What the smaller commands share: how a refusal is told."""

from __future__ import annotations

import sys
from collections.abc import Callable

from agent.edges import CLOSED, INTERRUPTED, silence
from agent.exits import Exit, Stop
from agent.faults import reason, refused
from agent.settings import SettingsError
from runtime.model import ModelError


def told(body: Callable[[], int | None]) -> int:
    """Runs a command's body; what the person must know is one sentence on stderr and an exit code."""
    try:
        return int(body() or 0)
    except Stop as stop:
        code, why = stop.code, f"{stop.help}\n{stop.why}" if stop.help else stop.why
    except SettingsError as error:
        code, why = Exit.CONFIG, str(error)
    except ModelError as error:
        code, why = Exit.FAILED, error.message
    except KeyboardInterrupt:
        code, why = Exit.INTERRUPTED, INTERRUPTED
    except BrokenPipeError:
        silence(1)
        code, why = Exit.FAILED, CLOSED
    except Exception as error:
        if not refused(error):
            raise
        code, why = Exit.FAILED, reason(error)
    print(f"refold: {why}", file=sys.stderr)
    return int(code)
