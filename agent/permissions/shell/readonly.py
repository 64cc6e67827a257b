"""Which commands only read, so that they may run without a question.

Everything is refused that is not known here: the program, then each of its options. A program whose options are all
harmless needs no list; for the others only the listed options pass, and never an abbreviated one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import cache

from agent.permissions import places
from agent.permissions.shell import git_reads, scripts, system_reads, tool_reads
from agent.permissions.shell.model import Part, Word, names
from agent.permissions.shell.options import Options, options, read_options
from agent.permissions.shell.unwrap import own_words

Check = Callable[[Sequence[Word]], str]
"""Says why the arguments are not known to be harmless; "" where they are."""

_ANY = names(
    """
    ls dir vdir cat tac head tail wc nl cut paste join comm tr fold fmt expand unexpand rev column cmp basename
    dirname realpath readlink pwd cd echo true false : grep egrep fgrep stat df du free uname arch nproc uptime
    md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum shasum seq expr factor od hexdump
    strings which type whereis id groups whoami logname tty who pgrep tsort numfmt getconf lscpu sleep dirs zcat
    bzcat xzcat cal lsblk pstree w last look yes vmstat times
    locale sw_vers
    """
)
"""Programs that write nothing and run nothing, whatever their options."""

_OPTIONS: dict[str, Options] = {
    "sort": options(
        "bdfghiMnRrVcCmsuz", "kt",
        "reverse numeric-sort unique human-numeric-sort version-sort ignore-case check stable "
        "zero-terminated general-numeric-sort month-sort random-sort ignore-leading-blanks dictionary-order merge",
        "key field-separator",
    ),
    "rg": options(
        "abcFHhiLlnNoPpqSsUuvwx0", "eAgBCmtTjrEMd",
        "files files-with-matches files-without-match count count-matches line-number no-line-number hidden no-ignore "
        "ignore-case smart-case case-sensitive fixed-strings word-regexp line-regexp invert-match multiline "
        "multiline-dotall only-matching pcre2 json heading no-heading stats vimgrep with-filename no-filename text "
        "trim null follow no-messages pretty quiet version column no-config type-list no-ignore-vcs unrestricted "
        "passthru",
        "regexp glob iglob type type-not max-count max-depth context after-context before-context sort sortr color "
        "type-add type-clear colors max-columns max-filesize threads replace encoding path-separator",
    ),
    "fd": options("HIdgiFasp0u", "etdEcSo", "hidden no-ignore glob ignore-case full-path",
        "extension type exclude max-depth"),
    "date": options("uR", "d", "utc universal iso-8601 rfc-email rfc-3339", "date", attached="I"),
    "base64": options("dDi", "w", "decode ignore-garbage", "wrap"),
    "base32": options("di", "w", "decode ignore-garbage", "wrap"),
    "file": options("bikLhN0", "", "brief mime mime-type mime-encoding keep-going dereference no-dereference"),
    "diff": options(
        "uqrNwbBiycsaEZtTdp", "UCWI", "unified brief recursive new-file ignore-all-space ignore-space-change "
        "ignore-blank-lines ignore-case side-by-side context report-identical-files text color minimal",
        "width ignore-matching-lines", digits=True,
    ),
    "tree": options("adfhspinCDFugAJ", "LIP", "dirsfirst noreport du prune gitignore"),
    "uniq": options("cdDuiz", "fsw", "count repeated unique ignore-case", "skip-fields skip-chars check-chars"),
    "xxd": options("abeipuE", "cglos"),
    "iconv": options("lc", "ft", "list", "from-code to-code"),
    "jq": options("rnceSsjaCM", "", "raw-output null-input compact-output exit-status sort-keys slurp tab join-output",
        "arg argjson"),
    "shuf": options("erz", "ni", "echo repeat zero-terminated", "head-count input-range"),
    "hostname": options("fisd"),
    "ps": options("efAFl", "p"),
    "lsof": options("inPtlUa", "pcu"), "ss": options("tulnapesxowiHr46", "", "listening numeric processes tcp udp all"),
    "netstat": options("tulnapersiW46", "", "listening numeric programs tcp udp all route"),
    "journalctl": options(
        "rxkqae", "unpog", "no-pager reverse dmesg utc quiet catalog user system all",
        "unit lines since until priority output grep identifier user-unit boot",
    ),
    "yq": options("rPce", "", "raw-output prettyPrint compact-output exit-status"),
    "man": options("kf", "", "apropos whatis"), "crontab": options("l"),
    "whatis": options("", "s", "", "sections"), "apropos": options("ae", "s", "and exact", "sections"),
    "dmesg": options("TkxuwWetr", "lf", "ctime reltime notime kernel userspace decode follow follow-new raw",
                     "level facility time-format since until"),
    "lspci": options("vknmt", "sd"), "lsusb": options("vt", "sd"),
    # These read what somebody compiled; `@file` would give them further options, which a plug-in is.
    "nm": options("aACDgnoPrSu", "", "demangle dynamic extern-only defined-only undefined-only print-size"),
    "objdump": options("dDstTrRhxpfCw", "jM", "disassemble syms dynamic-syms section-headers demangle",
                       "section disassembler-options"),
    "readelf": options("aehlSsnrdVAWIg", "xp", "all file-header program-headers section-headers symbols dyn-syms "
                       "notes relocs dynamic wide", "hex-dump string-dump"),
    "size": options("ABdoxt"),
}  # fmt: skip
_OPTIONS["fdfind"] = _OPTIONS["fd"]
_WITHOUT_SETTINGS = (
    _ANY | names("find sed gsed awk gawk mawk sort uniq shuf printf test [ date base64 base32 xxd") | {""}
)
"""Programs that read no variables of their own but those of a known name, so that FOO=bar means nothing to them."""

_VERSIONS = {
    "--version": names(
        """
        node python python3 ruby perl php java gcc g++ clang clang++ cc make cmake bash zsh docker podman pip pip3 npm
        git cargo rustc rustup uv bun deno psql sqlite3 mysql redis-cli ruff black mypy tsc ghc aws curl wget less tee
        env ldd tar gdb sed gsed gawk find rg fd jq yq rsync vim nvim ninja meson shellcheck
        """
    ),
    "-V": names(
        "python python3 pip pip3 cargo rustc rustup uv deno perl rg fd jq yq less rsync ssh tmux mysql wget psql"
    ),
    "-v": names("node npm ruby perl php gcc g++ clang cc make docker podman git bun deno redis-cli nvim gdb tsc"),
    "-version": names("java ffmpeg sqlite3 find"),
}
"""How programs are asked for their version. Where another program takes such an option it may start its work: ninja -v
builds, python -v runs what it reads."""
_HELPS = frozenset(_OPTIONS) - {"man"} | names("find sed gsed gawk tar printf xz gzip tee")
_PLAIN_PS = frozenset({"aux", "auxw", "auxww", "ax", "axu", "axf", "auxf"})

_FIND_TESTS = names(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -size -mtime -mmin -atime -amin
    -ctime -cmin -newer -anewer -cnewer -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -samefile
    -printf -regextype -fstype -lname -ilname -used -not -o -a -or -and -print -print0 -ls -prune -empty
    -readable -writable -executable -follow -xdev -mount -daystart -depth -d -true -false -quit -nouser -nogroup
    -noleaf -L -P -H -E -ignore_readdir_race -noignore_readdir_race
    """
)

_RISKY_NAME = re.compile(
    r"PATH|OPT|PRELOAD|^LD_|^DYLD_|^GIT|PAGER|EDITOR|VISUAL|SHELL|ENV|RC$|CONF|HOME|^XDG|^IFS$|^PS\d$|PROMPT|^LESS|PYTHON|"
    r"NODE|NPM|PERL|RUBY|JAVA|JDK|MALLOC|GLIBC|GREP|^RG_|PROXY|SSH|GPG|BASH|COMMAND|CMD|HOOK|LIB|TERM|^TMP|TMPDIR|"
    r"^XZ|^GZIP|^BZIP|DEFAULTS|^CC$|^CXX|CFLAGS|LDFLAGS|COMPILER|WRAPPER|EXEC|PLUGIN|MODULE|LOCPATH|CARGO|RUST|^GO|GEM_|BUNDLE|MAVEN|GRADLE|DISPLAY",
    re.IGNORECASE,
)
_HARMLESS_NAME = re.compile(r"CI|NO_COLOR|FORCE_COLOR|LANG|LC_\w+|TZ|COLUMNS|LINES|DEBUG|VERBOSE|PYTHONUNBUFFERED|"
                            r"PYTHONDONTWRITEBYTECODE|RUST_BACKTRACE|RUST_LOG|NODE_ENV|CLICOLOR")  # fmt: skip


def why_not(part: Part) -> str:
    """Why a part may not run unasked; "" where it is known to read only. Says nothing about which files it reads,
    except that files which usually hold secrets are refused by their names."""
    reason = _why_not_wrapper(part) if part.transparent else _why_not_words(part)
    if reason:
        return reason
    for name, value in part.env:
        if part.program not in _WITHOUT_SETTINGS and not harmless_assignment(name):
            return f"{name}= may be a setting of {part.program}"
        if not name.isidentifier() or not name.isascii() or _RISKY_NAME.search(name) or not value.known:
            return f"{name}= can change what runs"
    for redirect in part.redirects:
        reason = why_not_redirect(redirect.op, redirect.target)
        if reason:
            return reason
    return next((f"it reads {w.text}, which may hold secrets" for w in part.args if names_secret(w)), "")


_WRAPPERS: dict[str, frozenset[str]] = {
    "timeout": names("-s -k -v --signal --kill-after --preserve-status --foreground"),
    "nice": frozenset({"-n"}), "env": frozenset({"-i"}), "time": frozenset({"-p"}), "command": frozenset(),
    "stdbuf": frozenset({"-oL", "-o0", "-i0", "-e0"}),
}  # fmt: skip


def _why_not_wrapper(part: Part) -> str:
    """Why a program that runs another one may do more than that; what it runs is a part of its own."""
    if part.program not in _WRAPPERS:
        return f"{part.program} runs another program"
    known = _WRAPPERS[part.program]
    odd = next((w.text for w in own_words(part) if not w.known or (w.text[:1] == "-" and w.text not in known)), "")
    return f"{part.program} {odd} is not known to be harmless" if odd else ""


def _why_not_words(part: Part) -> str:
    if not part.words:
        return "" if part.env or part.redirects else "it is empty"
    if part.opaque:
        return "the program is chosen at run time"
    unknown = next((w for w in part.args if not w.known), None)
    if unknown is not None:
        return f"{unknown.text} is only known at run time"
    name = part.words[0].text
    if "/" in name and name.rsplit("/", 1)[0] not in ("/bin", "/usr/bin"):
        return f"{name} is a program of its own"
    return _check_program(part.program, part.args)


def _check_program(name: str, args: Sequence[Word]) -> str:
    if len(args) == 1 and name in _VERSIONS.get(args[0].text, ()):
        return ""
    if [w.text for w in args] == ["--help"] and name in _HELPS:
        return ""
    if name in _ANY:
        return ""
    check = _CHECKS.get(name)
    if check is not None:
        return check(args)
    if name in _OPTIONS:
        return _known_options(name, args)
    if name in tool_reads.TOOLS:
        return tool_reads.why_not(name, args)
    return f"{name} is not known to read only"


def _known_options(name: str, args: Sequence[Word]) -> str:
    if name in ("nm", "objdump", "readelf", "size") and any(w.text.startswith("@") for w in args):
        return f"{name} would read options from a file"
    loose = next((w for w in args if w.glob and w.text[:1] in "*?["), None)
    if loose is not None:
        return f"{loose.text} may become an option"
    reading = read_options(args, _OPTIONS[name])
    if reading.refused:
        return f"{name} {reading.refused} is not known to be harmless"
    most = {"uniq": 1, "xxd": 1, "hostname": 0, "base64": 1, "base32": 1}.get(name)
    if most is not None and len(reading.operands) > most:
        return f"{name} may write to its last argument"
    return ""


def why_not_redirect(op: str, target: Word) -> str:
    """Why a redirection is more than reading; "" where it is not."""
    if not target.known or target.glob:
        return "it redirects to a name made at run time"
    if target.text.startswith(("/dev/tcp/", "/dev/udp/")):
        return "it opens a network connection"
    if op in ("<", "<<<"):
        return f"it reads {target.text}, which may hold secrets" if op == "<" and places.is_secret(target.text) else ""
    if op in (">&", "<&") and (target.text.isdigit() or target.text == "-"):
        return ""
    if target.text in ("/dev/null", "/dev/stdout", "/dev/stderr"):
        return ""
    return f"it writes to {target.text}"


_SECRET_SAMPLES = (".env", ".env.local", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".ssh", ".aws", ".envrc")


def names_secret(word: Word) -> bool:
    """Whether an argument (also the value of an option in it) names a file that usually holds secrets."""
    text = word.text
    candidates = [text, *re.split(r"[=:,]", text), text[2:] if text.startswith("-") else ""]
    if any(c and places.is_secret(c) for c in candidates) or any(
        f"/{c}" in text or text == c for c in (".ssh", ".aws")
    ):
        return True
    # A pattern finds a hidden file only where its dot is written out.
    last = text.rsplit("/", 1)[-1]
    return word.glob and last.startswith(".") and any(fnmatchcase(s, last) for s in _SECRET_SAMPLES)


def any_options() -> frozenset[str]:
    """The programs that write nothing and run nothing, whatever their options."""
    return _ANY


@cache
def only_transforms() -> frozenset[str]:
    """The programs that run no other one, whatever their words; those with a language of their own are none of them."""
    return (_ANY | frozenset(_OPTIONS) | names("printf test [ date ps jq")) - frozenset({"fd", "fdfind"})


def harmless_assignment(name: str) -> bool:
    """Whether a variable before an allowed command cannot change what it runs."""
    return _HARMLESS_NAME.fullmatch(name) is not None


_FIND_ACTS = (
    "-delete",
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-fls",
    "-fprint",
    "-fprint0",
    "-fprintf",
    "-files0-from",
)


def _find(args: Sequence[Word]) -> str:
    for word in args:
        if word.glob and any(fnmatchcase(act, word.text) for act in _FIND_ACTS):
            return f"{word.text} may become an action of find"
        text = word.text
        if text.startswith("-") and len(text) > 1 and not text[1:].isdigit():
            known = text in _FIND_TESTS or re.fullmatch(r"-newer[aBcm][aBcmt]|-O\d|-[ugoa]*[+=-][rwxXst]+", text)
            if not known:
                return f"find {text} is not known to be harmless"
    return ""


def _sed(args: Sequence[Word]) -> str:
    known = options("nErszu", "el", "quiet silent regexp-extended separate null-data posix debug sandbox", "expression")
    named = [args[i + 1] for i, w in enumerate(args[:-1]) if w.text in ("-e", "--expression")]
    if any(w.glob for w in named):
        return "file names may become its script"
    scripts_given = [w.text for w in named]
    scripts_given += [w.text[13:] for w in args if w.text.startswith("--expression=")]
    if any(re.match(r"-[a-zA-Z]*e.+|-[a-zA-Z]+e$", w.text) for w in args):
        return "sed -e is joined with other options"
    reading = read_options(args, known)
    if reading.refused:
        return f"sed {reading.refused} is not known to be harmless"
    operands = list(reading.operands)
    if not scripts_given:
        if not operands:
            return "sed has no script"
        script = operands.pop(0)
        if script.glob:
            return "file names may become its script"
        scripts_given.append(script.text)
    if any(w.glob and w.text[:1] in "*?[" for w in operands):
        return "a file name may become an option"
    return next((why for s in scripts_given if (why := scripts.why_not_sed(s))), "")


def _awk(args: Sequence[Word]) -> str:
    index = 0
    while index < len(args) and args[index].text.startswith("-"):
        text = args[index].text
        if text == "--":
            index += 1
            break
        if not re.match(r"-[Fv]", text):
            return f"awk {text} is not known to be harmless"
        index += 1 if len(text) > 2 else 2
    if index >= len(args):
        return "awk has no program"
    return scripts.why_not_awk(args[index].text)


def _printf(args: Sequence[Word]) -> str:
    if any("[" in w.text and re.search(r"\$\(|`", w.text) for w in args[1:]):
        return "printf may evaluate an expression"  # zsh does
    return "printf sets a variable" if args and args[0].text.startswith("-") else ""


def _test(args: Sequence[Word]) -> str:
    # Bash evaluates the subscript of an array name, with the substitutions in it.
    return "test may evaluate an expression" if any("[" in w.text for w in args) else ""


def _jq(args: Sequence[Word]) -> str:
    if any(re.search(r"env|ENV|import|include|input_filename|\$__", w.text) for w in args):
        return "jq may read the environment or other files"
    return _known_options("jq", args)


def _yq(args: Sequence[Word]) -> str:
    if any(re.search(r"env|ENV|import|include|input|load|eval\(|\$__|split_doc", w.text) for w in args):
        return "yq may read the environment or other files"
    return _known_options("yq", args)


def _man(args: Sequence[Word]) -> str:
    odd = next((w.text for w in args if not re.fullmatch(r"-?[\w][\w.+:-]*", w.text)), "")
    return f"man {odd} may be a file" if odd else _known_options("man", args)


def _lsof(args: Sequence[Word]) -> str:
    return "lsof + repeats or walks" if any(w.text.startswith("+") for w in args) else _known_options("lsof", args)


def _date(args: Sequence[Word]) -> str:
    reading = read_options(args, _OPTIONS["date"])
    if reading.refused or any(not w.text.startswith("+") for w in reading.operands):
        return "date may set the clock"
    return ""


def _ps(args: Sequence[Word]) -> str:
    if len(args) == 1 and args[0].text in _PLAIN_PS:
        return ""
    reading = read_options(args, _OPTIONS["ps"])
    return "ps may show the environment" if reading.refused or reading.operands else ""


_CHECKS: dict[str, Check] = {
    "find": _find, "sed": _sed, "gsed": _sed, "awk": _awk, "gawk": _awk, "mawk": _awk, "printf": _printf, "test": _test,
    "[": _test, "jq": _jq, "date": _date, "ps": _ps, "git": git_reads.why_not, "yq": _yq, "man": _man, "lsof": _lsof,
    **system_reads.CHECKS,
}  # fmt: skip
