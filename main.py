"""The command `refold`: words -> a command of agent/cli/table.py. The only place that knows typer.

Nothing slow is imported at the top: until the first edge (agent/edges.py) is crossed, Ctrl-C would be a traceback.
"""

from __future__ import annotations

import importlib
import os
import sys

# Installed, our packages lie beside this file, under refold/; they must be found before any folder of the user's that
# happens to be called tools/ or runtime/ (PYTHONPATH=. is common). In a checkout this changes nothing.
_HOME = os.path.dirname(os.path.realpath(__file__))
if sys.path[:1] != [_HOME]:
    sys.path.insert(0, _HOME)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent.cli.table import Argument, Command, Option


def app() -> None:
    """Runs the command line and exits with its code; quietly with 1 where nobody reads what it prints (`| head`)."""
    signal = importlib.import_module("_signal")  # the part of `signal` that is there at once
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    edges = importlib.import_module("agent.edges")
    edges.enter()
    sys.exit(edges.left_with(lambda: run(sys.argv[1:])))


def run(argv: list[str]) -> int:
    """Runs the words of one command line; gives the exit code. What is plainly right needs no parser."""
    cli, quick = importlib.import_module("agent.cli.table"), importlib.import_module("agent.cli.quick")
    if argv in (["--version"], ["-V"], ["version"]):
        print(f"refold {importlib.import_module('agent.version').VERSION}")
        return 0
    if found := quick.mistyped(argv):
        print(f"refold: {found}", file=sys.stderr)
        return 2
    words = argv[: argv.index("--")] if "--" in argv else argv
    if "--help" in words or words == ["-h"] or words == ["help"]:
        print(cli.help_page(cli.find(argv[0])))
        return 0
    words = cli.normalise(argv)
    command = cli.find(words[0])
    values = quick.values_of(command, words[1:]) if command else None
    if command and values is not None:
        return _call(command, values)
    return _parsed(words, "refold" if words[0] not in argv[:1] else f"refold {words[0]}")


def _call(command: Command, values: dict[str, Any]) -> int:
    module, name = command.run.split(":")
    return getattr(importlib.import_module(module), name)(values)


def _parsed(words: list[str], typed: str) -> int:
    """Lets the parser run the words; `typed` is what it is called as in a refusal."""
    try:
        return _parser()(args=words, prog_name="refold", standalone_mode=False) or 0
    except Exception as error:
        why = getattr(error, "format_message", None)  # the parser's own refusals have one, whatever their class
        if why is None:
            raise
        context = getattr(error, "ctx", None)
        usage = context.get_usage() if context else "Usage: refold [OPTIONS] [PROMPT]..."
        usage = usage.replace(f"refold {words[0]}", typed, 1)
        print(f"{usage}\nTry '{typed} --help' for help.\n\nrefold: {why()}", file=sys.stderr)
        return int(getattr(error, "exit_code", 2))


def _parser() -> Any:
    import typer

    made = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    for command in importlib.import_module("agent.cli.table").COMMANDS:
        made.command(command.name, help=command.help, hidden=command.hidden)(_function(command))
    return made


def _function(command: Command) -> Any:
    """A function with the signature that typer reads the options from."""
    import inspect

    def body(**values: Any) -> None:
        sys.exit(_call(command, values))

    shapes = [_argument(a) for a in command.arguments] + [_option(o) for o in command.options]
    body.__annotations__ = {name: hint for name, hint, _ in shapes}
    body.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d, annotation=h) for n, h, d in shapes]
    )
    return body


def _option(option: Option) -> tuple[str, Any, Any]:
    """(name, type with typer's options, default) of one option."""
    from typing import Annotated, Literal

    import typer

    types: dict[type, tuple[Any, Any]] = {bool: (bool, False), list: (list[str], [])}
    hint, default = types.get(option.kind, (option.kind | None, None))
    if option.checked:
        hint = Literal[option.values] | None  # type: ignore[valid-type]
    shown = typer.Option(*option.flags, help=option.help, metavar=None if option.kind is bool else option.metavar)
    return option.name, Annotated[hint, shown], default


def _argument(argument: Argument) -> tuple[str, Any, Any]:
    from typing import Annotated

    import typer

    hint, default = (list[str], []) if argument.many else (str, "")
    return argument.name, Annotated[hint, typer.Argument(help=argument.help, metavar=argument.name.upper())], default


if __name__ == "__main__":
    app()
