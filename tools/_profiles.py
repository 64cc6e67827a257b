"""Which tools a model is given, by name and in this order."""

from __future__ import annotations

DEFAULT = ("read", "write", "edit", "bash", "grep", "glob", "todo", "recall", "ask_user", "fetch", "jobs")
"""At most 2,500 tokens of schema, a test keeps it."""

PATCH = ("read", "apply_patch", "write", "bash", "grep", "glob", "todo", "recall", "ask_user", "fetch", "jobs")
"""For models that were trained on apply_patch (gpt-5 and its kin)."""

SMALL = ("read", "write", "edit", "bash")
"""For small local models: at most 700 tokens of schema. Searching is left to bash."""
