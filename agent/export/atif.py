"""Export in the Agent Trajectory Interchange Format, version 1.8: for viewers, datasets and training."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from agent.export.story import Item, Story
from agent.version import VERSION
from runtime.context.images import data_url
from runtime.crew import total
from runtime.folding import fold_line
from transcripts.records import Assistant, Checkpoint, Image, ToolResult, Usage, User, clean

SCHEMA_VERSION = "ATIF-v1.8"
_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""Media types that the format knows."""


def atif(story: Story) -> str:
    """The session as one JSON document, its sub-agents' conversations in it. Raises ValueError where nothing was said,
    for the format wants a step."""
    document = _trajectory(story, story.start.id)
    tasks = [_trajectory(task, story.start.id) for task in _shown(story).values()]
    document |= {"subagent_trajectories": tasks} if tasks else {}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _shown(story: Story) -> dict[str, Story]:
    """The sub-agents that worked for the conversation as it stands and said something, in the order of their calls."""
    calls = (c.id for item in story.items if isinstance(item.record, Assistant) for c in item.record.calls)
    whose = {call: ident for item in story.items for call, ident in item.tasks.items()}
    named = dict.fromkeys(whose[call] for call in calls if call in whose)
    return {ident: story.tasks[ident] for ident in named if ident in story.tasks and _said(story.tasks[ident])}


def _said(story: Story) -> list[Item]:
    return [i for i in story.items if isinstance(i.record, (User, Assistant))]


def _trajectory(story: Story, session: str) -> dict[str, Any]:
    """One conversation of the session of that id."""
    items = _said(story)
    if not items:
        raise ValueError("Nothing was said in this session, and a trajectory needs a step.")
    steps = [_step(story, item) for item in items]
    system = _text(story, story.request.system if story.request else "")
    if system:
        steps.insert(0, {"source": "system", "message": system})
    steps = [{"step_id": n, **step} for n, step in enumerate(steps, 1)]
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": session,
        "trajectory_id": story.start.id,
        "agent": _agent(story),
        "steps": steps,
        "final_metrics": _totals(items, len(steps)),
        "extra": _extra(story),
    }


def _agent(story: Story) -> dict[str, Any]:
    tools = _text(story, story.request.tools if story.request else "")
    out: dict[str, Any] = {"name": "refold", "version": story.start.program.removeprefix("refold ") or VERSION}
    model = story.request.model if story.request else story.start.model
    out |= {"model_name": model} if model else {}
    with suppress(ValueError, RecursionError):  # a body that is no list of tools says nothing about them
        found = json.loads(tools) if tools else []
        out |= {"tool_definitions": found} if found and isinstance(found, list) else {}
    return out


def _step(story: Story, item: Item) -> dict[str, Any]:
    record = item.record
    stamp = {"timestamp": item.at} if item.at else {}
    if isinstance(record, User):
        source = "system" if record.source in ("harness", "hook") else "user"
        more = {"extra": {"source": record.source}} if record.source not in ("typed", "harness") else {}
        return {**stamp, "source": source, "message": _content(story, record.text, record.images), **more}
    assert isinstance(record, Assistant)
    out: dict[str, Any] = {**stamp, "source": "agent", "message": clean(record.text), "llm_call_count": 1}
    out |= {"model_name": record.model} if record.model else {}
    out |= {"reasoning_content": clean(record.reasoning)} if record.reasoning else {}
    if record.calls:
        out["tool_calls"] = [
            {"tool_call_id": c.id, "function_name": c.name, "arguments": _cleaned(c.args)} for c in record.calls
        ]
    if item.results:
        results = [item.results[c.id] for c in record.calls if c.id in item.results]
        out["observation"] = {"results": [_result(story, r, item.tasks.get(r.call_id, "")) for r in results]}
    out |= {"metrics": metrics} if (metrics := _metrics(item.usage)) else {}
    return out | ({"extra": {"finish": record.finish}} if record.finish not in ("stop", "tool_calls") else {})


def _result(story: Story, result: ToolResult, task: str) -> dict[str, Any]:
    out: dict[str, Any] = {"source_call_id": result.call_id, "content": _content(story, result.text, result.images)}
    if task in _shown(story):
        out["subagent_trajectory_ref"] = [{"trajectory_id": task}]
    more: dict[str, Any] = {"status": result.status} if result.status != "ok" else {}
    more |= {"characters": result.chars} if result.chars else {}
    return out | ({"extra": more} if more else {})


def _content(story: Story, text: str, images: Sequence[Image]) -> str | list[dict[str, Any]]:
    """Text, or with pictures a list of parts; a picture stands in the document itself, as a data URL."""
    parts = [_picture(story, image) for image in images]
    return [{"type": "text", "text": clean(text)}, *parts] if parts else clean(text)


def _picture(story: Story, image: Image) -> dict[str, Any]:
    url = data_url(image, story.blobs) if image.media in _PICTURES else ""
    if not url:
        return {"type": "text", "text": f"[an image ({image.media}) that is not there]"}
    return {"type": "image", "source": {"media_type": image.media, "path": url}}


def _metrics(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    names = {"prompt_tokens": usage.input, "completion_tokens": usage.output, "cached_tokens": usage.cached}
    return {k: v for k, v in {**names, "cost_usd": usage.cost}.items() if v is not None}


def _totals(items: Iterable[Item], steps: int) -> dict[str, Any]:
    whole = Usage()
    for item in items:
        whole = total(whole, item.usage) if item.usage else whole
    found = {f"total_{name}": value for name, value in _metrics(whole).items()}
    return {**found, "total_steps": steps}


def _extra(story: Story) -> dict[str, Any]:
    folds = [{"record": i.seq, "said": fold_line(i.record)} for i in story.items if isinstance(i.record, Checkpoint)]
    out: dict[str, Any] = {"cwd": story.start.cwd, "name": story.name, "branch": story.start.branch}
    return {k: v for k, v in out.items() if v} | ({"folds": folds} if folds else {})


def _text(story: Story, blob: str) -> str:
    try:
        return story.blobs.get(blob).decode("utf-8", "replace") if blob else ""
    except KeyError:
        return ""


def _cleaned(value: Any) -> Any:
    """A JSON value without lone surrogates, which no UTF-8 document can carry."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(k): _cleaned(v) for k, v in value.items()}
    return [_cleaned(v) for v in value] if isinstance(value, list) else value
