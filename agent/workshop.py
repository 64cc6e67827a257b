"""Puts the parts of a session together: what the settings mean for tools, engine, model and permissions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.identity import git_branch, git_root, make_identity
from agent.models.base import ModelOptions
from agent.permissions import Permissions, parse_rule
from agent.settings import Settings
from runtime.context.budget import ContextSettings
from runtime.context.engine import ContextEngine
from runtime.crew import Limits
from runtime.model import Model
from tools.base import Toolbox, ToolContext, load_tools
from transcripts.log import Entry, TranscriptLog
from transcripts.records import Note, SessionStart

SECRET_NAMES = ("OPENAI_API_KEY", "REFOLD_API_KEY")
"""Our own keys: no child process sees them."""


@dataclass(frozen=True)
class Profile:
    """What a model needs to be told differently. `tools`: names in order, () for all; `prompt`: words about the tools for
    a model that takes no schemas; `small`: the short system prompt."""

    tools: tuple[str, ...] = ()
    small: bool = False
    text_protocol: bool = False
    images: bool = False


def profile_of(model: Model) -> Profile:
    """The profile a model asks for; models that say nothing get the default."""
    found = getattr(model, "profile", None)
    return found if isinstance(found, Profile) else Profile(
        tools=tuple(getattr(model, "tool_names", ())),
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


def make_permissions(settings: Settings, root: Path) -> Permissions:
    """The permissions of a session in `root`."""
    extra = [parse_rule(rule, "allow", "session") for rule in settings.allow]
    extra += [parse_rule(rule, "deny", "session") for rule in settings.deny]
    return Permissions(settings.permission_mode or "ask", root=root, home=settings.home, extra=extra)


def make_toolbox(settings: Settings, profile: Profile, root: Path, cwd: Path) -> Toolbox:
    """The tools and what they may touch."""
    env = {k: v for k, v in os.environ.items() if k not in SECRET_NAMES}
    ctx = ToolContext(root=root, cwd=cwd, env=env, takes_images=profile.images)
    return Toolbox(load_tools(profile.tools), ctx)


def make_engine(
    settings: Settings, profile: Profile, log: TranscriptLog, toolbox: Toolbox, notices: list[str]
) -> ContextEngine:
    """The engine over a log. A resumed session keeps the system prompt it began with, byte for byte."""
    specs = toolbox.specs()
    identity = make_identity(
        root=toolbox.ctx.root, cwd=toolbox.ctx.cwd, home=settings.home, branch=branch_of(toolbox.ctx.root),
        small=profile.small, bare=settings.bare, own=settings.system_prompt, append=settings.append_system_prompt,
    )  # fmt: skip
    system = identity.prompt
    kept = kept_system(log, profile.small)
    if kept is not None and kept != system:
        notices.append("The instructions of this folder have changed; this session keeps those it began with.")
    notices += identity.notices
    engine = ContextEngine(log, system=kept or system, specs=specs, settings=context_settings(settings))
    if kept is None:
        blob = log.blobs.put(system.encode("utf-8", "replace"))
        log.append(Note("system", {"blob": blob, "small": profile.small}))
    return engine


def kept_system(log: TranscriptLog, small: bool) -> str | None:
    """The system prompt a session began with; None for a new one."""
    for entry in log.entries:
        if entry.kind == "note" and entry.record.key == "system" and entry.record.value.get("small") == small:
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


def model_options(settings: Settings, log: TranscriptLog) -> ModelOptions:
    """What a provider is told."""
    answered = sum(1 for e in log.entries if e.kind == "usage")
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


def restore_tools(ctx: ToolContext, messages: Sequence[Entry]) -> None:
    """What the tools knew before a resume: files seen, the todo list, the folder bash was in."""
    for entry in messages:
        if entry.kind != "tool_result":
            continue
        meta: Mapping[str, Any] = entry.record.meta
        if isinstance(meta.get("path"), str) and isinstance(meta.get("sha"), str):
            ctx.seen[meta["path"]] = meta["sha"]
        if isinstance(meta.get("todo"), list):
            ctx.state["todo"] = json.loads(json.dumps(meta["todo"]))
        if isinstance(meta.get("cwd"), str) and Path(meta["cwd"]).is_dir():
            ctx.cwd = Path(meta["cwd"])


def close_tools(ctx: ToolContext) -> None:
    """Ends what tools left running (background jobs); each tool puts its own end into `ctx.state["closers"]`."""
    for close in ctx.state.get("closers", {}).values():
        close()


def copy_entries(old: TranscriptLog, new: TranscriptLog) -> None:
    """Everything another session said, under the same numbers; its blobs come along."""
    for entry in old.entries:
        record = entry.record
        for blob in {getattr(record, "blob", ""), *(i.blob for i in getattr(record, "images", ()))} - {""}:
            try:
                new.blobs.put(old.blobs.get(blob))
            except KeyError:
                continue
        if not isinstance(record, SessionStart) and entry.kind != "gap":
            new.append(record, entry.seq)


SMALL_WINDOW = 40_000
"""Tokens up to which what instructions and tools take of a window is worth a word at the start."""

MOST_FLOOR = 0.75
"""Part of the window that instructions and tools may take; with more of it no conversation fits."""


def floor_words(engine: ContextEngine) -> str:
    """What the person should know about how much of the window is taken before the first word; "" where it is little."""
    floor, window = engine.floor(), engine.window
    if window > SMALL_WINDOW and floor <= window // 2:
        return ""
    words = f"Instructions and tools take {floor:,} of the window's {window:,} tokens ({100 * floor // window} %)"
    if floor <= window // 2:
        return words + "."
    return f"{words}: little is left for the conversation. Use a larger window, or shorten AGENTS.md."


def floor_refusal(engine: ContextEngine) -> str:
    """Why no turn can be made in this window; "" where one can."""
    if engine.floor() <= engine.window * MOST_FLOOR:
        return ""
    system = engine.estimator.tokens(engine.estimator.units(engine.system))
    return (
        f"The window of {engine.window:,} tokens ({engine.window_source}) is too small: the instructions take {system:,} "
        f"tokens and the tools {engine.floor() - system:,}. Set CONTEXT_WINDOW if it is larger, shorten AGENTS.md or use "
        "--bare, or choose a model with a larger window."
    )
