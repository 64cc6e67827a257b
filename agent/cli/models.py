"""`refold models`: what can be used now, as it is named on the command line."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from agent.cli.common import told
from agent.exits import NO_MODEL, THREE_WAYS, Exit, Stop
from agent.models.discovery import Place, available
from agent.settings import Settings
from agent.workshop import options_of

Values = dict[str, Any]


def models(values: Values) -> int:
    """Lists the models of the configured server, of servers found on this machine, and the built-in one; exit 41 where
    there is none."""
    return told(lambda: _models(values))


def _models(values: Values) -> int:
    settings = Settings.load({}, os.environ)
    places = asyncio.run(available(options_of(settings)))
    if values["json"]:
        for place in places:
            for choice in place.models:
                print(json.dumps({"model": choice.spec, "window": choice.window, "at": place.base_url or place.title}))
    else:
        for place in places:
            print("\n".join(_lines(place, settings.model)))
    if not any(place.models for place in places):
        raise Stop(Exit.NO_MODEL, NO_MODEL, help=THREE_WAYS)
    return Exit.OK


def _lines(place: Place, chosen: str) -> list[str]:
    head = f"{place.title} ({place.base_url})" if place.base_url else place.title
    lines = [f"{head}: {place.problem}" if place.problem else head]
    for choice in place.models:
        window = f"{choice.window:,} tokens" if choice.window else "window not known"
        lines.append(f"  {choice.spec:<44} {window}{'  (in use)' if choice.spec == chosen else ''}")
    return lines
