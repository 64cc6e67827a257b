"""Commands inside of the sandbox reach the hosts that rules allow, and nothing else: really tried from inside."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from agent.permissions import Permissions, parse_rule
from agent.permissions.reach import FILTERING, Reach
from agent.sandbox import RUNGS, Doors, Rung, Sandbox
from agent.sandbox.landlock import Landlock
from agent.sandbox.layout import Layout
from agent.sandbox.seatbelt import Seatbelt, profile
from tests.support.command import CHECKOUT
from tests.support.doorway import SECONDS, Site
from tests.support.loopback import listening
from tests.support.processes import gone, running, within

PRESENT = [rung for rung in RUNGS if rung.kind in FILTERING and not rung.why_not()]


class World:
    """A workspace, refold's own folder and a sandbox of one kind, under some rules."""

    def __init__(self, base: Path, rung: Rung) -> None:
        self.base, self.rung = base, rung
        self.root, self.home = base / "ws", base / "home" / (".refold" + "x" * 90)
        for folder in (self.root, self.home, base / "temp"):
            folder.mkdir(parents=True)
        self.box = Sandbox(self.root, self.home, rungs=[rung], temporary=[base / "temp"])
        self.permissions = Permissions("auto", root=self.root, home=self.home, sandbox=self.box)
        self.box.rules, self.box.doors = self.permissions, Doors(str(self.home), Reach(self.permissions.rules))

    def allow(self, *rules: str) -> None:
        for rule in rules:
            self.permissions.rules.add(parse_rule(rule, "allow", "session"))

    def wrap(self, *argv: str, hosts: bool = True, confinement: str = "workspace") -> list[str]:
        return self.box.wrap(list(argv), self.root, confinement, hosts=hosts)

    def run(self, *argv: str, hosts: bool = True, confinement: str = "workspace") -> tuple[int, str, str, list[str]]:
        """(exit code, output, errors, what was refused)."""
        words = self.wrap(*argv, hosts=hosts, confinement=confinement)
        done = subprocess.run(words, cwd=self.root, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr, self.box.refused(words)

    def python(self, code: str, *words: str, **how: object) -> str:
        """What a Python inside prints."""
        code = f"import socket, sys, os, urllib.request, ssl\nsocket.setdefaulttimeout({SECONDS})\n{code}"
        code_, out, errors, _ = self.run(sys.executable, "-I", "-c", code, *words, **how)  # type: ignore[arg-type]
        return out if code_ == 0 else errors


GET = """
def get(url):
    try:
        return urllib.request.urlopen(url).read().decode().strip()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode().strip()}"
    except OSError as error:
        return f"failed: {error}"
"""


@pytest.fixture(params=PRESENT, ids=lambda rung: rung.kind)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, request.param)
    yield made
    made.box.close()


def test_a_host_that_is_allowed_is_reached_and_another_is_not(world: World) -> None:
    with Site() as site, Site() as other:
        world.allow(f"fetch(localhost:{site.port})")
        code = f"{GET}\nfor url in sys.argv[1:]: print(get(url))"
        urls = [f"http://localhost:{site.port}/a", f"http://localhost:{other.port}/b", "https://pypi.example/simple"]
        ended, out, _, refused = world.run(sys.executable, "-I", "-c", f"import sys, urllib.request{code}", *urls)
    words = [
        f"the sandbox refused localhost:{other.port}; a rule fetch(localhost:{other.port}) would allow it",
        "the sandbox refused pypi.example:443; a rule fetch(pypi.example) would allow it",
    ]
    tunnel = f"failed: <urlopen error Tunnel connection failed: 403 Forbidden: {words[1]}>"
    assert (ended, out.splitlines()) == (0, ["page /a", f"403 refold: {words[0]}.", tunnel])
    assert (refused, site.heard, other.heard) == ([f"[{w}]" for w in words], ["GET /a"], [])


def test_over_tls(world: World) -> None:
    with Site(tls=world.root) as site:
        world.allow(f"fetch(localhost:{site.port})")
        code = "context = ssl.create_default_context(cafile='cert')\n"
        code += "print(urllib.request.urlopen(sys.argv[1], context=context).read().decode())"
        assert world.python(code, f"https://localhost:{site.port}/a") == "page /a\n\n"


def test_a_deny_beats_the_allow_and_rules_hold_from_the_moment_they_change(world: World) -> None:
    with Site() as site:
        world.allow("fetch(localhost)")
        address = f"http://localhost:{site.port}/a"
        code = f"{GET}\nprint(get(sys.argv[1]))"
        first = world.python(code, address)
        world.permissions.rules.add(parse_rule(f"fetch(localhost:{site.port})", "deny", "session"))
        refused = f"the sandbox refused localhost:{site.port}; the rule fetch(localhost:{site.port}) forbids it"
        assert (first, world.python(code, address)) == ("page /a\n", f"403 refold: {refused}.\n")


RAW = """
def tries():
    yield "tcp", lambda: socket.create_connection(("127.0.0.1", port), 5)
    yield "tcp6", lambda: socket.create_connection(("::1", port), 5)
    yield "internet", lambda: socket.create_connection(("1.1.1.1", 443), 5)
    yield "name", lambda: socket.create_connection(("localhost", port), 5)
    yield "lookup", lambda: socket.getaddrinfo("example.com", 443)
    yield "udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("1.1.1.1", 53))
    yield "abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0refold-test")
    yield "door", lambda: socket.socket(socket.AF_UNIX).connect("/dev/refold")
    yield "raw", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port = int(sys.argv[1])
for name, attempt in tries():
    try:
        attempt()
    except OSError:
        continue
    print(name)
"""


def test_no_socket_leads_past_the_proxy(world: World) -> None:
    with Site() as site, Site(address="::1") as other, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0refold-test")
        abstract.listen()
        world.allow(f"fetch(localhost:{site.port})", f"fetch([::1]:{other.port})")
        assert (world.python(RAW, str(site.port)), world.python(RAW, str(other.port))) == ("", "")
    assert (site.heard, other.heard) == ([], [])


def test_a_server_of_the_commands_own_is_reached_without_the_proxy(world: World) -> None:
    world.allow("fetch(example.org)")
    code = f"""{GET}
import threading, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"mine")
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(get(f"http://localhost:{{server.server_port}}/"), get(f"http://127.0.0.1:{{server.server_port}}/"))"""
    assert world.python(code) == "mine mine\n"


ENV = "print(sorted(n for n in os.environ if n.upper().endswith('_PROXY')), os.path.lexists('/dev/refold'))"


@pytest.mark.parametrize(("hosts", "confinement"), [(True, "read-only"), (False, "workspace"), (True, "network")])
def test_there_is_no_way_out_where_none_is_meant(world: World, hosts: bool, confinement: str) -> None:
    world.allow("fetch(localhost)")
    words = world.wrap("true", hosts=hosts, confinement=confinement)
    assert [word for word in words if "enter.py" in word or "/net/" in word] == []


def test_without_a_rule_it_costs_nothing(world: World) -> None:
    clean = {k: v for k, v in os.environ.items() if not k.upper().endswith("_PROXY")}
    words = world.wrap(sys.executable, "-I", "-c", f"import os; {ENV}")
    done = subprocess.run(words, cwd=world.root, capture_output=True, text=True, env=clean)
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("refold-doors")]
    assert (done.stdout, (world.home / "net").exists(), threads) == ("[] False\n", False, [])
    world.permissions.rules.add(parse_rule("fetch(example.org)", "deny", "session"))
    world.wrap("true")
    assert not (world.home / "net").exists()


def test_what_is_left_running_keeps_its_way_out_and_all_ends_with_the_last(world: World) -> None:
    with Site() as site:
        world.allow(f"fetch(localhost:{site.port})")
        later = f"import time, urllib.request{GET}\ntime.sleep(1)\nopen('late', 'w').write(get('http://localhost:{site.port}/late'))"
        (world.root / "later.py").write_text(later)
        ended, out, _, _ = world.run("bash", "-c", f"{sys.executable} later.py >/dev/null 2>&1 & echo $HTTP_PROXY")
        assert (ended, within(SECONDS, lambda: (world.root / "late").exists())) == (0, True)
        assert within(SECONDS, lambda: (world.root / "late").read_text() == "page /late")
        doors = world.box.doors
        assert doors is not None
        assert out.startswith("http://127.0.0.1:")
        assert within(SECONDS, lambda: not doors.held)
        assert within(SECONDS, lambda: [list(f.iterdir()) for f in (world.home / "net").iterdir()] == [[]])


def test_exit_codes_signals_and_arguments_are_those_of_the_command(world: World) -> None:
    world.allow("fetch(example.org)")
    assert world.run("bash", "-c", "exit 7") == (7, "", "", [])
    assert world.run("bash", "-c", "kill -9 $$")[0] == 137
    assert world.run("printf", "%s|", "a b", "", "-c", "ü")[1] == "a b||-c|ü|"
    assert world.run("no-such-program") == (127, "", "refold: no-such-program: No such file or directory\n", [])


def test_fifty_downloads_side_by_side(world: World) -> None:
    with Site() as site:
        world.allow(f"fetch(localhost:{site.port})")
        code = f"""
from concurrent.futures import ThreadPoolExecutor
def size(n): return len(urllib.request.urlopen(f"http://localhost:{site.port}/n{{n}}").read()) - n
print(set(ThreadPoolExecutor(50).map(size, range(200_000, 200_050))))"""
        assert world.python(code) == "{0}\n"


def test_pip_downloads_from_an_index_that_is_allowed(world: World) -> None:
    index = world.base / "index" / "simple" / "tiny"
    index.mkdir(parents=True)
    with zipfile.ZipFile(index / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "x = 1\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    (index / "index.html").write_text('<a href="tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>')

    class Index(SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(world.base / "index"))  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:
            pass

    with listening(Index) as port:
        pip = [sys.executable, "-m", "pip", "--isolated", "download", "tiny", "--no-deps", "-d", "got", "--retries=0"]
        pip += ["--index-url", f"http://localhost:{port}/simple", "--trusted-host", "localhost", "--no-cache-dir"]
        quiet = ["env", "PIP_CONFIG_FILE=/dev/null", *pip]
        world.allow("fetch(example.org)")
        assert world.run(*quiet)[0] == 1
        world.allow(f"fetch(localhost:{port})")
        ended, _, errors, refused = world.run(*quiet)
    assert (ended, refused, errors) == (0, [], errors)
    assert [p.name for p in (world.root / "got").iterdir()] == ["tiny-1.0-py3-none-any.whl"]


PROGRAM = """
import subprocess, sys
from pathlib import Path
from agent.permissions import Permissions, parse_rule
from agent.permissions.reach import Reach
from agent.sandbox import Doors, Sandbox
base, kind = Path(sys.argv[1]), sys.argv[2]
from agent.sandbox import RUNGS
box = Sandbox(base / "ws", base / "home", rungs=[r for r in RUNGS if r.kind == kind], temporary=[base / "temp"])
gate = Permissions("auto", root=base / "ws", home=base / "home", sandbox=box, extra=[parse_rule("fetch(example.org)")])
box.rules, box.doors = gate, Doors(str(base / "home"), Reach(gate.rules))
subprocess.run(box.wrap(["bash", "-c", "touch begun; sleep 4771"], base / "ws", "workspace", hosts=True))
"""


def test_after_kill_9_nothing_of_it_is_left(world: World) -> None:
    base = world.base / "other"
    for name in ("ws", "home", "temp"):
        (base / name).mkdir(parents=True)
    words = [sys.executable, "-c", PROGRAM, str(base), world.rung.kind]
    process = subprocess.Popen(words, cwd=CHECKOUT)
    net = base / "home" / "net"
    try:
        assert within(SECONDS, lambda: (base / "ws" / "begun").exists())
        # What opened the way has become the command itself.
        assert [p for p in running(str(base)) if p.line.startswith(f"{sys.executable} -I")] == []
        assert len(list(net.iterdir())) == 1
    finally:
        process.kill()
        process.wait()
        # The commands of a session are ended by its keeper; here it is the test that does.
        for left in running(str(base)):
            with suppress(ProcessLookupError):
                os.kill(left.pid, signal.SIGKILL)
    assert gone(str(base), SECONDS)
    doors = Doors(str(base / "home"), Reach([]))
    doors.open()
    mine = list(net.iterdir())
    doors.close()
    assert (len(mine), list(net.iterdir())) == (1, [])


def test_where_no_door_can_be_made_a_command_runs_without_and_that_is_told(world: World) -> None:
    (world.home / "net").write_text("in the way")
    world.allow("fetch(example.org)")
    code = f"import os; {ENV}"
    clean = ["env", *(f"-u{name}" for name in os.environ if name.upper().endswith("_PROXY"))]
    ended, out, errors, told = world.run(*clean, sys.executable, "-I", "-c", code)
    assert (ended, out, errors) == (0, "[] False\n", "")
    assert told == [f"[no host can be reached from the sandbox: {world.home / 'net'}: it is there already]"]
    assert world.box.refused([]) == []


def test_a_door_that_nobody_comes_to_is_shut_with_the_session(world: World) -> None:
    world.allow("fetch(example.org)")
    world.wrap("true")
    world.box.close()
    assert list((world.home / "net").iterdir()) == []
    assert world.run("true") == (0, "", "", [])


def test_where_hosts_cannot_be_told_from_each_other_the_sandbox_says_so() -> None:
    assert "no single hosts: a command reaches none of those that rules for fetch allow" in Landlock().limits()


def test_the_way_out_on_macos(tmp_path: Path) -> None:
    doors = Doors(str(tmp_path), Reach([parse_rule("fetch(localhost:3000)")]))
    layout = Layout(door=doors.open_port())
    assert doors.open_port() is layout.door
    doors.close()
    port = layout.door.path.rpartition(":")[2] if layout.door else ""
    lines = profile(layout).splitlines()
    assert lines.index("(deny network*)") < lines.index(f'(allow network-outbound (remote ip "localhost:{port}"))')
    env = [word for word in Seatbelt().wrap(["true"], tmp_path, layout) if "proxy=" in word.lower()]
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    upper = [f"{name}=http://127.0.0.1:{port}" for name in names] + ["NO_PROXY=127.0.0.1,::1,[::1]"]
    assert env == [*upper, *(f"{name.lower()}={value}" for name, value in (word.split("=", 1) for word in upper))]
