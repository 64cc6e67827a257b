"""What every model behind a server has: a profile, a connection, a window that is learned, a price."""

from __future__ import annotations

import asyncio

from agent.models.base import ModelOptions
from agent.models.connection import Connection
from agent.models.introspect import ask_server
from agent.models.prices import has_prices, with_cost
from agent.models.profiles import profile_for
from agent.models.windows import Window
from transcripts.records import Usage

SILENT = ("https://api.openai.com", "https://api.anthropic.com")
"""Servers that do not tell the window, so they are not asked."""


class RemoteModel:
    """The part of a model that does not depend on the protocol. Raises ModelError CONFIG where the URL or the person's
    profiles cannot be used."""

    def __init__(self, model: str, options: ModelOptions, *, provider: str, default_url: str) -> None:
        self.model = model
        self.options = options
        self.name = f"{options.extra.get('label', provider)}:{model}"
        self.profile = profile_for(model, options.home)
        self.connection = Connection(options.base_url or default_url, options)
        self._window = Window(self.connection.base_url, model, options, self.profile.window)
        self._asking = asyncio.Lock()
        self._asked = self.connection.base_url.startswith(SILENT)
        self._pricing: asyncio.Future[Usage] | None = None

    @property
    def window(self) -> int:
        """The window in tokens."""
        return self._window.tokens

    @property
    def window_source(self) -> str:
        """Who said so: learned, set, asked, table or default."""
        return self._window.source

    @property
    def small(self) -> bool:
        """Whether it is told little: few tools, the short system prompt."""
        return self.profile.small

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools it gets; () for all."""
        return self.profile.tools

    @property
    def takes_images(self) -> bool:
        """Whether pictures can be shown to it."""
        return self.profile.takes_images

    @property
    def edit_format(self) -> str:
        """edit, apply_patch or whole."""
        return self.profile.edit_format

    def learn_window(self, tokens: int) -> None:
        """Remembers what an error told: from now on, and for the next sessions with this server and model."""
        self._window.learn(tokens)

    async def prepare(self) -> None:
        """Does before the first request what takes time: imports the SDK, asks the server for the window. Nothing that
        fails here is an error yet."""
        await asyncio.gather(self.connection.warm(), self.ask_window())

    async def ask_window(self) -> None:
        """Asks the server for the window, once, unless the person has set it; takes two seconds at most."""
        async with self._asking:
            if self._asked or self._window.source == "set":
                return
            self._asked = True
            server = await ask_server(self.connection.base_url, self.model, self.options.api_key)
            self._window.ask(server.window_of(self.model) if server else None)

    async def close(self) -> None:
        """Closes idle connections."""
        await self.connection.close()

    def begin_pricing(self) -> None:
        """Loads the price list while the server works, so that nobody waits for it."""
        if self._pricing is None and has_prices(self.connection.base_url):
            loop = asyncio.get_running_loop()
            self._pricing = loop.run_in_executor(None, with_cost, Usage(input=1, output=1), self.model, self._url)

    async def priced(self, usage: Usage) -> Usage:
        """The usage with its cost, where the price is known."""
        if not has_prices(self._url):
            return usage
        return await asyncio.to_thread(with_cost, usage, self.model, self._url)

    @property
    def _url(self) -> str:
        return self.connection.base_url
