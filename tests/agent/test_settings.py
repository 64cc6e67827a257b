"""Settings: which place wins, what is refused, and that each value knows where it came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.settings import Settings, SettingsError


def load(tmp_path: Path, flags: dict | None = None, **env: str) -> Settings:
    """Settings with a home of their own and no other environment."""
    return Settings.load(flags or {}, {"REFOLD_HOME": str(tmp_path), "REFOLD_ENV_FILE": "", **env})


def test_flags_stand_above_the_environment_above_the_config_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('model = "a:config"\nkeep_turns = 3\nkeep_last = 5\n')
    (tmp_path / "some.env").write_text("REFOLD_MODEL=a:file\nKEEP_LAST=4\n")
    env = {"REFOLD_MODEL": "a:environment", "REFOLD_ENV_FILE": str(tmp_path / "some.env")}
    found = load(tmp_path, {"model": "a:flag", "effort": None}, **env)
    assert (found.model, found.keep_last, found.keep_turns, found.min_keep) == ("a:flag", 4, 3, 4)
    assert [found.source(n) for n in ("model", "keep_last", "keep_turns", "min_keep")] == [
        "--model",
        f"KEEP_LAST in {tmp_path / 'some.env'}",
        f"in {tmp_path / 'config.toml'}",
        "default",
    ]
    assert load(tmp_path, **env).source("model") == "REFOLD_MODEL in the environment"


def test_the_env_file_of_the_home_is_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "OPENAI_API_KEY=k\nOPENAI_BASE_URL=http://127.0.0.1:1/v1\nREFOLD_MODEL=openai_chat:m\n"
    )
    found = Settings.load({}, {"REFOLD_HOME": str(tmp_path)})
    assert (found.api_key, found.base_url, found.source("api_key")) == (
        "k",
        "http://127.0.0.1:1/v1",
        f"OPENAI_API_KEY in {tmp_path / '.env'}",
    )


def test_our_own_name_stands_above_the_common_one(tmp_path: Path) -> None:
    assert load(tmp_path, CONTEXT_WINDOW="1000", REFOLD_CONTEXT_WINDOW="2_000").context_window == 2000


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"CONTEXT_WINDOW": "many"}, "context_window must be a number, not 'many' (CONTEXT_WINDOW in the environment)"),
        ({"CONTEXT_WINDOW": "12"}, "context_window must be at least 512"),
        ({"COMPRESSION_THRESHOLD": "1.5"}, "compression_threshold must be between 0.1 and 1"),
        ({"COMPRESSION_THRESHOLD": "nan"}, "compression_threshold must be a number"),
        ({"REFOLD_SUMMARISE": "perhaps"}, "summarise must be true or false"),
        ({"REFOLD_PERMISSION_MODE": "wild"}, "permission_mode must be one of plan, ask, edits, auto, yolo"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_source(env: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, **env)
    assert words in str(caught.value)


def test_a_broken_config_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("model = \n")
    with pytest.raises(SettingsError, match="config.toml cannot be read"):
        load(tmp_path)


def test_a_name_that_is_no_setting_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('modle = "a:b"\n')
    assert load(tmp_path).warnings == (f"{tmp_path / 'config.toml'}: there is no setting 'modle'",)


def test_a_key_alone_means_its_makers_model(tmp_path: Path) -> None:
    found = load(tmp_path, OPENAI_API_KEY="k")
    assert (found.model, found.source("model")) == (
        "openai_chat:gpt-5",
        "default, for there is OPENAI_API_KEY in the environment",
    )
    assert load(tmp_path, OPENAI_API_KEY="k", OPENAI_BASE_URL="http://127.0.0.1/v1").model == ""


def test_a_key_is_not_shown(tmp_path: Path) -> None:
    assert "sesame" not in repr(load(tmp_path, OPENAI_API_KEY="sesame"))
