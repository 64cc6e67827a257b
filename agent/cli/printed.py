"""What is printed from the table of the command line: shell completion and the man page."""

from __future__ import annotations

import sys
from typing import Any

from agent.cli.table import COMMANDS, Command, Option
from agent.exits import MEANING
from agent.settings import rows
from agent.version import VERSION

SHELLS = ("bash", "zsh", "fish")


def completion(values: dict[str, Any]) -> int:
    """Prints the completion script of a shell."""
    make = {"bash": _bash, "zsh": _zsh, "fish": _fish}.get(values["shell"])
    if make is None:
        print(f"refold: which shell? {', '.join(SHELLS)}", file=sys.stderr)
        return 2
    print(make())
    return 0


def _listed() -> list[Command]:
    return [c for c in COMMANDS if not c.hidden]


def _flags(command: Command) -> list[str]:
    return [flag for o in command.options for flag in o.flags if flag.startswith("--")]


def _valued(options: tuple[Option, ...]) -> dict[str, tuple[str, ...]]:
    return {flag: o.values for o in options for flag in o.flags if o.values}


def _bash() -> str:
    names = " ".join(c.name for c in _listed())
    cases = "\n".join(f"        {c.name}) words='{' '.join(_flags(c))}' ;;" for c in _listed())
    values = "\n".join(
        f"        {flag}) COMPREPLY=($(compgen -W '{' '.join(v)}' -- \"$word\")); return ;;"
        for flag, v in _valued(COMMANDS[0].options).items()
    )
    return f"""# refold completion for bash:  source <(refold completion bash)
_refold() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words
    case $before in
{values}
    esac
    case ${{COMP_WORDS[1]}} in
{cases}
        *) words='{names} {" ".join(_flags(COMMANDS[0]))}' ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ ${{#COMPREPLY[@]}} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -F _refold refold"""


def _zsh() -> str:
    return f"""#compdef refold
# refold completion for zsh:  source <(refold completion zsh)
autoload -U +X bashcompinit && bashcompinit
{_bash()}"""


def _fish() -> str:
    lines = ["# refold completion for fish:  refold completion fish | source"]
    lines += [f"complete -c refold -n __fish_use_subcommand -a {c.name} -d {_quoted(c.help)}" for c in _listed()]
    for option in COMMANDS[0].options:
        flags = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in option.flags)
        values = f" -x -a '{' '.join(option.values)}'" if option.values else "" if option.kind is bool else " -r"
        lines.append(f"complete -c refold {flags}{values} -d {_quoted(option.help)}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def man(values: dict[str, Any]) -> int:
    """Prints the man page."""
    print(man_page())
    return 0


def man_page() -> str:
    """The man page in roff."""
    out = [f'.TH REFOLD 1 "" "refold {VERSION}" "User Commands"', ".SH NAME"]
    out += ["refold \\- a terminal coding agent whose conversation is folded, never cut", ".SH SYNOPSIS"]
    out += [
        ".B refold",
        "[\\fIOPTIONS\\fR] [\\fIPROMPT\\fR...]",
        ".br",
        ".B refold",
        "\\fICOMMAND\\fR [\\fIOPTIONS\\fR]",
    ]
    out += [".SH COMMANDS"]
    for command in _listed():
        words = " ".join(f"[\\fI{a.name.upper()}\\fR]" for a in command.arguments)
        out += [".TP", f".B refold {command.name} \\fR{words}", _roff(command.help)]
    out += [".SH OPTIONS"]
    for option in COMMANDS[0].options:
        flags = ", ".join(f"\\fB{_roff(f)}\\fR" for f in option.flags)
        value = "" if option.kind is bool else f" \\fI{'|'.join(option.values) or option.metavar}\\fR"
        out += [".TP", flags + value, _roff(option.help)]
    out += [".SH EXIT STATUS"]
    for code, meaning in MEANING.items():
        out += [".TP", f".B {int(code)}", _roff(meaning)]
    out += [".SH ENVIRONMENT", "The same names may stand in ~/.refold/.env, in lower case in ~/.refold/config.toml."]
    for _, names, default, doc in rows():
        shown = "" if default in ("", None) else f" (default {default})"
        out += [".TP", f".B {names}", _roff(doc + shown)]
    out += [".SH FILES", ".TP", ".I ~/.refold", "Sessions, cache, .env and config.toml; REFOLD_HOME moves it."]
    return "\n".join(out)


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def env_example() -> str:
    """The file .env.example: every setting with its default and unit."""
    out = [
        "# Settings of refold. Copy this file to ~/.refold/.env (or, in a checkout, to .env beside main.py) and take",
        "# the # away where you want another value. Flags and the environment stand above it; the .env of a folder",
        "# that is worked on is never read. In ~/.refold/config.toml the same names stand in lower case.",
    ]
    for name, names, default, doc in rows():
        short = next((n for n in names.split(" or ") if not n.startswith("REFOLD_")), f"REFOLD_{name.upper()}")
        shown = "" if default in ("", None) else str(default).lower() if isinstance(default, bool) else default
        out += ["", f"# {doc}", f"# {short}={shown}"]
    return "\n".join(
        [
            *out,
            "",
            "# folder of sessions, cache and configuration (in the environment only)",
            "# REFOLD_HOME=~/.refold",
            "",
        ]
    )
