"""Puts the parts of a session together: what the settings mean for tools, engine, model and permissions."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from agent.extend.extensions import Extensions
from agent.extend.hooking import Facts, Hooks
from agent.extend.hooks import HookError, load_hooks
from agent.folders import git_root
from agent.identity import git_branch, make_identity
from agent.mcp.config import ConfigError, find_servers
from agent.mcp.servers import Servers
from agent.models.base import ModelOptions
from agent.permissions import RuleError
from agent.safety import Safety
from agent.sandbox import hide_own_memory
from agent.settings import Settings, SettingsError
from runtime.context.budget import ContextSettings
from runtime.context.engine import LEARNED, ContextEngine
from runtime.context.redact import Redactor
from runtime.crew import Limits
from runtime.model import Model
from tools.base import DEFAULT, PATCH, Toolbox, ToolContext, load_tools
from transcripts.log import TranscriptLog
from transcripts.records import Note


@dataclass(frozen=True)
class Profile:
    """What a model needs to be told differently. `tools`: names in order, () for all; `prompt`: words about the tools
    for a model that takes no schemas; `small`: the short system prompt."""

    tools: tuple[str, ...] = ()
    small: bool = False
    text_protocol: bool = False
    images: bool = False


def profile_of(model: Model) -> Profile:
    """The profile a model asks for; models that say nothing get the default."""
    found = getattr(model, "profile", None)
    usual = PATCH if getattr(model, "edit_format", "edit") == "apply_patch" else DEFAULT
    return found if isinstance(found, Profile) else Profile(
        tools=tuple(getattr(model, "tool_names", ())) or usual,
        small=bool(getattr(model, "small", False)),
        text_protocol=getattr(model, "tool_protocol", "native") == "text",
        images=bool(getattr(model, "takes_images", False)),
    )  # fmt: skip


def workspace_root(cwd: Path) -> Path:
    """The folder the agent works in: the git repository around `cwd`, else `cwd` itself."""
    return git_root(cwd) or cwd


def branch_of(root: Path) -> str:
    """The git branch at the start; "" where there is none."""
    return git_branch(root)


def make_safety(settings: Settings, root: Path, notices: list[str]) -> Safety:
    """The guards of a session in `root`. Raises SettingsError where the person's rules cannot be read."""
    hide_own_memory()
    try:
        return Safety(settings, root, notices)
    except RuleError as error:
        raise SettingsError(str(error)) from error


def make_servers(settings: Settings, safety: Safety, notices: list[str]) -> Servers:
    """The MCP servers of a session; none is started yet. Raises SettingsError where a file named on the command line
    cannot be used."""
    try:
        found = find_servers(settings.home, safety.trust, settings.mcp_config, own=not settings.bare, env=os.environ)
    except ConfigError as error:
        raise SettingsError(str(error)) from error
    notices += [] if settings.no_mcp else found.problems
    return Servers(() if settings.no_mcp else found.servers, safety)


def make_toolbox(settings: Settings, profile: Profile, root: Path, cwd: Path) -> Toolbox:
    """The tools and what they may touch."""
    ctx = ToolContext(root=root, cwd=cwd, takes_images=profile.images)
    return Toolbox(load_tools(profile.tools), ctx)


def make_hooks(
    settings: Settings, safety: Safety, notices: list[str], facts: Callable[[], Facts], note: Callable[[Note], object],
    resumed: bool,
) -> Hooks | None:  # fmt: skip
    """The hooks of a session; None where there are none. Raises SettingsError for a file that counts and is broken."""
    if settings.bare or settings.no_hooks:
        return None
    try:
        found = load_hooks(settings.home, safety.trust, notices)
    except HookError as error:
        raise SettingsError(f"{error}. --no-hooks goes on without any.") from error
    return Hooks(found, safety, facts, note, resumed) if found else None


def make_engine(
    settings: Settings, profile: Profile, log: TranscriptLog, toolbox: Toolbox, notices: list[str],
    extensions: Extensions,
) -> ContextEngine:  # fmt: skip
    """The engine over a log. A resumed session keeps the system prompt it began with, byte for byte."""
    specs = toolbox.specs()
    identity = make_identity(
        root=toolbox.ctx.root, cwd=toolbox.ctx.cwd, home=settings.home, branch=branch_of(toolbox.ctx.root),
        small=profile.small, bare=settings.bare, own=settings.system_prompt, append=settings.append_system_prompt,
        skills="" if profile.small else extensions.skill_words(),
    )  # fmt: skip
    system = identity.prompt
    kept = kept_system(log, profile.small)
    if kept is not None and kept != system:
        notices.append("The instructions of this folder have changed; this session keeps those it began with.")
    notices += identity.notices
    redactor = Redactor(log.secrets, shapes=settings.redact)
    engine = ContextEngine(
        log, system=kept or system, specs=specs, settings=context_settings(settings), redactor=redactor
    )
    if kept is None:
        blob = log.blobs.put(system.encode("utf-8", "replace"))
        log.append(Note("system", {"blob": blob, "small": profile.small}))
    return engine


def kept_system(log: TranscriptLog, small: bool) -> str | None:
    """The system prompt a session began with; None for a new one."""
    for entry in log.entries:
        if entry.key == "system" and entry.record.value.get("small") == small:
            try:
                return log.blobs.get(entry.record.value["blob"]).decode()
            except KeyError:
                return None
    return None


def context_settings(settings: Settings) -> ContextSettings:
    """The part of the settings that is about folding."""
    return ContextSettings(
        compression_threshold=settings.compression_threshold,
        output_reserve=settings.output_reserve or 0,
        keep_last=settings.keep_last,
        max_result_chars=settings.max_result_chars,
        keep_turns=settings.keep_turns,
        token_budget=settings.token_budget,
        min_keep=settings.min_keep,
        min_retain_rounds=settings.min_retain_rounds,
        chars_per_token=settings.chars_per_token,
        summary_timeout=settings.summary_timeout,
        summarise=settings.summarise,
    )


def limits_for(profile: Profile, limits: Limits) -> Limits:
    """Small models repeat a failing call for ever: they are told at the second time and stopped at the third."""
    return replace(limits, nudge_at=2, stop_at=3) if profile.small else limits


async def know_window(model: Model) -> None:
    """Lets a model ask its server for the window before the first request, for some cut what is too long in silence."""
    ask = getattr(model, "ask_window", None)
    if ask is not None:
        await ask()


def model_options(settings: Settings, log: TranscriptLog) -> ModelOptions:
    """What a provider is told in a session."""
    # A usage stands right behind its answer; one of a request for notes does not.
    answered = sum(a.kind == "assistant" and b.kind == "usage" for a, b in pairwise(log.entries))
    return options_of(settings, answered)


def options_of(settings: Settings, answered: int = 0) -> ModelOptions:
    """What a provider is told; `answered`: how many answers a session has had already."""
    return ModelOptions(
        api_key=settings.api_key,
        api_key_source=settings.source("api_key"),
        base_url=settings.base_url,
        window=settings.context_window,
        output_reserve=settings.output_reserve,
        effort=settings.effort,
        home=settings.home,
        extra={"answered": answered, "local_model": settings.local_model},
    )


async def close_model(model: Model) -> None:
    """Ends what a model holds open: connections, a process of its own. Models that hold nothing need no `close`."""
    close = getattr(model, "close", None)
    if close is not None:
        await close()


def close_tools(ctx: ToolContext) -> None:
    """Ends what tools left running (background jobs); each tool puts its own end into `ctx.state["closers"]`."""
    for close in ctx.state.get("closers", {}).values():
        close()


SMALL_WINDOW = 40_000
"""Tokens below which a window is too small to be shared with sub-agents."""

TOLD_FLOOR = 0.25
"""Part of the window beyond which what instructions and tools take of it is worth a word at the start; the status line
shows it in any case."""

MOST_FLOOR = 0.75
"""Part of the window that instructions and tools may take; with more of it no conversation fits."""


def floor_words(engine: ContextEngine) -> str:
    """What the person should know about how much of the window is taken at the start; "" where it is little."""
    floor, window = engine.floor(), engine.window
    if floor <= window * TOLD_FLOOR:
        return ""
    words = f"Instructions and tools take {floor:,} of the window's {window:,} tokens ({100 * floor // window} %)"
    if floor <= window // 2:
        return words + "."
    return f"{words}: little is left for the conversation. Use a larger window, or shorten AGENTS.md."


def weight_words(engine: ContextEngine, before: int) -> list[str]:
    """What the person should know where the tools of MCP servers take much of the window; `before`: what was taken
    without them, in tokens."""
    grown = engine.floor() - before
    if grown <= engine.window // 10:
        return []
    return [f"The tools of MCP servers take {grown:,} of the window's {engine.window:,} tokens in every request."]


def floor_refusal(engine: ContextEngine) -> str:
    """Why no turn can be made in this window; "" where one can."""
    # One dense text may have made the estimate of all the rest too high: a request that was counted is the better word;
    # and where one has been taken, the window is not too small because a refusal without a figure was taken for one.
    least = min(engine.floor(), engine.meter.least or engine.floor())
    guessed = engine.window_source == LEARNED and engine.meter.proved
    if guessed or least <= engine.window * MOST_FLOOR:
        return ""
    system = engine.estimator.tokens(engine.estimator.units(engine.system))
    return (
        f"The window of {engine.window:,} tokens ({engine.window_source}) is too small: the instructions take "
        f"{system:,} tokens and the tools {engine.floor() - system:,}. Set CONTEXT_WINDOW if it is larger, shorten "
        "AGENTS.md or use --bare, or choose a model with a larger window."
    )
