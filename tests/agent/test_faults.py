"""What this machine says of a failure, in words."""

from __future__ import annotations

import errno

import pytest

from agent.faults import reason


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            OSError(errno.ECONNREFUSED, "Connect call failed"),
            "nothing listens there (connection refused)",
        ),
        (OSError(errno.EHOSTUNREACH, "Connect call failed"), "that host cannot be reached"),
        (
            OSError(errno.ECONNREFUSED, "Connection refused"),
            "nothing listens there (connection refused)",
        ),
        (OSError(errno.ENOENT, "No such file or directory", "x"), "x: there is no such file or folder"),
        (OSError(errno.EINVAL, "it is no file", "x"), "x: it is no file"),
        (OSError(errno.ENOENT, "There is no weight of that name"), "there is no weight of that name"),
        (OSError("all is lost"), "all is lost"),
    ],
)
def test_words(error: OSError, words: str) -> None:
    assert reason(error) == words
