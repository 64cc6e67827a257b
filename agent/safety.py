"""What stands between a call and the machine in one session: permissions, the sandbox, snapshots, trust."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agent.extend.skills import person_folders
from agent.faults import reason
from agent.permissions import Confinement, Judgement, Permissions, Rule, RuleError, parse_rule, rules_of_table
from agent.permissions.reach import Reach
from agent.permissions.servers import confinement as child_confinement
from agent.permissions.servers import server_confinement
from agent.sandbox import NONE, Doors, Sandbox, SandboxError, child_env
from agent.settings import Settings
from agent.trust import Trust
from agent.undo import NOTE, Point, Snapshots, Timeline
from tools.base import Tool, ToolContext, ToolFailure
from transcripts.log import Entry

OWN_KEYS = ("OPENAI_API_KEY", "REFOLD_API_KEY")
"""The names of our own keys in the environment."""

CONFINEMENT = "confinement"
"""Where in ctx.state stands how the present call is confined. It is kept with the tools of one agent, for sub-agents
run beside each other and share everything else here."""


def snapshots_folder(home: Path, root: Path) -> Path:
    """Where the snapshots of a workspace are kept, those of all its sessions."""
    mark = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    name = root.name if len(os.fsencode(root.name)) < 200 else ""  # a name has 255 bytes at most
    return home / "undo" / f"{name}-{mark}"


class Safety:
    """The guards of one session in `root`. Raises RuleError where the person's rules cannot be read."""

    def __init__(self, settings: Settings, root: Path, notices: list[str] | None = None) -> None:
        self.root, self.home = root, settings.home
        self.notices = [] if notices is None else notices
        self.trust = Trust(settings.home, root)
        self.sandbox = Sandbox(root, settings.home, extra=settings.add_dirs)
        mode = settings.permission_mode or ("auto" if self.sandbox.kind != NONE else "ask")
        rules = self._rules(settings)
        self.permissions = Permissions(
            mode, root=root, home=settings.home, sandbox=self.sandbox, extra=rules, folders=settings.add_dirs,
            readable=() if settings.bare else person_folders(settings.home),
        )  # fmt: skip
        self.sandbox.rules = self.permissions
        reach = Reach(self.permissions.rules, self._closed)
        self.sandbox.doors = Doors(self.permissions.home, reach, os.environ)
        self.env = child_env(os.environ, OWN_KEYS, [settings.api_key])
        self._folders = settings.add_dirs
        self._timeline: Timeline | None = None
        self._past: list[tuple[int, object]] = []

    def _closed(self) -> str:
        """What has begun in another mode goes on in `plan`, but no further."""
        return "the mode plan reaches no host" if self.permissions.mode == "plan" else ""

    def _rules(self, settings: Settings) -> Sequence[Rule]:
        """The rules of the command line, and those of the folder where they are trusted."""
        rules = [parse_rule(rule, "allow", "session") for rule in settings.allow]
        rules += [parse_rule(rule, "deny", "session") for rule in settings.deny]
        shared = self.trust.read(".refold/permissions.toml")
        if shared is not None:
            try:
                rules += rules_of_table(tomllib.loads(shared.decode()), "session")
            except (ValueError, RuleError) as error:
                raise RuleError(
                    f"the rules of this folder (.refold/permissions.toml) cannot be read: {error}"
                ) from error
        return rules

    @property
    def timeline(self) -> Timeline:
        """The snapshots of this session. Opening the store makes folders, so it is opened when first needed."""
        if self._timeline is None:
            self._timeline = Timeline(Snapshots(self.root, snapshots_folder(self.home, self.root), self._folders))
            self._timeline.replay(self._past)
        return self._timeline

    def replay(self, entries: Sequence[Entry]) -> None:
        """Takes up the snapshots that an earlier process of this session wrote down in its log."""
        notes = (e for e in entries if e.kind == "note" and e.key == NOTE)
        self._past = [(e.seq, e.record.value) for e in notes]

    @property
    def sandbox_words(self) -> str:
        """What confines commands in the present mode, in one or two words for a status line."""
        free = self.permissions.mode == "yolo" or self.sandbox.kind == NONE
        return "no sandbox" if free else "sandbox"

    def install(self, ctx: ToolContext) -> None:
        """Makes the tools of a session run under these guards."""
        ctx.wrap, ctx.wrap_online = partial(self.wrap, ctx), self.wrap_online
        ctx.refused = self.refused
        ctx.env = self.env
        ctx.veiled = lambda path: self.permissions.judge_path_read(path).decision != "allow"

    def wrap(self, ctx: ToolContext, argv: list[str], cwd: Path) -> list[str]:
        """Confines a command as the call of these tools was judged that runs now. Raises ToolFailure where that is not
        possible."""
        try:
            return self.sandbox.wrap(argv, cwd, ctx.state.get(CONFINEMENT, "off"), hosts=True)
        except SandboxError as error:
            raise ToolFailure(f"Not run: {error}.") from None

    def refused(self, argv: Sequence[str]) -> list[str]:
        """Which hosts a command was refused that `wrap` gave this command line, as far as nobody was told of it yet."""
        return self.sandbox.refused(argv)

    def server_confinement(self, *, network: bool) -> Confinement:
        """How an MCP server is confined in the present mode. Raises ToolFailure where it must not run."""
        self.child_confinement()
        return server_confinement(self.permissions.mode, self.permissions.confined, network)

    def child_confinement(self) -> Confinement:
        """How a program that lives longer than a call is confined in the present mode. Raises ToolFailure where it must
        not run: in plan without a sandbox."""
        if self.permissions.mode == "plan" and not self.permissions.confined:
            raise ToolFailure("Not run: in the mode plan it needs a sandbox, and there is none here")
        return child_confinement(self.permissions.mode, self.permissions.confined)

    def wrap_child(self, argv: list[str], cwd: Path, confinement: str = "") -> list[str]:
        """Confines a program that lives longer than a call (an MCP server, a hook), unless told otherwise as far as the
        mode does: reading only in plan, without network in auto. Raises ToolFailure where that is not possible."""
        usual = child_confinement(self.permissions.mode, self.permissions.confined)
        try:
            return self.sandbox.wrap(argv, cwd, confinement or usual)
        except SandboxError as error:
            raise ToolFailure(f"Not run: {error}.") from None

    def wrap_online(self, argv: list[str], cwd: Path) -> list[str]:
        """Confines a program whose work is the network."""
        return self.sandbox.wrap(argv, cwd, "network" if self.permissions.confined else "off")

    async def before(
        self, judgement: Judgement, tool: Tool, args: Mapping[str, Any], ctx: ToolContext, title: str
    ) -> dict[str, Any] | None:
        """Prepares an allowed call: its confinement, and for one with effects a snapshot; gives the note for the log
        by which that is found again. Where no snapshot can be made, a notice says so and the call goes on."""
        ctx.state[CONFINEMENT] = judgement.sandbox or "off"
        self.sandbox.clear()
        if tool.effect == "read" or not judgement.effects or judgement.sandbox == "read-only":
            return None
        try:
            also = tool.writes(ctx, args) if tool.writes else []
            ident = await asyncio.to_thread(lambda: self.timeline.snapshots.take(title, also))
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.notices.append(f"/undo does not cover this call: {reason(error)}")
            return None
        return {"id": ident, "title": title}

    def took(self, note: Mapping[str, Any], seq: int) -> None:
        """The note is in the log under this number."""
        self.timeline.add(Point(str(note["id"]), seq, str(note["title"])))

    def close(self) -> None:
        """Keeps what makes the next session quick, and clears up after the last command."""
        self.sandbox.clear()
        self.sandbox.close()
        if self._timeline is not None:
            self._timeline.snapshots.close()
