"""Which commands need the network, so that it can be asked for before they fail without it."""

from __future__ import annotations

import re

from agent.permissions.hosts import host_of
from agent.permissions.shell.model import Part, names
from agent.permissions.shell.unwrap import git_subcommand

_ALWAYS = names(
    """
    curl wget aria2c http https xh ssh scp sftp ftp lftp telnet nc ncat netcat socat ping ping6 traceroute
    tracepath mtr dig nslookup host whois nmap gh glab hub aws gcloud az kubectl helm doctl flyctl vercel
    netlify heroku rclone s3cmd npx bunx pnpx uvx pipx apt apt-get dnf yum pacman apk brew snap flatpak zypper
    conda mamba youtube-dl yt-dlp docker-compose twine
    """
)
_SUBCOMMANDS: dict[str, frozenset[str]] = {
    name: names(words)
    for name, words in {
        "npm": "install i ci add update upgrade publish audit outdated view info search login exec x create init link",
        "pnpm": "install i add update up publish audit outdated dlx fetch create",
        "yarn": "install add upgrade up publish audit outdated dlx create",
        "bun": "install i add update x create",
        "pip": "install download index search wheel",
        "uv": "sync add lock pip run tool",
        "poetry": "install add update lock publish",
        "pipenv": "install update lock sync",
        "cargo": "fetch install update publish search add login",
        "go": "get install mod",
        "gem": "install update push fetch",
        "bundle": "install update",
        "composer": "install update require create-project",
        "docker": "pull push login search build compose",
        "podman": "pull push login search build compose",
        "terraform": "init apply plan",
        "mvn": "install package deploy dependency:resolve",
        "rustup": "update install toolchain component target",
        "git-lfs": "pull fetch push",
    }.items()
}
_SUBCOMMANDS["pip3"] = _SUBCOMMANDS["pip"]
_GIT = frozenset({"fetch", "pull", "push", "clone", "ls-remote", "lfs"})


def contacts(part: Part) -> bool:
    """Whether a part needs the network to do its work."""
    program = part.program
    if program in _ALWAYS or any(r.target.text.startswith(("/dev/tcp/", "/dev/udp/")) for r in part.redirects):
        return True
    if program == "git":
        name, rest = git_subcommand(part.args)
        first = rest[0].text if rest else ""
        return name in _GIT or (name, first) in (("remote", "update"), ("remote", "show"), ("submodule", "update"))
    if program == "rsync":
        return any(":" in w.text for w in part.args)
    if program in ("python", "python3") and [w.text for w in part.args[:2]] == ["-m", "pip"]:
        return len(part.args) > 2 and part.args[2].text in _SUBCOMMANDS["pip"]
    first = next((w.text for w in part.args if not w.text.startswith("-")), "install" if program == "yarn" else "")
    return first in _SUBCOMMANDS.get(program, ())


_ADDRESS = re.compile(r"https?://[^\s\"'|,;]+", re.IGNORECASE)
_BY_ADDRESS = names("curl wget http https xh aria2c git")
"""Programs that go where the addresses among their words lead."""
_GIT_BY_ADDRESS = frozenset({"clone", "ls-remote"})
_OTHER_WAY = frozenset(
    {"-x", "--proxy", "--preproxy", "--noproxy", "--no-proxy", "--socks4", "--socks5", "--socks4a", "--socks5-hostname",
     "--unix-socket", "--abstract-unix-socket", "--interface", "--config", "-K", "-i", "--input-file", "--connect-to",
     "--resolve", "--all-proxy"}
)  # fmt: skip
"""Options by which a program goes another way than through a proxy, or takes addresses from a file."""
_REGISTRIES: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "pip": (names("install download wheel"), ("pypi.org:443", "files.pythonhosted.org:443")),
    "uv": (names("sync add lock pip"), ("pypi.org:443", "files.pythonhosted.org:443")),
    "npm": (names("install i ci add update"), ("registry.npmjs.org:443",)),
    "pnpm": (names("install i add update up fetch"), ("registry.npmjs.org:443",)),
    "cargo": (names("fetch update add"), ("index.crates.io:443", "static.crates.io:443")),
    "go": (names("get mod"), ("proxy.golang.org:443", "sum.golang.org:443")),
}
"""Package manager -> its sub-commands that only get packages, and the hosts that it gets them from by itself."""
_REGISTRIES["pip3"] = _REGISTRIES["pip"]


def hosts_of(part: Part) -> tuple[str, ...]:
    """The hosts (name:port) that a part goes to, as far as its words and its habits tell; () where they do not."""
    elsewhere = any(r.target.text.startswith(("/dev/tcp/", "/dev/udp/")) for r in part.redirects)
    if elsewhere or not all(w.known for w in part.words) or any(n.lower().endswith("_proxy") for n, _ in part.env):
        return ()
    texts = [w.text for w in part.args]
    schemes = sum(text.count("://") for text in texts)
    addresses = [host_of(found) for text in texts for found in _ADDRESS.findall(text)]
    if len(addresses) != schemes or not all(addresses) or any(t.partition("=")[0] in _OTHER_WAY for t in texts):
        return ()
    if part.program in _BY_ADDRESS:
        by_address = part.program != "git" or git_subcommand(part.args)[0] in _GIT_BY_ADDRESS
        return tuple(dict.fromkeys(addresses)) if by_address else ()
    program, words = part.program, texts
    if program in ("python", "python3") and texts[:2] == ["-m", "pip"]:
        program, words = "pip", texts[2:]
    subcommands, hosts = _REGISTRIES.get(program, (frozenset(), ()))
    first = next((t for t in words if not t.startswith("-")), "")
    return tuple(dict.fromkeys((*hosts, *addresses))) if first in subcommands else ()
