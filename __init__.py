"""refold as a library: the engine of the command, embedded.

from refold import Plain, Session, Settings

in ordinary code:
    with Plain(Session.start(Settings.load(), cwd=Path("."))) as talk:
        for event in talk.send("What does this project do?"):
            ...

or async:
    session = Session.start(Settings.load({"model": "openai_chat:gpt-5"}), cwd=Path("."))
    async for event in session.send("What does this project do?"):
        ...
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.permissions import Approval, Verdict
    from agent.plain import Plain
    from agent.session import Session, SessionError
    from agent.settings import Settings, SettingsError
    from runtime import events
    from runtime.model import Model, ModelError

__all__ = [
    "Approval",
    "Model",
    "ModelError",
    "Plain",
    "Session",
    "SessionError",
    "Settings",
    "SettingsError",
    "Verdict",
    "events",
]

_HOME = os.path.dirname(os.path.realpath(__file__))
_PLACES = {
    "Approval": "agent.permissions",
    "Model": "runtime.model",
    "ModelError": "runtime.model",
    "Plain": "agent.plain",
    "Session": "agent.session",
    "SessionError": "agent.session",
    "Settings": "agent.settings",
    "SettingsError": "agent.settings",
    "Verdict": "agent.permissions",
    "events": "runtime.events",
}


def __getattr__(name: str) -> Any:
    """What is asked for is imported when it is asked for: `refold --version` passes here too.

    Inside, our packages have the names agent, runtime, tools and transcripts. A program that has loaded a package of
    its own by one of these names cannot embed refold, and is told so.
    """
    if name not in _PLACES:
        raise AttributeError(f"module 'refold' has no attribute {name!r}")
    for ours in ("agent", "runtime", "tools", "transcripts"):
        loaded = getattr(sys.modules.get(ours), "__file__", None)
        if loaded and not os.path.realpath(loaded).startswith(_HOME + os.sep):
            raise ImportError(f"refold has a package named {ours!r}, and so has this program: {loaded}")
    if _HOME not in sys.path:
        sys.path.insert(0, _HOME)
    module = importlib.import_module(_PLACES[name])
    return module if name == "events" else getattr(module, name)
