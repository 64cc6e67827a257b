"""Which commands of package managers, clusters and forges only read.

A tool is known by its sub-commands, each with its harmless options. What a folder's own files would make a tool run or
write is another question, see `tool_hazard` of the gate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.permissions.shell.model import Word, names
from agent.permissions.shell.options import Options, options, read_options

OUTSIDE = names("gh kubectl docker podman")
"""Tools that read from a service, by the network or a socket, with keys of the person's: no sandbox lets them."""

_NPM = options("agl", "", "all long json parseable global link package-lock-only prod dev depth omit include",
               "depth omit include")  # fmt: skip
_GLOBAL = options("g", "", "global")
_NONE = options()
_PS = options("aqls", "nf", "all quiet no-trunc size latest digests", "filter format last")
_LIST = options("q", "f", "quiet no-trunc", "filter format")
_DOCKER_LOGS = options("ft", "n", "follow timestamps details no-color no-log-prefix", "tail since until")
_COMPOSE_PS = options("aq", "", "all quiet services orphans", "format filter status")
_KUBE = options(
    "Aw", "nloLc", "all-namespaces watch show-labels no-headers ignore-not-found show-kind client short previous "
    "timestamps all-containers prefix containers namespaced minify recursive",
    "namespace selector output field-selector sort-by label-columns tail since since-time container context chunk-size "
    "request-timeout api-group verbs api-version revision",
)  # fmt: skip
_KUBE_LOGS = options(
    "fp", "nlc", "follow previous timestamps all-containers prefix ignore-errors",
    "namespace selector tail since since-time container context limit-bytes max-log-requests",
)  # fmt: skip
_GH_VIEW = options("cv", "Rqtj", "comments verbose log log-failed exit-status name-only patch yaml",
                   "repo json jq template job attempt branch ref color")  # fmt: skip
_GH_LIST = options(
    "de", "RqtLslaASBHmbuO", "draft all required archived fork source exclude-drafts exclude-pre-releases",
    "repo json jq template limit state label assignee author search base head milestone mention app branch user "
    "workflow event status commit created sort order visibility language topic",
)  # fmt: skip

_READS: dict[str, Options] = {
    **dict.fromkeys(("npm ls", "npm list", "npm ll", "npm why", "npm explain"), _NPM),
    **dict.fromkeys(("npm root", "npm prefix"), _GLOBAL),
    **dict.fromkeys(("npm pkg get", "npm config get", "npm get", "npm run", "npm run-script"), _NONE),
    **{f"{pip} show": options("f", "", "files verbose") for pip in ("pip", "pip3")},
    **{f"{pip} list": options("l", "", "format not-required user local editable exclude-editable", "format exclude")
       for pip in ("pip", "pip3")},
    **{f"{pip} freeze": options("l", "", "all local user exclude-editable", "exclude") for pip in ("pip", "pip3")},
    **{f"{pip} check": _NONE for pip in ("pip", "pip3")},
    "cargo tree": options(
        "dqv", "iepF", "duplicates all-features no-default-features workspace locked offline frozen no-dedupe all",
        "invert edges package depth prefix charset format features target exclude prune color",
    ),
    "cargo metadata": options("", "", "no-deps locked offline frozen all-features no-default-features",
                              "format-version features filter-platform"),
    "rustup show": _NONE, "rustup toolchain list": options("v"), "rustup target list": options("", "", "installed"),
    "rustup component list": options("", "", "installed"),
    "go version": _NONE, "go env": _NONE,
    **{f"{engine} {sub}": known for engine in ("docker", "podman") for sub, known in {
        "ps": _PS, "container ls": _PS, "container ps": _PS, "container list": _PS, "images": _PS, "image ls": _PS,
        "image list": _PS, "volume ls": _LIST, "network ls": _LIST, "context ls": _LIST, "version": _LIST,
        "info": _LIST,
        "logs": _DOCKER_LOGS, "container logs": _DOCKER_LOGS, "port": _NONE, "diff": _NONE, "history": _LIST,
        "stats": options("a", "", "all no-stream no-trunc", "format"),
        "system df": options("v", "", "verbose", "format"),
        "compose ps": _COMPOSE_PS, "compose ls": _COMPOSE_PS, "compose images": _COMPOSE_PS,
        "compose logs": _DOCKER_LOGS, "compose version": _NONE,
    }.items()},
    **dict.fromkeys((
        "kubectl get", "kubectl describe", "kubectl top", "kubectl explain", "kubectl api-resources",
        "kubectl api-versions", "kubectl version", "kubectl cluster-info", "kubectl config current-context",
        "kubectl config get-contexts", "kubectl config get-clusters", "kubectl config view", "kubectl rollout status",
        "kubectl rollout history", "kubectl auth can-i",
    ), _KUBE),
    "kubectl logs": _KUBE_LOGS,
    **dict.fromkeys(("gh pr view", "gh pr diff", "gh pr checks", "gh issue view", "gh run view", "gh repo view",
                     "gh release view", "gh workflow view"), _GH_VIEW),
    **dict.fromkeys(("gh pr list", "gh pr status", "gh issue list", "gh issue status", "gh run list",
                     "gh workflow list", "gh repo list", "gh release list", "gh label list"), _GH_LIST),
    "gh auth status": options("", "h", "", "hostname"),
    "brew list": options("1l", "", "versions formula cask"),
    **dict.fromkeys(("systemctl status", "systemctl is-active", "systemctl is-enabled", "systemctl list-units",
                     "systemctl list-unit-files", "systemctl list-timers"),
                    options("al", "nt", "no-pager full all plain no-legend user system failed", "lines type state")),
}  # fmt: skip
TOOLS = frozenset(key.split()[0] for key in _READS)
_WITHOUT_OPERANDS = frozenset({
    "npm root", "npm prefix", "npm run", "npm run-script", "pip list", "pip freeze", "pip check", "pip3 list",
    "pip3 freeze", "pip3 check", "go version", "cargo tree", "cargo metadata", "kubectl cluster-info", "gh auth status",
    "kubectl config view", "docker info", "podman info",
})  # fmt: skip
_PRIVATE = re.compile(r"auth|token|passw|secret|credential", re.IGNORECASE)


def why_not(name: str, args: Sequence[Word]) -> str:
    """Why a command of one of the TOOLS may do more than read; "" where it only reads."""
    args = _without_namespace(args) if name == "kubectl" else args
    texts = [w.text for w in args]
    depth = next((d for d in (2, 1) if " ".join([name, *texts[:d]]) in _READS and len(texts) >= d), 0)
    if not depth:
        return f"{' '.join([name, *texts[:1]])} is not known to read only"
    key = " ".join([name, *texts[:depth]])
    rest = args[depth:]
    if any(w.glob and w.text[:1] in "*?[" for w in rest):
        return "a file name may become an option"
    reading = read_options(rest, _READS[key])
    if reading.refused:
        return f"{key} {reading.refused} is not known to be harmless"
    if reading.operands and key in _WITHOUT_OPERANDS:
        return f"{key} with {reading.operands[0].text} is not known to read only"
    return _private(key, [w.text for w in reading.operands], [w.text for w in rest])


def _without_namespace(args: Sequence[Word]) -> Sequence[Word]:
    if len(args) > 1 and args[0].text in ("-n", "--namespace") and not args[1].text.startswith("-"):
        return args[2:]
    return args[1:] if args and args[0].text.startswith("--namespace=") else args


def _private(key: str, operands: Sequence[str], words: Sequence[str]) -> str:
    """Why a command shows what is private, or asks somewhere else; "" where it does not."""
    tool = key.split()[0]
    if key in ("npm config get", "npm get", "go env") and (len(operands) != 1 or _PRIVATE.search(operands[0])):
        return f"{key} may show keys"
    if tool == "kubectl":
        return _kubectl(operands, words)
    if tool == "gh":
        return _gh(key, operands, words)
    return ""


def _kubectl(operands: Sequence[str], words: Sequence[str]) -> str:
    if any(piece.lower().startswith("secret") for word in operands for piece in re.split(r"[,/]", word)):
        return "kubectl would show secrets"
    # -o go-template-file=..., -o jsonpath-file=...
    forms = [w for w in words if w.startswith("-o") or "=" in w] + _values(words, "-o", "--output")
    return "kubectl would read a file" if any("file" in f for f in forms) else ""


def _values(words: Sequence[str], *names: str) -> list[str]:
    return [value for name, value in zip(words, words[1:]) if name in names]


def _gh(key: str, operands: Sequence[str], words: Sequence[str]) -> str:
    repositories = _values(words, "-R", "--repo")
    repositories += [w.split("=", 1)[1] for w in words if w.startswith("--repo=")]
    elsewhere = any(r.count("/") != 1 for r in repositories)
    if key == "gh repo view":
        elsewhere = elsewhere or any(o.count("/") > 1 for o in operands)
    joined = any("R" in w for w in words if w[:1] == "-" and w[:2] != "--" and w != "-R")
    if elsewhere or joined or any("://" in w for w in words):
        return "gh may ask another host"
    if any(re.search(r"env|ENV|input|\$__", w) for w in words):
        return "its query may read the environment"
    return ""
