"""Exports for people: Markdown, and one HTML page that needs nothing else and loads nothing from anywhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

from agent.export.story import Item, Story
from runtime.context.images import data_url
from runtime.folding import fold_line
from transcripts.records import Assistant, Checkpoint, Gap, ToolCall, ToolResult, User, clean

_WHO = {
    "typed": "You",
    "steered": "You (while it worked)",
    "shell": "You (shell)",
    "hook": "A hook",
    "harness": "refold itself",
    "task": "The task",
}
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
header, .note { color: GrayText; font-size: .9rem; }
section { margin: 1.2rem 0; padding-left: .9rem; border-left: 3px solid transparent; }
section.user { border-color: #3b82f6; }
h2 { font-size: .85rem; margin: 0 0 .3rem; color: GrayText; font-weight: 600; }
pre { overflow: auto; padding: .7rem; border: 1px solid #8884; border-radius: 6px; font-size: .85rem; }
details { margin: .4rem 0; } summary { cursor: pointer; font-family: ui-monospace, monospace; font-size: .9rem; }
details.task { margin-left: 1rem; padding-left: .7rem; border-left: 2px solid #8884; }
img { max-width: 100%; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def title_of(story: Story) -> str:
    """What the export is headed with: the session's name, else the first words, else its id."""
    first = next((i.record.text for i in story.items if isinstance(i.record, User)), "")
    return story.name or " ".join(first.split())[:70] or story.start.id


def facts_of(story: Story) -> str:
    """Where and with what the session was made, in one line."""
    model = story.request.model if story.request else story.start.model
    began = story.items[0].at[:16].replace("T", " ") + " UTC" if story.items and story.items[0].at else ""
    return " · ".join(p for p in (f"session {story.start.id}", began, model, story.start.cwd, story.start.branch) if p)


# -- Markdown --------------------------------------------------------------------------------------------------------


def markdown(story: Story) -> str:
    """The conversation as Markdown. Output of tools stands in code blocks, so nothing in it is taken for a heading."""
    parts = [f"# {clean(title_of(story))}", facts_of(story)]
    parts += [part for i in story.items for part in _md_item(story, i)]
    return clean("\n\n".join(parts)) + "\n"


def _md_task(story: Story) -> str:
    """A sub-agent's conversation, as a quotation within the one it worked for."""
    parts = [f"### Sub-agent: {' '.join(title_of(story).split())}", facts_of(story), *story.problems]
    parts += [part for i in story.items for part in _md_item(story, i, "###", "sub-agent")]
    return "\n".join(f"> {line}".rstrip() for line in "\n\n".join(parts).split("\n"))


def _md_item(story: Story, item: Item, level: str = "##", name: str = "refold") -> Iterator[str]:
    match item.record:
        case User() as said:
            yield f"{level} {_WHO.get(said.source, said.source)}"
            yield said.text or "(nothing)"
        case Assistant() as said:
            yield f"{level} {name}"
            if said.text.strip():
                yield said.text
            for call in said.calls:
                yield from _md_call(call, item.results.get(call.id))
                if task := story.tasks.get(item.tasks.get(call.id, "")):
                    yield _md_task(task)
        case ToolResult() as result:
            yield fenced(result.text)
        case Checkpoint() as fold:
            yield f"> {fold_line(fold)}"
        case Gap() as gap:
            yield f"> {_lost(gap)}"


def _md_call(call: ToolCall, result: ToolResult | None) -> Iterator[str]:
    yield f"**{call.name}** ({result.status if result else 'no result'})"
    yield fenced(_arguments(call), "json")
    if result is not None and result.text:
        yield fenced(result.text)


def fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any run of backticks in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _arguments(call: ToolCall) -> str:
    return json.dumps(call.args, ensure_ascii=False, indent=1) if not call.raw else call.raw


def _lost(gap: Gap) -> str:
    which = f"records {gap.first} to {gap.last}" if gap.first else "the end of a record"
    return f"{which} cannot be read any more ({gap.why})"


# -- HTML ------------------------------------------------------------------------------------------------------------


def page(story: Story) -> str:
    """The conversation as one HTML page: no script, nothing fetched, what models and tools said cannot become markup
    of the page."""
    title = html.escape(title_of(story))
    body = "\n".join(part for i in story.items for part in _html_item(story, i))
    return clean(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{title}</h1><header>{html.escape(facts_of(story))}</header>\n{body}\n</body></html>\n"
    )


def _html_task(story: Story) -> str:
    """A sub-agent's conversation, folded up."""
    heading = html.escape(f"sub-agent: {title_of(story)}")
    problems = "".join(f'<p class="note">{html.escape(problem)}</p>' for problem in story.problems)
    body = "\n".join(part for i in story.items for part in _html_item(story, i, "sub-agent"))
    return (
        f'<details class="task"><summary>{heading}</summary><header>{html.escape(facts_of(story))}</header>'
        f"{problems}\n{body}</details>"
    )


def _html_item(story: Story, item: Item, name: str = "refold") -> Iterator[str]:
    match item.record:
        case User() as said:
            yield f'<section class="user"><h2>{_WHO.get(said.source, html.escape(said.source))}</h2>'
            yield f"<p>{html.escape(said.text).replace(chr(10), '<br>')}</p>"
            yield from (f'<img alt="" src="{url}">' for i in said.images if (url := data_url(i, story.blobs)))
            yield "</section>"
        case Assistant() as said:
            yield f'<section class="answer"><h2>{name}</h2>{_rendered(said.text)}'
            for call in said.calls:
                yield _html_call(call, item.results.get(call.id))
                if task := story.tasks.get(item.tasks.get(call.id, "")):
                    yield _html_task(task)
            yield "</section>"
        case ToolResult() as result:
            yield f"<pre>{html.escape(result.text)}</pre>"
        case Checkpoint() as fold:
            yield f'<p class="note">{html.escape(fold_line(fold))}</p>'
        case Gap() as gap:
            yield f'<p class="note">{html.escape(_lost(gap))}</p>'


def _html_call(call: ToolCall, result: ToolResult | None) -> str:
    heading = f"{call.name} {' '.join(call.arguments.split())[:100]} ({result.status if result else 'no result'})"
    said = f"<pre>{html.escape(result.text)}</pre>" if result is not None else ""
    return (
        f"<details><summary>{html.escape(heading)}</summary><pre>{html.escape(_arguments(call))}</pre>{said}</details>"
    )


def _rendered(text: str) -> str:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image").render(text)
