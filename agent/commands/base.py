"""The seam to a slash command: one file with an async `run(face, words)`, whose docstring is its help.

The module's name is the command's. It may also have ALIASES (other names), TAKES (what may follow the name, as help
shows it: "[focus]"), WHILE_BUSY (True: it may run beside a turn) and `complete(face, words)` (what may follow, as
suggestions). A command talks to the person through a Face and knows nothing of terminals.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent.session import Session
from agent.settings import Settings
from runtime.events import Event


@dataclass(frozen=True)
class Choice:
    """One answer of `Face.choose`: the value it stands for, its words, a note beside them."""

    value: Any
    label: str
    note: str = ""


class Face(Protocol):
    """What a command can do with whoever sits in front of it."""

    @property
    def session(self) -> Session:
        """The session that is open now."""
        ...

    @property
    def settings(self) -> Settings: ...

    @property
    def answer(self) -> str:
        """The model's last answer, "" where there is none."""
        ...

    @property
    def keys(self) -> Sequence[tuple[str, str, str]]:
        """(keys, name of the action in `[keys]` or "", what they do), as they are now."""
        ...

    def say(self, text: str, role: str = "info") -> None:
        """One line or paragraph of refold's own; role: info, ok, warn, error."""
        ...

    def markdown(self, text: str) -> None:
        """A page of Markdown."""
        ...

    def table(self, rows: Sequence[Sequence[str]], head: Sequence[str] = (), title: str = "") -> None:
        """Rows of words in columns."""
        ...

    def gauge(self, parts: Sequence[tuple[str, int]], whole: int) -> None:
        """Shares of a whole, as bars with labels (tokens)."""
        ...

    def diff(self, text: str) -> None:
        """A unified diff, coloured."""
        ...

    async def choose(self, title: str, choices: Sequence[Choice], *, search: bool = False) -> Any | None:
        """Asks for one of several; None where the person leaves."""
        ...

    async def ask(self, label: str, text: str = "") -> str | None:
        """Asks for a line; None where the person leaves."""
        ...

    async def page(self, title: str, text: str) -> None:
        """Shows a long text to scroll through."""
        ...

    async def follow(self, events: AsyncIterator[Event]) -> None:
        """Shows events while they come."""
        ...

    async def send(self, text: str, shown: str = "") -> None:
        """Says something to the model, as if it had been typed; `shown` stands for it on the screen."""
        ...

    async def open(self, *, resume: str = "", fork: bool = False, name: str = "") -> None:
        """Closes the session and opens another one (a new one where nothing is named). Raises SessionError."""
        ...

    def put(self, text: str) -> None:
        """Puts a text into the input."""
        ...

    def copy(self, text: str) -> bool:
        """Puts a text on the clipboard; False where there is no way to."""
        ...

    def clear(self) -> None:
        """Clears the screen; the scrollback stays."""
        ...

    def set_theme(self, name: str) -> None:
        """Changes the colours. Raises ValueError."""
        ...

    def quit(self) -> None:
        """Ends the chat when the command is done."""
        ...


@dataclass(frozen=True)
class Command:
    """One slash command. `summary` is the first paragraph of its help; `while_busy`: it may run beside a turn."""

    name: str
    help: str
    run: Callable[[Face, str], Coroutine[Any, Any, None]]
    aliases: tuple[str, ...] = ()
    takes: str = ""
    complete: Callable[[Face, str], Sequence[str]] | None = None
    while_busy: bool = False
    own: str = ""
    """The file it comes from, where it is no command of refold's."""

    @property
    def summary(self) -> str:
        return self.help.partition("\n\n")[0].replace("\n", " ")


def load_commands() -> dict[str, Command]:
    """All commands of this package by name, aliases not included."""
    package = importlib.import_module(__package__ or "agent.commands")
    found: dict[str, Command] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        if info.name != "base" and not info.name.startswith("_"):
            command = _of_module(importlib.import_module(f"{package.__name__}.{info.name}"))
            found[command.name] = command
    return found


def _of_module(module: Any) -> Command:
    name = module.__name__.rpartition(".")[2].strip("_").replace("_", "-")
    return Command(
        name=name,
        help=inspect.getdoc(module) or "",
        run=module.run,
        aliases=tuple(getattr(module, "ALIASES", ())),
        takes=getattr(module, "TAKES", ""),
        complete=getattr(module, "complete", None),
        while_busy=getattr(module, "WHILE_BUSY", False),
    )


def nearest(commands: dict[str, Command], name: str) -> str:
    """The name or alias that was probably meant; "" where none is near."""
    names = [n for c in commands.values() for n in (c.name, *c.aliases)]
    return next(iter(difflib.get_close_matches(name.lower(), names, 1, 0.6)), "")


def unknown(commands: dict[str, Command], name: str) -> str:
    """What is said of a command that there is none of."""
    near = nearest(commands, name)
    return f"There is no command /{name}. {f'Is it /{near}?' if near else '/help lists them.'}"


def find(commands: dict[str, Command], name: str) -> Command | None:
    """The command of this name or alias."""
    return commands.get(name) or next((c for c in commands.values() if name in c.aliases), None)
