"""refold doctor: whatever is broken becomes a finding, and the rest is examined all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import refold

ALWAYS = {"model", "sandbox", "rules", "trust", "mcp", "programs", "home"}
"""What is examined in every case."""


def findings(work: Path, home: Path, **env: str) -> tuple[int, set[str], list[str]]:
    """(exit code, what was examined, the lines of what is bad)."""
    settings = {"REFOLD_HOME": str(home), "REFOLD_ENV_FILE": "", "REFOLD_MODEL": "local", **env}
    done = refold("doctor", cwd=work, env=settings)
    assert done.stderr == ""
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    bad = [" ".join(line[2:].split()) for line in lines if line.startswith("!") and not line.startswith("! sandbox")]
    return done.returncode, {line.split()[1] for line in lines}, bad


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.toml", "keep_last = \n", "settings {path} cannot be read: Invalid value (at line 1, column 13)"),
        ("config.toml", 'keep_last = "x"\n', "settings keep_last must be a number, not 'x' (in {path})"),
        ("config.toml", None, "settings {path} cannot be read: it is a folder"),
        ("permissions.toml", None, "rules {path} cannot be read: it is a folder"),
        ("hooks.json", None, "hooks the hooks in {path} cannot be read: it is a folder"),
        ("mcp.json", None, "mcp {path} cannot be read: it is a folder"),
    ],
)
def test_a_broken_file_is_a_finding(tmp_path: Path, name: str, content: str | None, said: str) -> None:
    path = tmp_path / "home" / name
    path.parent.mkdir()
    path.mkdir() if content is None else path.write_text(content)
    code, examined, bad = findings(tmp_path, tmp_path / "home")
    assert (code, bad) == (1, [said.format(path=path)])
    assert examined >= ALWAYS - {said.split()[0]}


def test_a_broken_value_of_the_environment_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "some.env").write_bytes(b"\xff\xfe")
    env = {"CONTEXT_WINDOW": "many", "REFOLD_ENV_FILE": str(tmp_path / "some.env")}
    code, examined, bad = findings(tmp_path, tmp_path / "home", **env)
    assert (code, bad) == (1, [
        f"settings {tmp_path / 'some.env'} cannot be read: it is not UTF-8 text (byte 1)",
        "settings context_window must be a number, not 'many' (CONTEXT_WINDOW in the environment)",
    ])  # fmt: skip
    assert examined >= ALWAYS


def test_a_home_that_is_a_file_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    code, examined, bad = findings(tmp_path, tmp_path / "home")
    assert (code, bad[-1]) == (1, f"home {tmp_path / 'home'} cannot be written")
    assert examined >= ALWAYS


def test_a_broken_setting_does_not_keep_anybody_from_the_sessions(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("keep_last = \n")
    done = refold("sessions", cwd=tmp_path, env={"REFOLD_HOME": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
