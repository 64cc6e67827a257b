"""What a server answered, as the result of a call."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from tools._pictures import picture_type
from tools.base import Picture, ToolOutput

MOST_PICTURE = 5_000_000
"""Bytes of a picture that are given on."""


def output_of(result: Any, takes_images: bool) -> ToolOutput:
    """A CallToolResult of the SDK as text and pictures; structured content only where no text says the same."""
    words: list[str] = []
    pictures: list[Picture] = []
    for block in result.content:
        if block.type == "image":
            picture = _picture(block.data) if takes_images else None
            words += [] if picture else [f"[A picture ({block.mime_type}) that cannot be shown here.]"]
            pictures += [picture] if picture else []
        else:
            words.append(_words(block))
    if result.structured_content is not None and not any(b.type == "text" and b.text.strip() for b in result.content):
        words.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    text = "\n".join(words) or ("[A picture.]" if pictures else "[The server gave an empty result.]")
    return ToolOutput(text, ok=not result.is_error, pictures=tuple(pictures))


def _words(block: Any) -> str:
    match block.type:
        case "text":
            return block.text
        case "resource_link":
            return f"[A link to {block.name}: {block.uri}]"
        case "resource" if hasattr(block.resource, "text"):
            return f"[{block.resource.uri}]\n{block.resource.text}"
        case "resource":
            return f"[{block.resource.uri}: {block.resource.mime_type or 'binary data'}, not shown]"
        case _:
            return f"[{block.type} ({getattr(block, 'mime_type', 'unknown')}), not shown]"


def _picture(data: str) -> Picture | None:
    try:
        found = base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        return None
    media = picture_type(found[:16])
    return Picture(found, media) if media and len(found) <= MOST_PICTURE else None
