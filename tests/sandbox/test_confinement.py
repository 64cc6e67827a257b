"""Every rung that works on this machine, tried from inside: what must fail is really attempted."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.permissions import Permissions, parse_rule
from agent.sandbox import RUNGS, Rung, Sandbox
from agent.sandbox.layout import Place, hidden_paths

PRESENT = [rung for rung in RUNGS if not rung.why_not()]
CONFINED = ("read-only", "workspace")


@dataclass
class World:
    """A workspace, a person's home and a folder that is none of the agent's business."""

    base: Path
    rung: Rung

    @property
    def root(self) -> Path:
        return self.base / "ws"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    def run(self, confinement: str, *argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        box = Sandbox(self.root, self.home / ".refold", rungs=[self.rung], temporary=[self.base / "temp"])
        wrapped = box.wrap(list(argv), cwd or self.root, confinement)
        return subprocess.run(wrapped, cwd=cwd or self.root, capture_output=True, text=True, timeout=30)

    def shell(self, confinement: str, command: str) -> subprocess.CompletedProcess[str]:
        return self.run(confinement, "bash", "-c", command)

    def python(self, confinement: str, code: str) -> subprocess.CompletedProcess[str]:
        return self.run(confinement, sys.executable, "-I", "-c", code)


@pytest.fixture(params=PRESENT, ids=lambda rung: rung.kind)
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path, request.param)
    for folder in (made.root, made.outside, made.home / ".ssh", made.home / ".refold", tmp_path / "temp"):
        folder.mkdir(parents=True)
    (made.root / "a.txt").write_text("inside\n")
    (made.outside / "b.txt").write_text("outside\n")
    (made.home / ".ssh" / "id_ed25519").write_text("the private key\n")
    (made.home / ".netrc").write_text("the password\n")
    (made.home / ".refold" / ".env").write_text("the api key\n")
    (made.home / "notes.txt").write_text("notes\n")
    monkeypatch.setenv("HOME", str(made.home))
    return made


@pytest.mark.parametrize("confinement", CONFINED)
def test_reads_the_workspace_and_what_lies_elsewhere(world: World, confinement: str) -> None:
    done = world.shell(confinement, f"cat a.txt {world.outside}/b.txt {world.home}/notes.txt; pwd")
    assert (done.returncode, done.stdout) == (0, f"inside\noutside\nnotes\n{world.root}\n")


WRITES = [
    "echo x > {outside}/new.txt",
    "echo x >> {outside}/b.txt",
    "rm {outside}/b.txt",
    "mv {outside}/b.txt {outside}/c.txt",
    "mv {outside}/b.txt taken",
    "ln {outside}/b.txt {outside}/hard",
    "mkdir {outside}/folder",
    "truncate -s 0 {outside}/b.txt",
    "echo x > {home}/.bashrc",
    "ln -s {outside} link; echo x > link/new.txt",
    "cp {outside}/b.txt {home}/stolen.txt",
    "tar -cf {outside}/a.tar a.txt",
]


@pytest.mark.parametrize("confinement", CONFINED)
def test_bash_writes_nothing_outside(world: World, confinement: str) -> None:
    before = snapshot(world.outside), snapshot(world.home)
    tries = [c.format(outside=world.outside, home=world.home) for c in WRITES]
    done = world.shell(
        confinement, "\n".join(f"if ( {c} ) 2>/dev/null; then echo {n}; fi" for n, c in enumerate(tries))
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert (snapshot(world.outside), snapshot(world.home)) == before


@pytest.mark.parametrize("confinement", CONFINED)
def test_python_writes_nothing_outside(world: World, confinement: str) -> None:
    before = snapshot(world.outside)
    code = f"""
import os, shutil
def tries():
    yield lambda: open({str(world.outside / "new.txt")!r}, "w")
    yield lambda: os.open({str(world.outside / "b.txt")!r}, os.O_RDWR)
    yield lambda: os.unlink({str(world.outside / "b.txt")!r})
    yield lambda: os.rename({str(world.outside / "b.txt")!r}, {str(world.root / "taken")!r})
    yield lambda: os.symlink("x", {str(world.outside / "s")!r})
    yield lambda: os.mkfifo({str(world.outside / "fifo")!r})
    yield lambda: os.truncate({str(world.outside / "b.txt")!r}, 0)
    yield lambda: shutil.rmtree({str(world.outside)!r})
for attempt in tries():
    try:
        attempt()
    except OSError:
        continue
    print("it worked")
"""
    assert world.python(confinement, code).stdout == ""
    assert snapshot(world.outside) == before


def test_the_workspace_can_be_changed(world: World) -> None:
    done = world.shell("workspace", "echo new > b.txt; rm a.txt; mkdir -p d/e; chmod 700 d; ls")
    assert (done.returncode, done.stdout) == (0, "b.txt\nd\n")
    assert (world.root / "b.txt").read_text() == "new\n"


@pytest.mark.parametrize(
    "command", ["echo x > new.txt", "echo x >> a.txt", "rm a.txt", "chmod 777 a.txt", "touch a.txt"]
)
def test_nothing_can_be_changed_where_it_is_read_only(world: World, command: str) -> None:
    before = snapshot(world.root)
    assert world.shell("read-only", command).returncode != 0
    assert snapshot(world.root) == before


@pytest.mark.parametrize("confinement", CONFINED)
def test_here_documents_and_temporary_files_work(world: World, confinement: str) -> None:
    done = world.shell(confinement, 'cat <<E\nhere\nE\nf=$(mktemp) && echo kept > "$f" && cat "$f"; echo x > /dev/null')
    assert (done.stdout, done.returncode) == ("here\nkept\n", 0)


@pytest.mark.parametrize("confinement", [*CONFINED, "network"])
def test_no_key_can_be_read(world: World, confinement: str) -> None:
    secrets = [world.home / name for name in (".ssh/id_ed25519", ".netrc", ".refold/.env")]
    shell = "\n".join(f"cat {p}; cp {p} k; cat k; ln -sf {p.parent} way; cat way/{p.name}; base64 {p}" for p in secrets)
    assert world.shell(confinement, shell).stdout == ""
    code = "\n".join(f"try: print(open({str(p)!r}).read())\nexcept OSError: pass" for p in secrets)
    assert world.python(confinement, code).stdout.strip() == ""


def test_a_secret_of_the_workspace_is_hidden_where_that_is_possible(world: World) -> None:
    (world.root / "sub").mkdir()
    (world.root / "sub" / ".env").write_text("TOKEN=the token\n")
    (world.root / "sub" / ".env.example").write_text("TOKEN=\n")
    done = world.shell("read-only", "cat sub/.env; cat sub/.env.example")
    assert done.stdout == "TOKEN=\n"
    if not world.rung.limits():
        assert world.shell("workspace", "cat sub/.env; cat sub/.env.example").stdout == "TOKEN=\n"


@pytest.mark.parametrize("confinement", CONFINED)
def test_no_socket_leads_outside(world: World, confinement: str) -> None:
    with Listener() as listener:
        code = f"""
import socket
def tcp(): socket.create_connection(("127.0.0.1", {listener.port}), 2).sendall(b"tcp")
def udp(): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"udp", ("127.0.0.1", {listener.port}))
def unix():
    s = socket.socket(socket.AF_UNIX)
    s.connect("\\0refold-test-{listener.port}")
for attempt in (tcp, udp, unix):
    try:
        attempt()
    except OSError:
        continue
    print(attempt.__name__ if attempt is not udp else "")
"""
        out = world.python(confinement, code).stdout.split()
        shell = world.shell(confinement, f"echo hello > /dev/tcp/127.0.0.1/{listener.port}")
    assert (out, shell.returncode != 0, listener.heard) == ([], True, [])


@pytest.mark.parametrize("confinement", (*CONFINED, "network"))
def test_no_socket_in_the_file_system_leads_outside(world: World, confinement: str) -> None:
    places = [world.outside / "agent.sock", world.base / "temp/deep/a b.sock", world.root / "own.sock"]
    (world.base / "temp" / "deep").mkdir()
    with contextlib.ExitStack() as stack:
        for path in places:
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(path))
            listener.listen()
        code = f"""
import socket
for path in {[str(p) for p in places]!r}:
    try:
        socket.socket(socket.AF_UNIX).connect(path)
    except OSError:
        continue
    print("reached", path)
"""
        assert world.python(confinement, code).stdout == ""


def test_with_the_network_allowed_a_connection_is_made(world: World) -> None:
    with Listener() as listener:
        done = world.shell("network", f"echo hello > /dev/tcp/127.0.0.1/{listener.port}")
        listener.wait()
    assert (done.returncode, listener.heard) == (0, [b"hello\n"])


@pytest.mark.parametrize("confinement", CONFINED)
def test_other_processes_cannot_be_read_or_ended(world: World, confinement: str) -> None:
    with subprocess.Popen(["sleep", "30"], env={"PATH": os.environ["PATH"], "OUR_KEY": "the api key"}) as other:
        done = world.shell(confinement, f"cat /proc/{other.pid}/environ; kill -9 {other.pid}; cat /proc/*/environ")
        alive = other.poll() is None
        other.kill()
    assert ("the api key" in done.stdout, alive) == (False, True)


@pytest.mark.parametrize("confinement", CONFINED)
def test_a_child_of_a_child_is_confined_as_well(world: World, confinement: str) -> None:
    command = f"(setsid bash -c 'sh -c \"echo x > {world.outside}/new.txt\"; cat {world.home}/.ssh/*'; true)"
    assert world.shell(confinement, command).stdout == ""
    assert snapshot(world.outside) == snapshot_of({"b.txt": "outside\n"})


@pytest.mark.parametrize("confinement", CONFINED)
def test_the_confinement_cannot_be_undone_from_inside(world: World, confinement: str) -> None:
    tries = [
        f"mount -o remount,rw / ; echo x > {world.outside}/new.txt",
        f"mount -o remount,rw,bind {world.outside}; mount --bind {world.root} {world.outside}; touch {world.outside}/n",
        f"unshare -rm sh -c 'mount -o remount,rw,bind {world.base}; umount {world.home}/.ssh; touch {world.outside}/n'",
        f"umount {world.home}/.ssh; umount -l {world.home}/.refold; cat {world.home}/.ssh/id_ed25519",
        f"nsenter -t 1 -m touch {world.outside}/n",
        f"chroot /proc/1/root touch {world.outside}/n",
    ]
    for command in tries:
        assert "key" not in world.shell(confinement, f"({command}) 2>/dev/null").stdout
        assert snapshot(world.outside) == snapshot_of({"b.txt": "outside\n"}), command


def test_hooks_and_config_of_the_repository_stay_as_they_are(world: World) -> None:
    if world.rung.limits():
        return  # this rung says so among its limits
    subprocess.run(["git", "init", "-q", world.root], check=True)
    before = snapshot(world.root / ".git")
    done = world.shell(
        "workspace", "echo evil > .git/hooks/pre-commit; git config core.fsmonitor evil; mv .git/hooks x"
    )
    assert done.returncode != 0
    assert snapshot(world.root / ".git") == before


SWAPS = [
    "mv .git old && cp -r old .git",
    "rm -rf .git; git init -q",
    "rmdir .git/hooks; mkdir -p .git/hooks",
    "mv .git/modules .git/m; cp -r .git/m .git/modules",
    "mv .git/modules/libs .git/m; mkdir .git/modules; cp -r .git/m .git/modules/libs",
    "cd libs/below; mv .git old; cp -r old .git",
    "true",
]


@pytest.mark.parametrize("swap", SWAPS)
def test_no_repository_is_swapped_for_one_with_hooks(world: World, swap: str) -> None:
    if world.rung.limits():
        return  # this rung says so among its limits
    repositories = [world.root / ".git", world.root / ".git/modules/libs/sub", world.root / "libs/below/.git"]
    for repository in repositories:
        subprocess.run(["git", "init", "-q", "--bare", "--template=", repository], check=True)
    evil = [f"mkdir -p {r}/hooks; echo evil > {r}/hooks/pre-commit; echo evil >> {r}/config" for r in repositories]
    world.shell("workspace", f"({swap}); {'; '.join(evil)}")
    found = {r: (r / "hooks/pre-commit").exists() or "evil" in (r / "config").read_text() for r in repositories}
    assert found == dict.fromkeys(repositories, False)


def test_no_repository_takes_its_hooks_from_elsewhere(world: World) -> None:
    subprocess.run(["git", "init", "-q", world.root], check=True)
    subprocess.run(["git", "init", "-q", "--bare", world.root / ".git/modules/a/b"], check=True)
    box = Sandbox(world.root, world.home / ".refold", rungs=[world.rung], temporary=[world.base / "temp"])
    leads = "for d in .git .git/modules/a/b; do echo /evil > $d/commondir; done; ls .git/commondir"
    done = subprocess.run(box.wrap(["bash", "-c", leads], world.root, "workspace"), cwd=world.root, check=False)
    assert (done.returncode, (world.root / ".git/commondir").exists()) == (0, True)
    box.clear()
    assert list(world.root.rglob("commondir")) == []


def test_the_file_that_leads_to_a_worktree_stays_and_git_works_there(world: World) -> None:
    if world.rung.limits():
        return
    main = world.base / "main"
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", main], check=True)
    subprocess.run(["git", "-C", main, *who, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    shutil.rmtree(world.root)
    subprocess.run(["git", "-C", main, "worktree", "add", "-q", "-f", world.root], check=True)
    link = (world.root / ".git").read_text()
    done = world.shell("workspace", f"touch a; git add a; git {' '.join(who)} commit -qm y; echo 'gitdir: evil' > .git")
    log = subprocess.run(["git", "log", "--format=%s"], cwd=world.root, capture_output=True, text=True, check=True)
    assert (done.returncode != 0, (world.root / ".git").read_text(), log.stdout) == (True, link, "y\nx\n")


def test_a_folder_cannot_open_another_repository_by_naming_it(world: World) -> None:
    other = world.outside / "repository"
    subprocess.run(["git", "init", "-q", other], check=True)
    subprocess.run(["git", "init", "-q", other / ".git/worktrees/w"], check=True)
    before = snapshot(other)
    for target in (other / ".git", other / ".git/worktrees/w/.git"):
        (world.root / ".git").write_text(f"gitdir: {target}\n")
        done = world.shell("workspace", f"echo evil > {target}/HEAD; echo evil > {other}/.git/HEAD")
        assert (done.returncode != 0, snapshot(other)) == (True, before)


def test_pipes_in_the_place_of_gits_files_are_not_waited_for(world: World) -> None:
    os.mkfifo(world.root / ".git")
    assert world.shell("workspace", "echo hello").stdout == "hello\n"
    (world.root / ".git").unlink()
    (world.root / ".git").mkdir()
    os.mkfifo(world.root / ".git" / "index")
    assert world.shell("workspace", "echo hello").stdout == "hello\n"


def test_git_works_in_the_workspace(world: World) -> None:
    subprocess.run(["git", "init", "-q", world.root], check=True)
    who = "-c user.name=a -c user.email=a@b.c"
    done = world.shell("workspace", f"git add a.txt && git {who} commit -qm one && git log --oneline | wc -l")
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr


def test_exit_codes_and_signals_come_through(world: World) -> None:
    assert world.shell("workspace", "exit 7").returncode == 7
    assert world.shell("workspace", "kill -TERM $$").returncode in (-15, 143)
    assert world.run("workspace", "no-such-program").returncode != 0


def test_descriptors_are_handed_on(world: World) -> None:
    box = Sandbox(world.root, world.home / ".refold", rungs=[world.rung], temporary=[world.base / "temp"])
    reading, writing = os.pipe()
    argv = box.wrap(["bash", "-c", f"cd /usr; pwd >&{writing}"], world.root, "workspace")
    subprocess.run(argv, cwd=world.root, pass_fds=(writing,), check=True)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "/usr\n"


def test_what_leads_outside_is_not_in_the_environment(world: World) -> None:
    box = Sandbox(world.root, world.home / ".refold", rungs=[world.rung], temporary=[world.base / "temp"])
    env = {**os.environ, "SSH_AUTH_SOCK": "/x", "DBUS_SESSION_BUS_ADDRESS": "/y", "OTHER": "kept"}
    argv = box.wrap(["env"], world.root, "workspace")
    out = subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "OTHER=kept" in out
    assert [line for line in out if line.startswith(("SSH_AUTH_SOCK", "DBUS_"))] == []


class Listener:
    """Listens on loopback, over TCP, UDP and an abstract unix socket, and keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._unix = socket.socket(socket.AF_UNIX)
        self._unix.bind(f"\0refold-test-{self.port}")
        self._unix.listen()
        self._threads = [threading.Thread(target=f, daemon=True) for f in (self._stream, self._datagrams)]

    def __enter__(self) -> "Listener":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        for part in (self._tcp, self._udp, self._unix):
            part.close()

    def _stream(self) -> None:
        try:
            connection, _ = self._tcp.accept()
        except OSError:
            return
        with connection:
            self.heard.append(connection.recv(100))

    def _datagrams(self) -> None:
        try:
            self.heard.append(self._udp.recv(100))
        except OSError:
            return

    def wait(self) -> None:
        self._threads[0].join(5)


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of everything in a folder."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(p for p in folder.rglob("*") if "cache" not in p.parts):
        stat = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = (stat.st_mode, content)
    return found


def snapshot_of(files: dict[str, str]) -> dict[str, tuple[int, bytes]]:
    return {name: (0o100644, text.encode()) for name, text in files.items()}


def test_what_git_knows_stays_readable_and_what_is_added_later_does_not(world: World) -> None:
    subprocess.run(["git", "init", "-q", world.root], check=True)
    (world.root / "test.pem").write_text("a certificate of the tests\n")
    subprocess.run(["git", "-C", world.root, "add", "test.pem"], check=True)
    (world.root / "real.pem").write_text("the real one\n")
    box = Sandbox(world.root, world.home / ".refold", rungs=[world.rung], temporary=[world.base / "temp"])
    for _ in range(2):
        argv = box.wrap(["sh", "-c", "git add -f real.pem; cat *.pem"], world.root, "read-only")
        done = subprocess.run(argv, cwd=world.root, capture_output=True, text=True)
        assert done.stdout == "a certificate of the tests\n"
        subprocess.run(["git", "-C", world.root, "add", "real.pem"], check=True)


def test_rules_open_and_close_files(world: World) -> None:
    (world.root / ".env").write_text("KEY=1\n")
    (world.root / "plans").mkdir()
    (world.root / "plans" / "a.txt").write_text("a plan\n")
    (world.root / "b.plan").write_text("b plan\n")
    box = Sandbox(world.root, world.home / ".refold", rungs=[world.rung], temporary=[world.base / "temp"])
    rules = [parse_rule("read(.env)"), parse_rule("read(plans/**)", "deny"), parse_rule("read(*.plan)", "deny")]
    box.rules = Permissions("auto", root=world.root, home=world.home / ".refold", extra=rules)
    argv = box.wrap(["sh", "-c", "cat .env plans/a.txt b.plan"], world.root, "read-only")
    assert subprocess.run(argv, cwd=world.root, capture_output=True, text=True).stdout == "KEY=1\n"


def test_the_program_is_found_although_it_lies_in_our_own_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("work/sub", "sessions"):
        (home / name).mkdir(parents=True)
    hidden = hidden_paths(Place(str(home / "work"), str(home), temporary=()))
    assert str(home / "sessions") in hidden
    assert not [h for h in hidden if str(home / "work").startswith(h)]
