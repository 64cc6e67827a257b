"""The first start in the chat: what there is, a choice, three lines on who decides what."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from agent import first_run
from agent.clean import one_line
from agent.first_run import Offer
from agent.settings import Settings
from agent.terminal.deck import Deck
from agent.terminal.dialogs import Option, Picker
from agent.terminal.theme import Theme

ELSEWHERE = Offer("Another server, or a key", "you type its address")


async def first_start(deck: Deck, settings: Settings, env: Mapping[str, str]) -> Settings | None:
    """The settings with the model that was chosen; None where the person leaves."""
    deck.activity.begin("looking for models")
    deck.start_ticking(lambda n: deck.screen.refresh())
    try:
        offers = await asyncio.to_thread(first_run.find_offers, settings, env)
    finally:
        deck.stop_ticking()
        deck.activity.end()
    while True:
        made = await _choose(deck, settings, [*offers, ELSEWHERE])
        if made is None:
            return None
        if made.model:
            await _keep(deck, made, env)
            deck.screen.print_raw(modes(deck.screen.theme, deck.screen.width))
            return made


async def _choose(deck: Deck, settings: Settings, offers: list[Offer]) -> Settings | None:
    """One choice; settings without a model where it led nowhere and has to be made again."""
    options = [Option(o, o.label, note=o.note) for o in offers]
    offer = await deck.pick(lambda: Picker("Which model shall refold use?", options))
    if offer is None:
        return None
    if not offer.provider:
        deck.screen.print_raw(_line(deck, f"Install it first: {offer.note.removeprefix('needs: ')}"))
        return settings
    if offer is ELSEWHERE:
        offer = await _elsewhere(deck)
        if offer is None:
            return settings
    if offer.provider == "local":
        return first_run.chosen(settings, offer, "")
    model = await _model(deck, offer)
    return first_run.chosen(settings, offer, model) if model else settings


async def _elsewhere(deck: Deck) -> Offer | None:
    url = await deck.fill("Address, up to and with /v1 › ", "https://api.openai.com/v1", escape="back")
    url = (url or "").strip().rstrip("/")
    if not url:
        return None
    key = await deck.fill("Key (empty: none) › ", secret=True, escape="back")
    return None if key is None else Offer("", "", base_url=url, key=key.strip() or first_run.NO_KEY)


async def _model(deck: Deck, offer: Offer) -> str:
    names = offer.models or await asyncio.to_thread(first_run.models_of, offer.base_url, offer.key, 5.0)
    if not names:
        deck.screen.print_raw(_line(deck, f"{offer.base_url} does not answer, or lists no models."))
        return (await deck.fill("Name of the model › ", offer.model, escape="back") or "").strip()
    start = names.index(offer.model) if offer.model in names else 0
    options = [Option(n, n) for n in names]
    return await deck.pick(lambda: Picker("Which of its models?", options, search=True, start=start), called=True) or ""


async def _keep(deck: Deck, settings: Settings, env: Mapping[str, str]) -> None:
    options = [Option(True, "Yes, keep this choice", "y"), Option(False, "Only for now", "n")]
    if await deck.pick(lambda: Picker(f"Use {settings.model} from now on?", options)):
        try:
            written = first_run.keep(settings.home, settings, env)
        except OSError as error:
            deck.screen.print_raw(_line(deck, f"It could not be kept: {error}"))
            return
        deck.screen.print_raw(_line(deck, f"Kept in {' and '.join(str(p) for p in written)}"))


def modes(theme: Theme, width: int) -> str:
    """Three lines on who decides what."""
    bold, dim, off = "\x1b[1m", "\x1b[90m" if theme.color else "", "\x1b[0m"
    rows = [f"{bold}{name:<5}{off} {dim}{one_line(words, max(8, width - 7))}{off}" for name, words in first_run.MODES]
    return "\n".join(rows) + "\n"


def _line(deck: Deck, words: str) -> str:
    return f"{one_line(words, max(8, deck.screen.width - 1))}\n"
