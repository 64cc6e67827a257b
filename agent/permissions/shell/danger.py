"""What could not be taken back, whatever the mode: named in every question, and never run unasked."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile

from agent.permissions.shell import hidden
from agent.permissions.shell.line import Line
from agent.permissions.shell.model import Part, Word, names
from agent.permissions.shell.streams import of_stream
from agent.permissions.shell.unwrap import SHELLS, WRAPPERS, git_subcommand

_PRIVILEGE = frozenset({"sudo", "doas", "su", "pkexec", "run0", "runuser", "sudoedit", "visudo"})
_SYSTEM = names(
    """
    shutdown reboot halt poweroff mkswap swapoff wipefs fdisk sfdisk gdisk sgdisk cfdisk parted blkdiscard
    hdparm cryptsetup lvremove vgremove pvremove badblocks debugfs userdel groupdel usermod passwd chpasswd
    insmod rmmod modprobe kexec iptables ip6tables nft ufw grub-install efibootmgr umount telinit mke2fs diskutil
    killall5 setenforce useradd adduser groupadd groupmod newfs newfs_hfs
    """
)
_DEVICE = re.compile(r"/dev/(?!null$|zero$|stdout$|stderr$|stdin$|tty$|full$|u?random$|fd/|shm/|tcp/|udp/)\w")
_SYSTEM_PLACE = re.compile(
    r"/(?:etc|boot|bin|sbin|lib\w*|usr|sys|proc|dev|root|home|var|opt|srv|private|System)?(?:/\*?)?"
)
_SYSTEM_FILE = re.compile(r"/(?:etc|boot|bin|sbin|lib\w*|usr/(?:bin|sbin|lib\w*)|sys|proc)/.+")
_STARTUP_FILE = re.compile(
    r".*/(?:\.bashrc|\.bash_profile|\.profile|\.zshrc|\.zshenv|\.zprofile|\.ssh/.*|\.gitconfig|\.config/autostart/.*|"
    r"LaunchAgents/.*)|(?:.*/)?\.git/hooks/.*"
)


def of_part(part: Part, line: Line) -> str:
    """What is dangerous about one part among the parts of its line; "" where nothing is known to be."""
    redirected = next((w for r in part.redirects if ">" in r.op and (w := _place(r.target))), "")
    if redirected:
        return f"it overwrites {redirected}"
    if not part.words:
        return ""
    return _of_words(part) or of_stream(part, line) or _of_hidden(part, line)


_DELETES = re.compile(
    r"(?<![\w-])rm\s+(?:-[\w-]+\s+)*-(?:[a-zA-Z]*[rR][a-zA-Z]*f|[a-zA-Z]*f[a-zA-Z]*[rR])|"
    r"\b(?:rmtree|rm_rf|rmSync)\s*\([\s'\"(]*[/~]|"
    r"Remove-Item\b.{0,200}-Rec|\brm\b.{0,200}-Recurse|\b(?:del|rd|rmdir)\s+/[sqfSQF]\b",
    re.DOTALL,
)
_LISTED = re.compile(r"[\s\[\](),'\"]+")
"""What stands between the words of a command that is written as a list."""
_BRINGS = r"\b(?:iwr|irm|Invoke-WebRequest|Invoke-RestMethod|Download\w*)\b"
_RUNS = r"\b(?:iex|Invoke-Expression)\b"
_FETCHES = re.compile(rf"{_RUNS}.{{0,200}}{_BRINGS}|{_BRINGS}.{{0,400}}{_RUNS}", re.IGNORECASE | re.DOTALL)
_CONNECTION = re.compile(r"\bsocket\b")
_SHELL_ON_IT = re.compile(r"\bdup2\s*\(|\bpty\.spawn")


def _of_hidden(part: Part, line: Line) -> str:
    """What is dangerous in the words and texts of a program that may run them."""
    for start in hidden.starts(part):
        if start[0].text.rsplit("/", 1)[-1] == "rm" and (found := _rm(start[1:])):
            return found
    for text in hidden.texts(part, line):
        if _DELETES.search(text) or ("rm" in text and _DELETES.search(_LISTED.sub(" ", text))):
            return f"{part.program} may run a deletion of everything in a folder"
        if "/dev/tcp/" in text or _CONNECTION.search(text) and _SHELL_ON_IT.search(text):
            return f"{part.program} may open a shell to the network"
        if _FETCHES.search(text):
            return f"{part.program} may run what it fetches"
    return ""


_HOME = re.compile(r"\$(?:HOME\b|\{HOME\})(?=/|$)")


def _path(word: Word) -> str:
    """The path that a word is, with the person's home for $HOME; "" where it is not known."""
    home = os.path.expanduser("~")
    text = word.text if word.known else _HOME.sub(lambda _: home, word.text.replace('"', ""))
    return "" if "$" in text or "`" in text else text


def _whole(word: Word) -> str:
    """The path of a word that names a whole place: one of the system's, a home, or what a home lies in."""
    path = _path(word)
    below = os.path.normpath(path.removesuffix("/*") or "/").rstrip("/") + "/"
    held = path.startswith("/") and f"{os.path.expanduser('~')}/".startswith(below)
    return path if held or path.startswith("~") and "/" not in path[:-1] or _SYSTEM_PLACE.fullmatch(path) else ""


def _place(word: Word) -> str:
    text = _path(word)
    return text if _DEVICE.match(text) or _SYSTEM_FILE.fullmatch(text) or _STARTUP_FILE.fullmatch(text) else ""


def _of_words(part: Part) -> str:
    program, args = part.program, part.args
    if program in _PRIVILEGE:
        return f"{program} takes the rights of another user"
    if program in _SYSTEM or program.startswith("mkfs") or (program == "init" and args and args[0].text in ("0", "6")):
        return f"{program} changes the system itself"
    if part.opaque:
        # It may be any program, so the words that only the worst ones are given have to do.
        found = _rm(args) or _dd(args) or _braces(part.words)
        # Or it is nothing at all, and what follows is the program: `$SUDO rm x`.
        rest = tuple(dropwhile(lambda w: not w.known or w.glob, args))
        return found or (_of_words(replace(part, words=rest)) if rest else "")
    if program == "rm" and any(not w.known and "{" in w.text and "$" not in w.text for w in args):
        return _rm(args) or _braces(part.words)
    return _wipes(program, args) or next(
        (found for known, check in _CHECKS if program in known and (found := check(args))), ""
    )


def _flags(args: Sequence[Word]) -> tuple[set[str], list[Word]]:
    """The options known for certain (short letters and long names) and the operands."""
    flags: set[str] = set()
    operands: list[Word] = []
    for index, word in enumerate(args):
        if word.known and word.text == "--":
            operands += args[index + 1 :]
            break
        if word.known and word.text.startswith("--"):
            flags.add(word.text.split("=", 1)[0])
        elif word.known and word.text.startswith("-") and len(word.text) > 1:
            flags.update(word.text[1:])
        else:
            operands.append(word)
    return flags, operands


def _has(flags: set[str], short: str, long: str) -> bool:
    return any(f in short if len(f) == 1 else len(f) > 2 and long.startswith(f) for f in flags)


def _braces(words: Sequence[Word]) -> str:
    """A deletion that is written in braces: `{rm,-rf,/}`, `rm {-rf,/}`."""
    pieces = re.sub(r"[{},]+", " ", " ".join(w.text for w in words)).split()
    folded = [re.sub(r"[{},]+", "", w.text) for w in words]
    for found in (pieces, folded):
        if found and found[0].rsplit("/", 1)[-1] == "rm" and (why := _rm([Word(w) for w in found[1:]])):
            return why
    return ""


def _rm(args: Sequence[Word]) -> str:
    flags, operands = _flags(args)
    if _has(flags, "rR", "--recursive") and _has(flags, "f", "--force") and operands:
        return f"it deletes {' '.join(w.text for w in operands)} with everything in it"
    return ""


def recursive_delete(part: Part) -> Sequence[Word]:
    """What a part deletes by force with everything in it; empty where it is no such deletion."""
    return _flags(part.args)[1] if part.program == "rm" and _rm(part.args) else ()


_FIND_MARKS = names("-exec -execdir -ok -okdir")
_REMOVERS = names("rm unlink shred truncate")


def _find(args: Sequence[Word]) -> str:
    texts = [w.text for w in args]
    runs = any(mark in _FIND_MARKS and run.rsplit("/", 1)[-1] in _REMOVERS for mark, run in zip(texts, texts[1:]))
    if "-delete" not in texts and not runs:
        return ""
    begun = dropwhile(lambda w: re.fullmatch(r"-[HLP]|-O\d|-D|--", w.text), args)
    starts = takewhile(lambda w: not re.match(r"[-(!]|\\\(", w.text), begun)
    start = next((place for w in starts if (place := _whole(w))), "")
    return f"it deletes below {start}" if start else ""


def _dd(args: Sequence[Word]) -> str:
    target = next((t for w in args if w.text.startswith("of=") and (t := _place(replace(w, text=w.text[3:])))), "")
    return f"it overwrites {target}" if target else ""


def _shred(args: Sequence[Word]) -> str:
    _, operands = _flags(args)
    return f"it destroys {operands[0].text} for good" if operands else ""


def _rights(args: Sequence[Word]) -> str:
    flags, operands = _flags(args)
    place = next((found for w in operands[1:] if (found := _whole(w))), "")
    if place and _has(flags, "R", "--recursive"):
        return f"it changes the rights of everything below {place}"
    return ""


def _mirror(args: Sequence[Word]) -> str:
    deletes = any(w.text.startswith("--del") for w in args)
    return f"it deletes what is in {args[-1].text} and not in the source" if deletes and _whole(args[-1]) else ""


def _kill(args: Sequence[Word]) -> str:
    texts = [w.text for w in args]
    asks = texts[:1] in (["-0"], ["-l"], ["-L"]) or texts[:2] in (["-s", "0"], ["-n", "0"])
    return "it ends every process" if texts and texts[-1] in ("-1", "1") and not asks else ""


def _mount(args: Sequence[Word]) -> str:
    return "mount changes the system itself" if len(args) > 1 else ""


def _move(args: Sequence[Word]) -> str:
    place = next((found for w in args[:-1] if (found := _whole(w))), "")
    if args and args[-1].text == "/dev/null":
        return "what is moved to /dev/null is lost"
    return f"it moves {place} away" if place else _copy(args)


def _write(args: Sequence[Word]) -> str:
    target = next((t for w in args if (t := _place(w))), "")
    return f"it overwrites {target}" if target else ""


_PROGRAM_FOLDER = re.compile(r"/(?:usr/)?(?:local/)?s?bin/?")


def _copy(args: Sequence[Word]) -> str:
    named = [args[i + 1] for i, w in enumerate(args[:-1]) if w.text in ("-t", "--target-directory")]
    folder = next((w.text for w in (*args[-1:], *named) if _PROGRAM_FOLDER.fullmatch(w.text)), "")
    return f"it puts programs into {folder}" if folder else _write([*args[-1:], *named])


def _sed(args: Sequence[Word]) -> str:
    in_place = any(re.match(r"-[a-zA-Z]*i|--in", w.text) for w in args)
    return _write(args) if in_place else ""


def _sysctl(args: Sequence[Word]) -> str:
    return "it changes the kernel" if any(w.text.startswith(("-w", "--write")) or "=" in w.text for w in args) else ""


def _pkill(args: Sequence[Word]) -> str:
    texts = [w.text for w in args]
    return "it ends every process of root" if "root" in texts and any(t.startswith("-u") for t in texts) else ""


_RUNS_SHELL = re.compile(r"-\w*[ec]|--(?:sh-)?exec|(?:EXEC|SYSTEM|SHELL|exec|system|shell):.*", re.DOTALL)


def _connects(args: Sequence[Word]) -> str:
    runs = any(_RUNS_SHELL.fullmatch(w.text) for w in args)
    return "it opens a shell to the network" if runs else ""


def _windows(args: Sequence[Word]) -> str:
    given = {w.text.lower() for w in args}
    return (
        "it deletes everything in a folder"
        if given & {"/s", "/q", "/f"} or any(t.startswith("-rec") for t in given)
        else ""
    )


def _format(args: Sequence[Word]) -> str:
    return "it formats a disk" if args and re.fullmatch(r"[a-zA-Z]:.*", args[0].text) else ""


def _crontab(args: Sequence[Word]) -> str:
    return "" if [w.text for w in args] == ["-l"] else "it changes what runs by the clock"


def _systemctl(args: Sequence[Word]) -> str:
    texts = {w.text for w in args}
    return (
        "it changes the system itself" if texts & {"poweroff", "reboot", "halt", "kexec", "rescue", "disable"} else ""
    )


_WIPES = (
    ("zpool", names("destroy labelclear")), ("zfs", names("destroy rollback")), ("btrfs", names("delete")),
    ("mdadm", names("--zero-superblock --stop -S --remove")), ("nvme", names("format sanitize")),
)  # fmt: skip


def _wipes(program: str, args: Sequence[Word]) -> str:
    """Storage tools that destroy what they hold, each with the words by which it does."""
    wipes = any(program == name and not words.isdisjoint(w.text for w in args[:3]) for name, words in _WIPES)
    return f"{program} destroys what is stored" if wipes else ""


_CHECKS = (
    ({"rm"}, _rm), ({"find"}, _find), ({"dd"}, _dd), ({"shred", "srm", "scrub"}, _shred),
    ({"chmod", "chown", "chgrp", "setfacl"}, _rights), ({"kill"}, _kill), ({"mv"}, _move),
    ({"tee", "truncate", "sponge", "chattr"}, _write), ({"cp", "install", "ln", "rsync"}, _copy), ({"rsync"}, _mirror),
    ({"crontab"}, _crontab),
    ({"systemctl"}, _systemctl), ({"mount"}, _mount), ({"sed", "gsed"}, _sed), ({"sysctl"}, _sysctl),
    ({"pkill", "killall"}, _pkill), ({"nc", "ncat", "netcat", "socat"}, _connects),
    ({"del", "rd", "rmdir", "erase", "Remove-Item", "ri"}, _windows), ({"format", "format.com"}, _format),
)  # fmt: skip


_FUNCTION = re.compile(r"\(\s*\)\s*\{([^{}]*)\}")
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_NAME_LENGTH = 80


def of_text(command: str, parts: Sequence[Part] = ()) -> str:
    """What is dangerous about a line as a whole. What stands in quotes counts where a part may run it."""
    if ")" not in command or "|" not in command:
        return ""
    runs = any(p.program in SHELLS or p.program in WRAPPERS or p.program in hidden.INTERPRETERS for p in parts)
    text = command if runs else _QUOTED.sub("''", command)
    return (
        "it starts processes without end" if any(_multiplies(text, found) for found in _FUNCTION.finditer(text)) else ""
    )


def _multiplies(text: str, found: re.Match[str]) -> bool:
    """Whether a function pipes itself into itself and leaves both running."""
    before = re.search(r"[^\s(){};|&'\"]+\s*$", text[max(0, found.start() - _NAME_LENGTH) : found.start()])
    name = re.escape(before[0].strip()) if before else ""
    return bool(name) and re.search(rf"(?:^|[\s;]){name}\s*\|\s*{name}\s*&", found[1]) is not None


def loses(part: Part) -> str:
    """What work a part may throw away; "" where none. A snapshot brings it back."""
    program, args = part.program, part.args
    if program == "git":
        return _git_loses(args)
    if program in ("rm", "unlink", "rmdir"):
        return "it deletes files"
    if program == "find" and any(w.text == "-delete" for w in args):
        return "it deletes files"
    if program in ("truncate", "shred"):
        return f"{program} empties files"
    if any(
        r.op in (">", ">|", "&>") and r.target.text != "/dev/null" and not r.target.text.isdigit()
        for r in part.redirects
    ):
        return "it may overwrite a file"
    return ""


def _git_loses(args: Sequence[Word]) -> str:
    name, rest = git_subcommand(args)
    flags, operands = _flags(rest)
    texts = [w.text for w in rest]
    if name == "reset" and any(t.startswith(("--hard", "--merge", "--keep")) for t in texts):
        return "git reset --hard throws uncommitted changes away"
    if name == "clean" and not _has(flags, "n", "--dry-run"):
        return "git clean deletes untracked files"
    if name in ("checkout", "switch") and (_has(flags, "f", "--force") or "--discard-changes" in flags or "." in texts):
        return f"git {name} throws uncommitted changes away"
    if name == "checkout" and ("--" in texts or len(operands) > 1):
        return "git checkout throws uncommitted changes away"
    if name == "restore" and not ("--staged" in texts and not _has(flags, "W", "--worktree")):
        return "git restore throws uncommitted changes away"
    if name == "stash" and texts[:1] in (["drop"], ["clear"]):
        return f"git stash {texts[0]} throws stashed changes away"
    if name == "branch" and _has(flags, "D", "--delete"):
        return "git branch -D throws a branch away"
    if name == "push" and (
        _has(flags, "f", "--force") or any(t.startswith(("--force", "+", "--mirror")) for t in texts)
    ):
        return "git push --force replaces history on the remote"
    if name in ("filter-branch", "update-ref", "reflog", "gc", "prune"):
        return f"git {name} may throw history away"
    return ""
