"""The command line as a table: its commands, their options and arguments.

main.py makes the parser of it, and the help page, the shell completion and the man page are printed from it, so that
they cannot differ; printing them costs no import of a parser.
"""

from __future__ import annotations

import keyword
from typing import Any, NamedTuple


class Option(NamedTuple):
    """One option: `kind` bool is a switch, list may be repeated. `values` are the words it takes. `setting`: the
    option is a value of Settings of the same name."""

    flags: tuple[str, ...]
    help: str
    kind: type = str
    metavar: str = "TEXT"
    values: tuple[str, ...] = ()
    setting: bool = False

    @property
    def name(self) -> str:
        """The name its value has: that of the first long flag (`continue_`, for continue is a word of Python's)."""
        word = next(f for f in self.flags if f.startswith("--"))[2:].replace("-", "_")
        return f"{word}_" if keyword.iskeyword(word) else word

    @property
    def checked(self) -> bool:
        """Whether the command line refuses other words than `values`; those of a setting are refused by Settings."""
        return bool(self.values) and not self.setting


class Argument(NamedTuple):
    """A positional argument; `many` takes all the words that are left."""

    name: str
    help: str
    many: bool = False


class Command(NamedTuple):
    """A subcommand. `run` names its function as module:function; it takes the values by name and returns an exit
    code. The module is imported when the command is chosen, which keeps --help and --version quick."""

    name: str
    help: str
    run: str
    options: tuple[Option, ...] = ()
    arguments: tuple[Argument, ...] = ()
    hidden: bool = False


MODES = ("plan", "ask", "edits", "auto", "yolo")
FORMATS = ("text", "json", "stream-json")

MODEL = Option(
    ("--model", "-m"),
    "The model, as provider:name: openai_chat:gpt-5, local, scripted:FILE",
    metavar="MODEL",
    setting=True,
)
CD = Option(("--cd", "-C"), "Work in this folder", metavar="DIR")
SET = Option(("--set",), "Any setting, for this run only (repeatable)", list, "NAME=VALUE")

SESSION = (
    MODEL,
    Option(("--continue", "-c"), "Go on with the newest session of this folder", bool),
    Option(
        ("--resume", "-r"), "Go on with a session: an id or its beginning, a name, a file; alone: choose", metavar="ID"
    ),
    Option(("--name", "-n"), "Name of the session: found by it, else made", metavar="NAME"),
    Option(("--fork-session",), "Go on in a copy; the session itself stays as it is", bool),
    Option(("--no-session-persistence",), "Keep the session only as long as the command runs", bool),
    CD,
    Option(("--add-dir",), "One more folder that may be written in (repeatable)", list, "DIR"),
    Option(("--permission-mode",), "What runs unasked", metavar="MODE", values=MODES, setting=True),
    Option(("--yolo",), "Ask for nothing: short for --permission-mode yolo", bool),
    Option(
        ("--allow", "--allowedTools"), "A rule of what may run unasked: 'bash(git log *)' (repeatable)", list, "RULE"
    ),
    Option(("--deny", "--disallowedTools"), "A rule of what may never run (repeatable)", list, "RULE"),
    Option(("--mcp-config",), "A file of MCP servers, as if it were your own (repeatable)", list, "FILE"),
    Option(("--no-mcp",), "Start no MCP servers", bool),
    Option(("--no-hooks",), "Run no hooks", bool),
    Option(("--effort",), "Reasoning effort, for models that have one", metavar="LEVEL", setting=True),
    Option(("--system-prompt",), "Use this system prompt in place of refold's own", metavar="TEXT", setting=True),
    Option(("--append-system-prompt",), "Add this to the system prompt", metavar="TEXT", setting=True),
    Option(("--bare",), "No AGENTS.md files, no user configuration beyond the model's", bool),
    SET,
)

ONE_SHOT = (
    Option(("--print", "-p"), "One task, then exit: the answer on stdout, progress on stderr", bool),
    Option(("--output-format", "-o"), "What stdout gets", metavar="FORMAT", values=FORMATS),
    Option(
        ("--input-format",),
        "What stdin brings: the prompt, or a conversation of JSON lines",
        metavar="FORMAT",
        values=("text", "stream-json"),
    ),
    Option(("--include-partial-messages",), "With stream-json: also the pieces of an answer as they come", bool),
    Option(
        ("--json-schema",), "The answer must be JSON of this schema (a file or the schema itself)", metavar="SCHEMA"
    ),
    Option(("--output-last-message",), "Write the final answer to this file as well", metavar="FILE"),
    Option(("--prompt-file",), "Read the prompt from this file", metavar="FILE"),
    Option(("--quiet", "-q"), "Nothing on stderr but the reason of a failure", bool),
    Option(("--max-turns",), "Most requests to the model", int, "N"),
    Option(("--max-tokens",), "Most tokens, read and written, over all requests", int, "N"),
    Option(("--max-budget-usd",), "Most money, in US dollars, where the price is known", float, "USD"),
    Option(("--timeout",), "Most time, in seconds", float, "SECONDS"),
    Option(
        ("--require-check",), "A command that must pass at the end; its failure goes back to the model", metavar="CMD"
    ),
)

NOT_FOR_TASKS = frozenset(
    {"continue_", "resume", "name", "fork_session", "no_session_persistence", "cd", "print", "prompt_file", "quiet"}
    | {"output_format", "input_format", "include_partial_messages", "output_last_message"}
)
TASK_OPTIONS = tuple(o for o in SESSION + ONE_SHOT if o.name not in NOT_FOR_TASKS)
"""What can be said for every task of a batch."""

PROMPT = Argument("prompt", "The task, in words; - reads it from stdin", many=True)

COMMANDS = (
    Command(
        "chat",
        "Talk with the agent (what `refold` alone does)",
        "agent.cli.chat:chat",
        SESSION + ONE_SHOT,
        (PROMPT,),
        hidden=True,
    ),
    Command(
        "run", "One task, then exit (what `refold -p` does)", "agent.cli.session:run", SESSION + ONE_SHOT, (PROMPT,)
    ),
    Command(
        "sessions",
        "The sessions of this folder: list, show, check, export, import, copy, rename or remove them",
        "agent.cli.sessions:sessions",
        (
            CD,
            Option(("--all", "-a"), "Those of all folders", bool),
            Option(("--tasks",), "Those of sub-agents as well", bool),
            Option(("--json",), "As JSON lines", bool),
            Option(("--format",), "What export writes", values=("md", "html", "json", "atif")),
            Option(("--output", "-o"), "Where export writes to; without it, to standard output", metavar="FILE"),
            Option(("--at",), "The number of the record that a fork goes up to", int, "N"),
            Option(("--yes", "-y"), "Remove without asking; needed where nobody can be asked", bool),
        ),
        (
            Argument("action", "list (default), show, path, verify, export, import, fork, rename or rm"),
            Argument("ref", "Which one: an id or its beginning, a name, latest; for import a file"),
            Argument("name", "The new name, for rename"),
        ),
    ),
    Command(
        "replay",
        "The requests of a session, built again from its log: list them, print one, or compare all",
        "agent.cli.replay:replay",
        (
            CD,
            Option(("--step",), "Print request number N as it was sent", int, "N"),
            Option(("--verify",), "Compare all with what was sent; exit code 5 where one differs", bool),
        ),
        (Argument("session", "Which one: an id or its beginning, a name, latest"),),
    ),
    Command(
        "audit",
        "What each answer could not see, what each fold cost, and what went wrong because of it",
        "agent.cli.audit:run",
        (
            CD,
            Option(("--json",), "As one JSON object", bool),
            Option(("--svg",), "Draw the window over the session into this file as well", metavar="FILE"),
        ),
        (Argument("session", "Which one: an id or its beginning, a name, latest (default)"),),
    ),
    Command(
        "batch",
        "Run many tasks (JSON lines), each in a worktree or copy of its own; started again, it goes on",
        "agent.batch.run:batch",
        (
            Option(("--jobs", "-j"), "Tasks side by side (default: one a processor)", int, "N"),
            Option(("--results",), "Where results go (default: TASKS.results.jsonl)", metavar="FILE"),
            Option(("--work",), "Where workspaces are made (default: TASKS.work)", metavar="DIR"),
            Option(("--keep",), "Keep git worktrees; their changes are kept as patches in any case", bool),
            Option(("--retry-failed",), "Do tasks again that have failed", bool),
            Option(("--on",), "here, ray (a cluster on this machine) or ray://HOST:PORT", metavar="PLACE"),
            *TASK_OPTIONS,
        ),
        (Argument("tasks", 'File of tasks: {"id", "prompt", "dir", "check", "model", "args"} a line'),),
    ),
    Command(
        "permissions",
        "What would happen to a command, and why: permissions explain 'CMD'; alone: the rules",
        "agent.cli.safety:permissions",
        (CD, Option(("--permission-mode",), "Judge as in this mode", metavar="MODE", values=MODES)),
        (Argument("words", "explain CMD, or list (default)", many=True),),
    ),
    Command(
        "hooks",
        "The hooks that would run here: when, what, from which file, and whether they are trusted",
        "agent.cli.hooks:hooks",
        (CD,),
        (Argument("action", "list (default)"),),
    ),
    Command(
        "trust",
        "What this folder brings along (hooks, rules, MCP servers ...) and whether it counts; grant or revoke",
        "agent.cli.trust:trust",
        (CD,),
        (Argument("action", "list (default; exit 3 where something is not trusted), grant, revoke"),),
    ),
    Command(
        "models",
        "The models that can be used now: of the configured server, of servers on this machine, the built-in one",
        "agent.cli.models:models",
        (Option(("--json",), "As JSON lines", bool),),
    ),
    Command(
        "mcp",
        "The MCP servers: list them with their tools, add or remove one of your own",
        "agent.cli.mcp:mcp",
        (
            CD,
            Option(("--env", "-e"), "With add: a variable of its environment (repeatable)", list, "NAME=VALUE"),
            Option(("--header", "-H"), "With add URL: a header of each request (repeatable)", list, "NAME:VALUE"),
            Option(("--network",), "With add: it may use the network", bool),
            Option(("--permission-mode",), "With list: start them as in this mode", metavar="MODE", values=MODES),
        ),
        (
            Argument("action", "list (default), add or rm"),
            Argument("name", "Which server"),
            Argument("words", "With add: its URL, or -- and its command line", many=True),
        ),
    ),
    Command("doctor", "What works here, what does not, and what would mend it", "agent.cli.safety:doctor", (CD,)),
    Command(
        "demo",
        "See it work: a real task with a real model, then a recorded tour of folding and resuming",
        "agent.demo.run:demo",
        (MODEL, Option(("--recorded",), "Only the tour: offline, no model needed, some seconds", bool)),
    ),
    Command(
        "completion",
        "Print the completion script of a shell",
        "agent.cli.printed:completion",
        (),
        (Argument("shell", "bash, zsh or fish"),),
    ),
    Command("man", "Print the man page (roff)", "agent.cli.printed:man"),
)


def find(name: str) -> Command | None:
    """The command of this name."""
    return next((c for c in COMMANDS if c.name == name), None)


def normalise(argv: list[str]) -> list[str]:
    """The words as the parser takes them: `chat` in front where no command is named, and a bare --resume made one
    with a value ("?": choose)."""
    words = list(argv) if argv and find(argv[0]) else ["chat", *argv]
    out: list[str] = []
    for n, word in enumerate(words):
        if word == "--":
            return out + words[n:]
        alone = n + 1 == len(words) or words[n + 1].startswith("-")
        out.append("--resume=?" if word in ("--resume", "-r") and alone else word)
    return out


def help_page(command: Command | None = None) -> str:
    """What --help prints, for the whole program or one command."""
    if command is None:
        chat = COMMANDS[0]
        listed = [(c.name, c.help) for c in COMMANDS if not c.hidden]
        return "\n".join(
            [
                "Usage: refold [OPTIONS] [PROMPT...]      the chat, or with -p one task",
                "       refold COMMAND [OPTIONS]         `refold COMMAND --help` tells more",
                "",
                "A terminal coding agent. A conversation is folded, never cut.",
                "",
                "Commands:",
                *_columns(listed),
                "",
                "Options:",
                *_columns([_row(o) for o in chat.options]),
                *_columns([("--version, -V", "Print the version"), ("--help", "Print this")]),
            ]
        )
    words = "".join(f" [{a.name.upper()}{'...' if a.many else ''}]" for a in command.arguments)
    lines = [f"Usage: refold {command.name} [OPTIONS]{words}", "", command.help, ""]
    if command.arguments:
        lines += ["Arguments:", *_columns([(a.name.upper(), a.help) for a in command.arguments]), ""]
    return "\n".join([*lines, "Options:", *_columns([*map(_row, command.options), ("--help", "Print this")])])


def _row(option: Option) -> tuple[str, str]:
    flags = ", ".join(option.flags)
    if option.kind is not bool:
        flags += f" {'|'.join(option.values) or option.metavar}"
    return flags, option.help


def _columns(rows: list[tuple[str, str]], width: int = 34) -> list[str]:
    out: list[str] = []
    for left, right in rows:
        out += [f"  {left:<{width}}{right}"] if len(left) < width else [f"  {left}", f"  {'':<{width}}{right}"]
    return out


def settings_flags(values: dict[str, Any]) -> dict[str, Any]:
    """Of a command's values those that are settings, for Settings.load."""
    names = {o.name for o in SESSION if o.setting}
    return {k: v for k, v in values.items() if k in names and v is not None}
