"""What the person decided, and where: flags > environment > .env > trusted folder > user config > defaults; each value
knows its source.

Two files named .env are read, the checkout's (beside main.py) and ~/.refold/.env, never the one of the folder being
worked on: a cloned repository must not be able to choose where a conversation is sent.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from agent.faults import reason
from agent.folder_settings import FolderSettings, of_folder, too_loose

T = TypeVar("T")

CHECKOUT = Path(__file__).resolve().parent.parent
"""The folder of main.py: a checkout, or refold's own folder where it is installed."""

PERMISSION_MODES = ("plan", "ask", "edits", "auto", "yolo")


class SettingsError(Exception):
    """A value that cannot be used; the message names the value, its source and what would do."""


def setting(
    default: Any,
    doc: str,
    *,
    env: tuple[str, ...] = (),
    low: float | None = None,
    high: float | None = None,
    secret: bool = False,
) -> Any:
    """A field with its help, the environment names that set it besides REFOLD_<NAME>, and its bounds."""
    return field(default=default, repr=not secret, metadata={"doc": doc, "env": env, "low": low, "high": high})


@dataclass(frozen=True)
class Settings:
    """All settings of one session, checked. `sources` tells where each value that is no default came from."""

    model: str = setting("", "provider:model, such as openai_chat:gpt-5, local or scripted:FILE")
    api_key: str = setting("", "key for the provider", env=("OPENAI_API_KEY",), secret=True)
    base_url: str = setting("", "URL of an OpenAI-compatible server, up to and with /v1", env=("OPENAI_BASE_URL",))
    local_model: str = setting("", "path of a GGUF file for the model `local`")
    context_window: int | None = setting(
        None, "tokens the model can take; unset: asked of the server, else looked up, else 128000",
        env=("CONTEXT_WINDOW",), low=512,
    )  # fmt: skip
    compression_threshold: float = setting(
        0.8, "share of the window at which folding begins", env=("COMPRESSION_THRESHOLD",), low=0.1, high=1.0
    )
    min_retain_rounds: int = setting(
        10, "rounds the summary leaves alone where they fit", env=("MIN_RETAIN_ROUNDS",), low=1
    )
    keep_last: int = setting(
        2, "newest tool results that stay whole when older ones are shortened", env=("KEEP_LAST",), low=0
    )
    max_result_chars: int = setting(
        200, "characters of an old result that its stub keeps", env=("MAX_RESULT_CHARS",), low=0
    )
    keep_turns: int = setting(8, "newest steps the sliding window leaves alone", env=("KEEP_TURNS",), low=1)
    token_budget: int = setting(0, "tokens truncation aims at; 0: half of the window", env=("TOKEN_BUDGET",), low=0)
    min_keep: int = setting(
        4, "newest messages that truncation leaves whole while anything else can give way", env=("MIN_KEEP",), low=1
    )
    chars_per_token: float = setting(
        4.0,
        "characters a token, before the model's own usage has been seen",
        env=("CHARS_PER_TOKEN",),
        low=0.5,
        high=20,
    )
    summary_timeout: float = setting(120.0, "seconds a summary may take", env=("SUMMARY_TIMEOUT",), low=1)
    summarise: bool = setting(True, "let the model write notes about what is folded", env=("SUMMARISE",))
    redact: bool = setting(True, "take well-known kinds of keys out of tool output before it is kept or sent")
    output_reserve: int | None = setting(
        None, "tokens kept free for the answer; unset: by the model", env=("OUTPUT_RESERVE",), low=64
    )
    max_steps: int = setting(100, "requests to the model in one turn", low=1)
    subagents: bool = setting(True, "let the model give tasks to sub-agents (the tool `task`)")
    subagent_model: str = setting("", "model of sub-agents; unset: the session's own")
    subagent_steps: int = setting(50, "requests of one sub-agent", low=1)
    subagent_tokens: int = setting(0, "tokens of one sub-agent, read and written; 0: no limit of its own", low=0)
    permission_mode: str = setting("", "plan, ask, edits, auto or yolo; unset: auto in a sandbox, else ask")
    effort: str = setting("", "reasoning effort, for models that have one: low, medium, high")
    theme: str = setting("", "colours of the chat: dark, light, ansi")
    colors: str = setting("", "colours of your own: ROLE=STYLE, with commas, such as accent=#ff8800,add=bold green")
    editing: str = setting("emacs", "keys of the chat's input: emacs or vi")
    status_command: str = setting("", "a command whose first line stands above the chat's status; gets JSON on stdin")
    notify: bool = setting(True, "ring the bell when a long turn ends or a question waits")
    screen_reader: bool = setting(False, "a chat in plain lines, without colours and without anything that moves")
    home: Path = setting(Path("~/.refold"), "folder of sessions, cache and the person's own configuration")
    system_prompt: str = ""
    append_system_prompt: str = ""
    bare: bool = False
    add_dirs: tuple[Path, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mcp_config: tuple[Path, ...] = ()
    no_mcp: bool = False
    no_hooks: bool = False
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    warnings: tuple[str, ...] = ()

    @classmethod
    def load(
        cls,
        flags: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        problems: list[str] | None = None,
    ) -> Settings:
        """Settings from all places. Flags that are None count as not given. Raises SettingsError; where a list for
        problems is given, they are put there, and what cannot be used counts as not given."""
        env = os.environ if env is None else env
        flags = {k: v for k, v in (flags or {}).items() if v is not None}
        home = _home(flags, env, cwd or Path.cwd())
        layers = [_Layer.of_flags(flags), _Layer.of_environment(env, "in the environment")]
        dotenv = _tried(lambda: _dotenv(home, env), [], problems)
        layers += [_Layer.of_environment(values, f"in {path}") for path, values in dotenv]
        own = _tried(lambda: _Layer.of_config(home / "config.toml"), _Layer({}), problems)
        values, sources = _merge([*layers, own], problems)
        values["home"] = home
        values.update(_guess_model(values, sources))
        folder = FolderSettings() if flags.get("bare") else of_folder(home, cwd or Path.cwd())
        warnings = (*own.warnings, *_put_folder(folder, values, sources, own))
        values.update({k: flags[k] for k in FLAGS_ONLY if k in flags})
        return cls(**values, sources=sources, warnings=warnings)

    def source(self, name: str) -> str:
        """Where a value came from: "--model", "REFOLD_MODEL in the environment", a file, or "default"."""
        return self.sources.get(name, "default")


@dataclass(frozen=True)
class _Layer:
    """One place that settings come from: field -> (value as found, its source in words)."""

    found: Mapping[str, tuple[Any, str]]
    warnings: tuple[str, ...] = ()

    def source_of(self, name: str) -> str:
        return self.found[name][1] if name in self.found else ""

    @classmethod
    def of_flags(cls, flags: Mapping[str, Any]) -> _Layer:
        words = {k: f"--{k.replace('_', '-')}" if k in OWN_FLAGS else f"--set {k}" for k in flags}
        return cls({k: (v, words[k]) for k, v in flags.items() if k in NAMES})

    @classmethod
    def of_environment(cls, env: Mapping[str, str], where: str) -> _Layer:
        found: dict[str, tuple[Any, str]] = {}
        for name in NAMES:
            key = next((k for k in env_names(name) if env.get(k, "").strip()), None)
            if key is not None:
                found[name] = (env[key].strip(), f"{key} {where}")
        return cls(found)

    @classmethod
    def of_config(cls, path: Path) -> _Layer:
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            return cls({})
        except (OSError, ValueError) as error:
            raise SettingsError(f"{path} cannot be read: {reason(error, path)}") from error
        scalars = {k: v for k, v in data.items() if not isinstance(v, (dict, list))}
        unknown = tuple(f"{path}: there is no setting {k!r}" for k in scalars if k not in NAMES)
        return cls({k: (v, f"in {path}") for k, v in scalars.items() if k in NAMES}, unknown)


def env_names(name: str) -> tuple[str, ...]:
    """The environment variables that set a field, the strongest first."""
    return (f"REFOLD_{name.upper()}", *_META[name]["env"])


def rows() -> Iterator[tuple[str, str, Any, str]]:
    """(field, environment names, default, help) of every setting, for the documentation."""
    for f in fields(Settings):
        if f.name in NAMES:
            yield f.name, " or ".join(reversed(env_names(f.name))), f.default, f.metadata["doc"]


def home_folder(cwd: Path) -> Path:
    """refold's own folder, whatever the other settings say: for commands that need no other."""
    return _home({}, os.environ, cwd)


def _home(flags: Mapping[str, Any], env: Mapping[str, str], cwd: Path) -> Path:
    named = str(flags.get("home") or env.get("REFOLD_HOME") or "~/.refold")
    return cwd / Path(os.path.expanduser(named))


def _dotenv(home: Path, env: Mapping[str, str]) -> list[tuple[Path, Mapping[str, str]]]:
    """The .env files that exist; REFOLD_ENV_FILE puts another one (or, empty, none) in their place."""
    named = env.get("REFOLD_ENV_FILE")
    paths = [CHECKOUT / ".env", home / ".env"] if named is None else [Path(named)] if named else []
    found = [path for path in paths if os.path.isfile(path)]
    if not found:
        return []
    from dotenv import dotenv_values

    try:
        return [(p, {k: v or "" for k, v in dotenv_values(p, interpolate=False).items()}) for p in found]
    except (OSError, UnicodeDecodeError) as error:
        named = getattr(error, "filename", None) or " or ".join(map(str, found))
        raise SettingsError(f"{named} cannot be read: {reason(error, named)}") from error


def _tried(body: Callable[[], T], otherwise: T, problems: list[str] | None) -> T:
    try:
        return body()
    except SettingsError as error:
        if problems is None:
            raise
        problems.append(str(error))
        return otherwise


def _merge(layers: list[_Layer], problems: list[str] | None) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        for name, (raw, source) in layer.found.items():
            if name not in values:
                value = _tried(partial(_checked, name, raw, source), _UNUSABLE, problems)
                if value is not _UNUSABLE:
                    values[name], sources[name] = value, source
    return values, sources


_UNUSABLE = object()


def _put_folder(
    folder: FolderSettings, values: dict[str, Any], sources: dict[str, str], own: _Layer
) -> Iterator[str]:  # fmt: skip
    """Puts the settings of a folder above the person's file and below all else; yields what is to be said of it."""
    if folder.problem:
        yield folder.problem
    ignored = list(folder.ignored)
    for name, raw in folder.found.items():
        source = sources.get(name, "default")
        if not source.startswith("default") and source != own.source_of(name):
            continue
        try:
            value = _checked(name, raw, f"in {folder.path}")
        except SettingsError as error:
            yield f"{error}; it is left out"
            continue
        if too_loose(name, value, values):
            ignored.append(name)
        else:
            values[name], sources[name] = value, f"in {folder.path}"
    if ignored:
        yield f"{folder.path}: what a folder cannot set, or not to this value, is left out: {', '.join(ignored)}"


def _guess_model(values: Mapping[str, Any], sources: dict[str, str]) -> dict[str, str]:
    """With nothing but OpenAI's own key, the model is OpenAI's; anything else has to be named."""
    if values.get("model") or values.get("base_url") or not values.get("api_key"):
        return {}
    sources["model"] = f"default, for there is {sources['api_key']}"
    return {"model": "openai_chat:gpt-5"}


def _checked(name: str, raw: Any, source: str) -> Any:
    """The value in its field's type and bounds. Raises SettingsError."""
    default, meta = _DEFAULT[name], _META[name]
    try:
        value = _typed(name, default, raw)
    except (TypeError, ValueError, KeyError):
        kind = "true or false" if isinstance(default, bool) else "a number"
        raise SettingsError(f"{name} must be {kind}, not {raw!r} ({source})") from None
    low, high = meta["low"], meta["high"]
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"
        raise SettingsError(f"{name} must be {bounds}, not {raw!r} ({source})")
    if name == "permission_mode" and value not in ("", *PERMISSION_MODES):
        raise SettingsError(f"permission_mode must be one of {', '.join(PERMISSION_MODES)}, not {raw!r} ({source})")
    return value


def _typed(name: str, default: Any, raw: Any) -> Any:
    if isinstance(default, bool):
        return _truth(raw)
    if isinstance(default, float):
        return _number(float, raw)
    if isinstance(default, int) or name in ("context_window", "output_reserve"):
        return _number(int, str(raw).replace("_", ""))
    return str(raw)


def _number(kind: type, raw: Any) -> Any:
    if isinstance(raw, bool):
        raise TypeError
    value = kind(raw)
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError
    return value


def _truth(raw: Any) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    return raw if isinstance(raw, bool) else words[str(raw).strip().lower()]


_FIELDS = [f for f in fields(Settings) if f.metadata]
_META = {f.name: f.metadata for f in _FIELDS}
_DEFAULT = {f.name: f.default for f in _FIELDS}
NAMES = tuple(name for name in _META if name != "home")
"""The fields that can be set anywhere (`home` is REFOLD_HOME's alone, for everything else is looked up below it)."""
OWN_FLAGS = ("model", "permission_mode", "effort")
"""Settings with an option of their own; --set gives the others."""
FLAGS_ONLY = (
    "system_prompt", "append_system_prompt", "bare", "add_dirs", "allow", "deny", "mcp_config", "no_mcp", "no_hooks",
)  # fmt: skip
"""The fields that only the command line sets: rules kept in files are the permissions' own."""
