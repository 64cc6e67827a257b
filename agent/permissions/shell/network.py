"""Which commands need the network, so that it can be asked for before they fail without it."""

from __future__ import annotations

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
