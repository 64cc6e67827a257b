"""Which git commands only read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agent.permissions.shell.model import Word
from agent.permissions.shell.options import Options, options, read_options
from agent.permissions.shell.unwrap import git_subcommand

_CONFIG = options(
    "lz", "", "get get-all get-regexp list show-origin show-scope name-only global local system worktree null includes "
    "bool int path type default", "type default",
)  # fmt: skip
_GLOBAL = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--icase-pathspecs"})

_LOG = options(
    "pqswzbuRiEFPgcmrt1", "nSGLUO",
    "oneline graph all branches tags remotes decorate no-decorate stat shortstat numstat name-only name-status summary "
    "patch no-patch abbrev-commit no-abbrev-commit merges no-merges first-parent reverse follow cached staged color "
    "no-color word-diff ignore-all-space ignore-space-change ignore-blank-lines full-index binary check dirstat "
    "cumulative date-order topo-order author-date-order left-right cherry-pick cherry cherry-mark no-renames "
    "find-renames find-copies raw minimal patience histogram no-prefix relative-date full-history source no-walk "
    "left-only right-only merge-base exit-code quiet abbrev relative pickaxe-all pickaxe-regex compact-summary "
    "function-context no-ext-diff no-textconv boundary simplify-by-decoration not walk-reflogs reflog parents children "
    "count objects ours theirs base root unified no-index no-commit-id color-words",
    "max-count skip since until after before author committer grep date pretty format diff-filter inter-hunk-context "
    "diff-algorithm word-diff-regex stat-width min-parents max-parents submodule glob exclude",
    attached="MCB", digits=True,
)  # fmt: skip
_STATUS = options(
    "sbvz", "", "short branch porcelain long verbose untracked-files ignored show-stash ahead-behind no-ahead-behind "
    "no-renames renames ignore-submodules column no-column",
    attached="u",
)  # fmt: skip
_BRANCH = options(
    "arv", "", "all remotes list show-current verbose no-color color no-column ignore-case merged no-merged",
    "sort format contains no-contains points-at",
)  # fmt: skip
_TAG = options("ln", "", "list no-color color ignore-case", "sort format contains no-contains points-at")
_BLAME = options("wsefpltcMC", "L", "line-porcelain porcelain show-email show-name show-number", "date since abbrev")
_GREP = options(
    "nilLcvwEFPGohHIqa", "eABCm", "line-number ignore-case files-with-matches count word-regexp extended-regexp "
    "fixed-strings perl-regexp cached untracked heading break name-only and or not only-matching",
    "max-depth threads max-count",
)  # fmt: skip
_REFS = options("", "", "", "sort format count contains points-at merged no-merged exclude")

_KNOWN: dict[str, Options] = {
    "log": _LOG, "show": _LOG, "diff": _LOG, "whatchanged": _LOG, "rev-list": _LOG, "diff-tree": _LOG,
    "diff-index": _LOG, "diff-files": _LOG,
    "shortlog": options("sne", "", "summary numbered email all no-merges", "since"),
    "status": _STATUS, "blame": _BLAME, "annotate": _BLAME, "grep": _GREP, "for-each-ref": _REFS,
    "describe": options("", "", "tags always dirty long all first-parent", "abbrev match exclude candidates"),
    "merge-base": options("a", "", "all is-ancestor fork-point octopus"),
    "name-rev": options("", "", "tags name-only all"),
    "range-diff": options("s", "", "no-color color no-patch stat no-dual-color", "creation-factor"),
    "cherry": options("v", "", "verbose abbrev"),
    "apply": options("", "p", "stat numstat summary check"),
    "cat-file": options("ptse"), "ls-tree": options("rdtlz", "", "name-only full-tree long full-name"),
    "ls-files": options(
        "cdmosuizktv", "x", "cached deleted modified others stage unmerged ignored exclude-standard full-name "
        "error-unmatch",
        "exclude",
    ),
    "check-ignore": options("vnq", "", "verbose quiet non-matching no-index"), "count-objects": options("vH"),
    "show-ref": options("dsq", "", "heads tags head dereference verify quiet"), "version": options(),
    "rev-parse": options(
        "q", "", "abbrev-ref short verify show-toplevel git-dir git-common-dir is-inside-work-tree is-inside-git-dir "
        "show-prefix show-cdup all branches tags symbolic-full-name quiet is-bare-repository absolute-git-dir",
    ),
}  # fmt: skip
_LISTS = {"branch": _BRANCH, "tag": _TAG}


def why_not(args: Sequence[Word]) -> str:
    """Why a git command may do more than read; "" where it only reads.

    What a repository's own configuration may run is another question, see `config_hazard` of the gate.
    """
    name, rest = git_subcommand(args)
    before = args[: len(args) - len(rest) - 1] if name else args
    odd = next((w.text for w in before if w.text not in _GLOBAL), "")
    if odd:
        alone = odd in ("--version", "--help", "-h", "-v") and not name and len(args) == 1
        return "" if alone else f"git {odd} can change what runs"
    if any(w.glob and w.text[:1] in "*?[" for w in rest):
        return "a file name may become an option"
    if name in _PAIRS:
        return _PAIRS[name](rest)
    known = _KNOWN.get(name) or _LISTS.get(name)
    if known is None:
        return f"git {name} is not known to read only" if name else "git has no command"
    reading = read_options(rest, known)
    if reading.refused:
        return f"git {name} {reading.refused} is not known to be harmless"
    if name == "apply" and not {"--stat", "--numstat", "--summary", "--check"} & set(reading.chosen):
        return "git apply changes files"
    if (
        name in _LISTS
        and reading.operands
        and not _lists(reading.chosen)
        and not (name == "tag" and "-l" in reading.chosen)
    ):
        return f"git {name} {reading.operands[0].text} makes a {name}"
    if any(re.search(r"%G|%\(signature|%\(trailers:.*cmd", w.text) for w in rest):
        return "its format checks signatures, which runs a program"
    return ""


def _lists(chosen: Sequence[str]) -> bool:
    return any(c in ("--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at") for c in chosen)


def _remote(rest: Sequence[Word]) -> str:
    words = [w.text for w in rest]
    harmless = words in ([], ["-v"], ["--verbose"]) or (len(words) == 2 and words[0] == "get-url")
    return "" if harmless else "git remote changes or contacts a remote"


def _stash(rest: Sequence[Word]) -> str:
    words = [w.text for w in rest]
    if words == ["list"]:
        return ""
    if words[:1] == ["show"] and all(re.fullmatch(r"-p|--stat|stash@\{\d+\}|\d+", w) for w in words[1:]):
        return ""
    return "git stash changes files"


def _reflog(rest: Sequence[Word]) -> str:
    if rest and rest[0].text in ("expire", "delete", "drop", "exists"):
        return f"git reflog {rest[0].text} changes the log"
    reading = read_options(rest, _LOG)
    return f"git reflog {reading.refused} is not known to be harmless" if reading.refused else ""


def _config(rest: Sequence[Word]) -> str:
    words = [w.text for w in rest]
    if words[:1] in (["get"], ["list"]):
        return (
            "" if words[1:] == [] or re.fullmatch(r"get [\w.-]+", " ".join(words)) else "git config may change settings"
        )
    reading = read_options(rest, _CONFIG)
    if reading.refused:
        return f"git config {reading.refused} is not known to be harmless"
    most = 0 if {"--list", "-l"} & set(reading.chosen) else 1
    if len(reading.operands) > most or not (reading.operands or most == 0):
        return "git config may change settings"
    # A first word without a dot is no key but a command (edit, set, unset ...).
    asked = any(c.startswith("--get") for c in reading.chosen)
    return "" if asked or all("." in w.text for w in reading.operands) else "git config may change settings"


def _symbolic_ref(rest: Sequence[Word]) -> str:
    words = [w.text for w in rest]
    names = [w for w in words if w not in ("--short", "-q", "--quiet")]
    return "" if len(names) == 1 and not names[0].startswith("-") else "git symbolic-ref may change a reference"


def _var(rest: Sequence[Word]) -> str:
    shown = ("GIT_DEFAULT_BRANCH", "GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT")
    return "" if len(rest) == 1 and rest[0].text in shown else "git var may show settings"


def _submodule(rest: Sequence[Word]) -> str:
    words = [w.text for w in rest]
    return "" if words in ([], ["status"], ["status", "--recursive"]) else "git submodule may change submodules"


def _notes(rest: Sequence[Word]) -> str:
    words = [w.text for w in rest]
    return (
        ""
        if words in ([], ["list"]) or (words[0] == "show" and len(words) < 3 and not words[-1].startswith("-"))
        else "git notes changes notes"
    )


def _bisect(rest: Sequence[Word]) -> str:
    return "" if [w.text for w in rest] == ["log"] else "git bisect moves through the history"


def _worktree(rest: Sequence[Word]) -> str:
    return "" if [w.text for w in rest] in (["list"], ["list", "--porcelain"]) else "git worktree changes folders"


_PAIRS: dict[str, Callable[[Sequence[Word]], str]] = {
    "remote": _remote, "stash": _stash, "reflog": _reflog, "worktree": _worktree, "config": _config,
    "submodule": _submodule, "notes": _notes, "bisect": _bisect, "symbolic-ref": _symbolic_ref, "var": _var,
}  # fmt: skip
