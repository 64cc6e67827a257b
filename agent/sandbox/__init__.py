"""The sandbox: commands run where they can change the workspace and nothing else, see no keys and reach no network."""

from agent.sandbox.doors import Doors
from agent.sandbox.env import child_env, hide_own_memory
from agent.sandbox.ladder import NONE, RUNGS, Rung, RungReport, Sandbox, SandboxError, reports

__all__ = [
    "NONE", "RUNGS", "Doors", "Rung", "RungReport", "Sandbox", "SandboxError", "child_env", "hide_own_memory",
    "reports",
]  # fmt: skip
