"""Programs that run other programs: what they run becomes a part of its own.

A wrapper that does nothing else (timeout, nice, xargs, sh -c ...) is transparent: only what it runs has to be allowed.
Others (sudo, ssh, watch ...) have to be allowed themselves, and what they run as well.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.permissions.shell.model import Part, Word, names

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish"})


@dataclass(frozen=True)
class Wrapper:
    """How a program names the command it runs: `valued` options take the next word, `operands` words stand before it.
    `assigns`: NAME=value may stand before it. `joined`: its words are joined and read as shell text. `added`: it
    appends words that nobody knows beforehand."""

    valued: frozenset[str] = frozenset()
    operands: int = 0
    transparent: bool = False
    assigns: bool = False
    joined: bool = False
    added: bool = False


def _wrapper(valued: str = "", operands: int = 0, **flags: bool) -> Wrapper:
    return Wrapper(frozenset(valued.split()), operands, **flags)


_SUDO = "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot --close-from --role --type"
WRAPPERS: dict[str, Wrapper] = {
    "timeout": _wrapper("-s --signal -k --kill-after", 1, transparent=True),
    "time": _wrapper("-f --format -o --output", transparent=True),
    "nice": _wrapper("-n --adjustment", transparent=True),
    "ionice": _wrapper("-c -n --class --classdata", transparent=True),
    "nohup": _wrapper(transparent=True),
    "setsid": _wrapper(transparent=True),
    "stdbuf": _wrapper("-i -o -e --input --output --error", transparent=True),
    "command": _wrapper(transparent=True),
    "builtin": _wrapper(transparent=True),
    "exec": _wrapper("-a", transparent=True),
    "coproc": _wrapper(transparent=True),
    "env": _wrapper("-u --unset -C --chdir -a --argv0", assigns=True, transparent=True),
    "xargs": _wrapper(
        "-I -J -R -S -n -P -L -d -E -s -a --max-args --max-procs --delimiter --max-chars --arg-file --process-slot-var",
        transparent=True,
        added=True,
    ),
    "busybox": _wrapper(transparent=True),
    "toybox": _wrapper(transparent=True),
    "chrt": _wrapper("-T -P -D", 1),
    "taskset": _wrapper("", 1),
    "sudo": _wrapper(_SUDO, assigns=True),
    "doas": _wrapper("-u -C"),
    "pkexec": _wrapper("--user"),
    "run0": _wrapper("-u -g -D --user --group --chdir"),
    "chroot": _wrapper("", 1),
    "unshare": _wrapper("-S -G -R -w --setuid --setgid --root --wd"),
    "nsenter": _wrapper("-t -S -G --target"),
    "fakeroot": _wrapper(),
    "strace": _wrapper("-o -e -p -s -u -E -a -O -I -P -S -b -X -U"),
    "ltrace": _wrapper("-o -e -p -s -u -n -l"),
    "valgrind": _wrapper(),
    "watch": _wrapper("-n --interval -q --equexit", joined=True),
    "flock": _wrapper("-w -E --timeout --conflict-exit-code", 1),
    "unbuffer": _wrapper(),
    "caffeinate": _wrapper("-t -w"),
    "chronic": _wrapper(),
    "parallel": _wrapper("-j -n -N -I -a -S --jobs --delay", joined=True, added=True),
    "ssh": _wrapper("-i -p -l -o -F -L -R -D -b -c -J -W -E", 1, joined=True),
    "systemd-run": _wrapper("-p -u --unit --property"),
    "dbus-run-session": _wrapper(),
    "xvfb-run": _wrapper("-s -n"),
    "eval": _wrapper(transparent=True, joined=True),
    # In `time while rm x; do ...` the grammar takes what stands behind `time` for a command.
    **dict.fromkeys(("while", "until", "if", "elif", "then", "else", "do", "!", "{"), _wrapper(transparent=True)),
}
_TEXT_OPTIONS = {
    "su": ("-c", "--command"), "runuser": ("-c", "--command"), "script": ("-c", "--command"),
    "flock": ("-c", "--command"), "nix-shell": ("--run", "--command"), "watchexec": ("-x",), "npx": ("-c", "--call"),
    "mapfile": ("-C",), "readarray": ("-C",), "complete": ("-C",), "compgen": ("-C",),
}  # fmt: skip
_GIT_TEXT = {
    "rebase": ("-x", "--exec"), "difftool": ("-x", "--extcmd"),
    "filter-branch": ("--tree-filter", "--index-filter", "--msg-filter", "--env-filter", "--commit-filter"),
}  # fmt: skip
_INPUTS = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FD_RUNS = frozenset({"-x", "--exec", "-X", "--exec-batch"})
_MAX_STARTS = 16
"""Words of a wrapper that are tried as the beginning of its command where that cannot be known."""
_PLACES = re.compile(r"\{[/.#%\w]*\}")
"""Where find, fd and parallel put a name: {} {/} {.} {1} ..."""
_LOST = Word("…", known=False, bare=False)


@dataclass(frozen=True)
class Found:
    """What a part runs: other parts, shell texts (each with how it is reached), and whether it is transparent."""

    parts: tuple[Part, ...] = ()
    texts: tuple[tuple[Word, str], ...] = ()
    transparent: bool = False


def unwrap(part: Part) -> Found:
    """What one part runs; empty where it runs nothing that can be told from its words."""
    program = part.program
    if program in SHELLS:
        return _shell(part)
    if program in ("find", "gfind"):
        return _marked(part, _FIND_RUNS, program)
    if program in ("fd", "fdfind"):
        return _marked(part, _FD_RUNS, program)
    if program == "git":
        return _git(part)
    if program in ("source", ".") and part.script and part.args and part.args[0].text in _INPUTS:
        return Found(texts=((part.script, f"{program} <<"),))
    if program == "alias":
        given = [replace(w, text=w.text.partition("=")[2]) for w in part.args if "=" in w.text]
        return Found(texts=tuple((w, "alias") for w in given))
    if program == "trap" and part.args:
        return Found(texts=((part.args[0], "trap"),))
    texts = _option_texts(part.args, _TEXT_OPTIONS.get(program, ()), program)
    if texts:
        return Found(texts=texts)
    wrapper = WRAPPERS.get(program)
    return _wrapped(part, wrapper) if wrapper else Found()


def _wrapped(part: Part, wrapper: Wrapper) -> Found:
    index, env = _first_operand(part.args, wrapper)
    rest = part.args[index:]
    if part.program == "command" and part.args and part.args[0].text in ("-v", "-V"):
        return Found()
    if part.program == "env" and (split := _env_split(part.args)):
        return Found(parts=(part.with_words((_LOST,), "env -S"),), texts=((split, "env -S"),))
    if part.program == "coproc" and any(w.text == "{" for w in part.args[:2]):
        rest = part.args[[w.text for w in part.args].index("{") + 1 :]
    if not all(w.known and not w.glob for w in part.args[:index]):
        # An option or its value is made at run time, so the command may begin at any later word.
        starts = range(min(len(part.args), _MAX_STARTS))
        return Found(parts=tuple(part.with_words(part.args[i:], part.program) for i in starts))
    if not rest:
        remote = part.program == "ssh" and part.script
        return Found(texts=((part.script, "ssh <<"),)) if remote and part.script else Found()
    if wrapper.joined:
        if not all(w.known for w in rest):
            # What is known of it can still be read: `ssh host rm -rf "$x"`.
            inner = part.with_words((*rest, _LOST), part.program)
            return Found(parts=(inner,), transparent=wrapper.transparent)
        text = " ".join(w.text for w in rest)
        text = _PLACES.sub('"$x"', text) if wrapper.added else text
        return Found(texts=((Word(text), part.program),), transparent=wrapper.transparent)
    mark = _replaced(part.args[:index]) if wrapper.added else ""
    if mark:
        rest = tuple(replace(w, known=False) if mark in w.text else w for w in rest)
    words = (*rest, _LOST) if wrapper.added else tuple(rest)
    inner = replace(part.with_words(words, part.program), env=(*part.env, *env))
    if not wrapper.added:
        inner = replace(inner, script=part.script)
    return Found(parts=(inner,), transparent=wrapper.transparent)


def _replaced(options: Sequence[Word]) -> str:
    """What xargs puts the lines in place of; "" where it adds them at the end."""
    for index, word in enumerate(options):
        text = word.text
        if text in ("-I", "-J") and index + 1 < len(options):
            return options[index + 1].text
        if found := re.match(r"-[0rtpx]*(?:I|i)|--replace=?", text):
            return text[found.end() :] or "{}"
    return ""


def _env_split(args: Sequence[Word]) -> Word | None:
    """The text that `env -S` splits into a command and runs, with the words after it; None without that option."""
    for index, word in enumerate(args):
        text = word.text
        if not text.startswith("-") and "=" not in text:
            return None
        joined = text.partition("=")[2] if text.startswith("--s") else ""
        if not text.startswith("--") and "S" in text:
            joined = text.partition("S")[2]
        elif not text.startswith("--s"):
            continue
        rest = args[index + 1 :]
        return Word(" ".join([joined, *(w.text for w in rest)]), known=all(w.known for w in (word, *rest)))
    return None


def own_words(part: Part) -> Sequence[Word]:
    """The arguments of a wrapper that stand before the command it runs."""
    index, _ = _first_operand(part.args, WRAPPERS[part.program])
    return part.args[:index]


def _cluster(word: Word) -> str:
    return word.text[1:] if word.text.startswith("-") and not word.text.startswith("--") else ""


def _first_operand(args: Sequence[Word], wrapper: Wrapper) -> tuple[int, list[tuple[str, Word]]]:
    """Where the command of a wrapper begins among its arguments, and the assignments before it."""
    index, operands, env = 0, wrapper.operands, []
    while index < len(args):
        word = args[index]
        if word.known and word.text == "--":
            index += 1
            wrapper = replace(wrapper, valued=frozenset())
            if operands == 0:
                break
        elif word.known and word.text.startswith("-") and len(word.text) > 1:
            index += 2 if word.text in wrapper.valued else 1
        elif wrapper.assigns and "=" in word.text and not word.text.startswith("="):
            name, _, value = word.text.partition("=")
            env.append((name, Word(value, known=word.known)))
            index += 1
        elif operands:
            operands -= 1
            index += 1
        else:
            break
    return min(index, len(args)), env


def _shell(part: Part) -> Found:
    index = 0
    args = part.args
    while index < len(args):
        text = args[index].text
        if not args[index].known:
            return Found(parts=(part.with_words((_LOST,), part.program),))
        if text == "--" or not text.startswith(("-", "+")) or text == "-":
            break
        if "c" in _cluster(args[index]):
            return _shell_text(part, index)
        index += 2 if text in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file") else 1
    if index < len(args) and args[index].text not in ("-", "--", *_INPUTS):
        return Found()
    return Found(texts=((part.script, f"{part.program} <<"),), transparent=True) if part.script else Found()


def _shell_text(part: Part, index: int) -> Found:
    # Further options may stand between -c and its text.
    rest = part.args[index + 1 :]
    while rest and rest[0].known and rest[0].text.startswith(("-", "+")):
        rest = rest[2:] if rest[0].text in ("-o", "+o", "-O", "+O") else rest[1:]
    if not rest:
        return Found()
    return Found(texts=((rest[0], f"{part.program} -c"),), transparent=True)


def _marked(part: Part, marks: frozenset[str], via: str) -> Found:
    found: list[Part] = []
    args = part.args
    for index, word in enumerate(args):
        mark, _, joined = word.text.partition("=")
        if mark in marks:
            rest = (*((replace(word, text=joined),) if joined else ()), *args[index + 1 :])
            end = next((i for i, w in enumerate(rest) if w.text in (";", "+") and i), len(rest))
            words = tuple(replace(w, known=False) if _PLACES.search(w.text) else w for w in rest[:end])
            if marks is _FD_RUNS and all(w.known for w in words):
                words = (*words, _LOST)
            if words:
                found.append(part.with_words(words, f"{via} {word.text}"))
    return Found(parts=tuple(found))


def _asks_for(text: str, option: str) -> bool:
    """Whether a word is an option, or other short ones and that one last: -c, -qc."""
    return text == option or (len(option) == 2 and re.fullmatch(rf"-[a-zA-Z]+{option[1]}", text) is not None)


def _option_texts(args: Sequence[Word], options: Sequence[str], via: str) -> tuple[tuple[Word, str], ...]:
    found: list[tuple[Word, str]] = []
    for index, word in enumerate(args):
        for option in options:
            if _asks_for(word.text, option) and index + 1 < len(args):
                found.append((args[index + 1], f"{via} {option}"))
            elif option.startswith("--") and word.text.startswith(option + "="):
                found.append((replace(word, text=word.text[len(option) + 1 :]), f"{via} {option}"))
    return tuple(found)


def _git(part: Part) -> Found:
    texts: list[tuple[Word, str]] = []
    args = part.args
    for index, word in enumerate(args):
        joined = word.text[2:] if word.text.startswith("-c") and len(word.text) > 2 else ""
        setting = args[index + 1].text if word.text == "-c" and index + 1 < len(args) else joined
        name, _, value = setting.partition("=")
        if name.lower().startswith("alias.") and value:
            texts.append((Word(value[1:] if value.startswith("!") else f"git {value}"), "git alias"))
        elif name.lower().endswith(
            ("command", "pager", "editor", "external", "fsmonitor", "program", "askpass", "cmd")
        ):
            texts.append((Word(value), f"git -c {name}"))
    name, rest = git_subcommand(args)
    if (name, rest[0].text if rest else "") == ("submodule", "foreach"):
        run = tuple(itertools.dropwhile(lambda w: w.text.startswith("-"), rest[1:]))
        if len(run) > 1:
            return Found(parts=(part.with_words(run, "git submodule foreach"),), texts=tuple(texts))
        texts += [(w, "git submodule foreach") for w in run]
    if name == "config":
        texts += [(replace(w, text=w.text[1:]), "git alias") for w in rest if w.text.startswith("!")]
    if name == "bisect" and rest and rest[0].text == "run":
        return Found(parts=(part.with_words(tuple(rest[1:]), "git bisect run"),)) if rest[1:] else Found()
    texts += _option_texts(rest, _GIT_TEXT.get(name, ()), f"git {name}")
    return Found(texts=tuple(texts))


_GIT_VALUED = names(
    """
    -C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env --attr-source --list-cmds
    """
)


def git_subcommand(args: Sequence[Word]) -> tuple[str, Sequence[Word]]:
    """The sub-command of a git line and what follows it; ("", ()) where there is none."""
    index = 0
    while index < len(args) and args[index].text.startswith("-"):
        index += 2 if args[index].text in _GIT_VALUED else 1
    return (args[index].text, args[index + 1 :]) if index < len(args) else ("", ())
