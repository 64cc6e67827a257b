"""Whatever a command did to the files is taken back, byte for byte, and nothing else is touched."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.undo import SnapshotError, Snapshots


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Kind and permission bits, and content or target, of everything in a folder, git's own folders included."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (0 if path.is_symlink() else mode, content)
    return found


def run(command: str, cwd: Path) -> None:
    subprocess.run(["bash", "-e", "-c", command], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "src" / "a.py").write_bytes(b"one\r\ntwo\n\xff\x00")
    (folder / "src" / "deep" / "b.py").write_text("b\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "ignored.log").write_text("log\n")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "link").symlink_to("src/a.py")
    (folder / "broken").symlink_to("nowhere")
    (folder / "private").mkdir(mode=0o700)
    (folder / "private" / "x").write_text("x")
    return folder


@pytest.fixture
def snapshots(work: Path, tmp_path: Path) -> Snapshots:
    return Snapshots(work, tmp_path / "store")


COMMANDS = [
    "echo more >> src/a.py",
    "rm -r src",
    "rm ignored.log link broken",
    "mv src lib; mv lib/a.py .",
    "chmod 644 run.sh; chmod 755 private; chmod 500 src",
    "ln -sf run.sh link; ln -s x new-link",
    "rm -r src; ln -s /etc src",
    "rm -r src; echo file > src",
    "rm run.sh; mkdir -p run.sh/inner; echo x > run.sh/inner/y",
    "rmdir empty; mkdir -p fresh/a/b; echo x > fresh/a/b/c",
    "rm -rf ./* .gitignore",
    "echo x > $'new\\nline'; echo y > $'\\xff\\xfe'; echo z > ' spaces '",
    "truncate -s 0 src/a.py; printf 'one\\r\\ntwo\\n' > src/a.py",
    "sed -i s/b/c/ src/deep/b.py; touch -d '2001-01-01' src/deep/b.py",
    "rm src/deep/b.py; chmod 555 src/deep",
    "mkdir -p node_modules/x; echo kept > node_modules/x/y; echo x > z",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_bash_did_is_taken_back(work: Path, snapshots: Snapshots, command: str) -> None:
    before = state(work)
    ident = snapshots.take("before")
    run(command, work)
    report = snapshots.restore(ident)
    shutil.rmtree(work / "node_modules", ignore_errors=True)  # never covered, so never removed
    assert state(work) == before
    assert report.failed == {}


@pytest.mark.parametrize("command", COMMANDS)
def test_and_going_back_is_itself_taken_back(work: Path, snapshots: Snapshots, command: str) -> None:
    ident = snapshots.take("before")
    run(command, work)
    after = state(work)
    report = snapshots.restore(ident)
    snapshots.restore(report.before)
    assert state(work) == after


@pytest.mark.parametrize("command", [c for c in COMMANDS if "rm -rf ./*" not in c])
def test_in_a_repository_nothing_of_git_is_touched(work: Path, snapshots: Snapshots, command: str) -> None:
    git = "git -c user.name=a -c user.email=a@b"
    run(f"git init -q; {git} add src; {git} commit -qm one; echo staged > s; {git} add s run.sh; echo dirty >> s", work)
    before, status = state(work), subprocess.check_output(["git", "status", "--porcelain"], cwd=work)
    ident = snapshots.take("before")
    index = (work / ".git" / "index").read_bytes()
    run(command, work)
    snapshots.restore(ident)
    shutil.rmtree(work / "node_modules", ignore_errors=True)
    assert (work / ".git" / "index").read_bytes() == index
    assert state(work) == before
    assert subprocess.check_output(["git", "status", "--porcelain"], cwd=work) == status


def test_what_git_itself_did_to_files_is_taken_back(work: Path, snapshots: Snapshots) -> None:
    git = "git -c user.name=a -c user.email=a@b"
    run(f"git init -q; {git} add .; {git} commit -qm one; echo work >> src/a.py; echo new > untracked", work)
    before = {k: v for k, v in state(work).items() if not k.startswith(".git/")}
    ident = snapshots.take("before")
    run("git reset -q --hard; git clean -qfdx", work)
    snapshots.restore(ident)
    assert {k: v for k, v in state(work).items() if not k.startswith(".git/")} == before


def test_the_files_of_a_submodule_are_covered_and_its_repository_is_not_touched(work: Path, tmp_path: Path) -> None:
    git = "git -c user.name=a -c user.email=a@b -c protocol.file.allow=always"
    other = tmp_path / "other"
    other.mkdir()
    run(f"git init -q; echo lib > lib.py; {git} add .; {git} commit -qm lib", other)
    run(f"git init -q; {git} submodule add -q {other} sub; {git} commit -qm sub; echo dirty >> sub/lib.py", work)
    snapshots = Snapshots(work, tmp_path / "store")
    before = state(work)
    ident = snapshots.take("before")
    run("echo broken > sub/lib.py; rm -r sub/lib.py; echo new > sub/new.py", work)
    snapshots.restore(ident)
    assert state(work) == before


def test_attributes_and_line_endings_of_a_repository_change_no_byte(work: Path, snapshots: Snapshots) -> None:
    (work / ".gitattributes").write_text("* text eol=lf ident working-tree-encoding=UTF-16\n")
    run("git init -q; git config core.autocrlf true", work)
    (work / "crlf.txt").write_bytes(b"a\r\nb\r\n$Id$\n")
    ident = snapshots.take("before")
    (work / "crlf.txt").unlink()
    snapshots.restore(ident)
    assert (work / "crlf.txt").read_bytes() == b"a\r\nb\r\n$Id$\n"


def test_without_git_on_the_path_it_works_as_well(
    work: Path, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    ident = snapshots.take("before")
    (work / "src" / "a.py").unlink()
    snapshots.restore(ident)
    assert (work / "src" / "a.py").exists()


def test_what_is_not_covered_is_listed_and_left_alone(work: Path, snapshots: Snapshots) -> None:
    (work / "big.bin").write_bytes(b"x" * 10_000_001)
    (work / "node_modules").mkdir()
    (work / "node_modules" / "m.js").write_text("m")
    os.mkfifo(work / "pipe")
    (work / "cache").mkdir()
    (work / "cache" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55")
    ident = snapshots.take("before")
    assert dict(snapshots.left_out()) == {
        "big.bin": "larger than 10 MB",
        "node_modules": "left out by its name",
        "pipe": "neither a file nor a folder",
        "cache": "a cache folder",
    }
    (work / "big.bin").write_bytes(b"small now")
    (work / "node_modules" / "n.js").write_text("n")
    report = snapshots.restore(ident)
    assert (work / "big.bin").read_bytes() == b"small now"
    assert (work / "node_modules" / "n.js").exists()
    assert report.left_out["big.bin"] == "larger than 10 MB"


def test_a_folder_with_something_uncovered_in_it_stays(work: Path, snapshots: Snapshots) -> None:
    ident = snapshots.take("before")
    run("mkdir -p new/node_modules; echo a > new/a; echo b > new/node_modules/b", work)
    report = snapshots.restore(ident)
    assert (sorted(os.listdir(work / "new")), report.failed) == (
        ["node_modules"],
        {"new": "it holds files that the snapshot does not cover"},
    )


def test_nothing_changed_gives_the_same_snapshot(work: Path, snapshots: Snapshots) -> None:
    first = snapshots.take("one")
    assert snapshots.take("two") == first
    (work / "src" / "a.py").write_text("x")
    assert snapshots.take("three") != first


def test_two_writes_within_one_tick_of_the_clock_are_told_apart(work: Path, snapshots: Snapshots) -> None:
    path = work / "race.txt"
    idents: list[str] = []
    for n in range(50):
        path.write_text(f"{n:04d}")
        idents.append(snapshots.take(str(n)))
    for n in (0, 17, 49):
        snapshots.restore(idents[n])
        assert path.read_text() == f"{n:04d}"


def test_a_file_changed_behind_its_times_is_seen(work: Path, snapshots: Snapshots) -> None:
    path = work / "src" / "deep" / "b.py"
    stat = path.stat()
    ident = snapshots.take("one")
    time.sleep(0.06)
    snapshots.take("two")
    path.write_text("c\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    snapshots.restore(ident)
    assert path.read_text() == "b\n"


def test_a_new_session_goes_on_with_what_is_there(work: Path, tmp_path: Path) -> None:
    first = Snapshots(work, tmp_path / "store")
    idents = []
    for n in range(120):  # more than one chain of differences
        (work / "n").write_text(str(n))
        idents.append(first.take(str(n)))
    first.close()
    second = Snapshots(work, tmp_path / "store")
    for n in (0, 49, 50, 51, 119):
        second.restore(idents[n])
        assert (work / "n").read_text() == str(n)
    assert second.store.ids()[:120] == idents


def test_hard_links_stay_linked(work: Path, snapshots: Snapshots) -> None:
    os.link(work / "run.sh", work / "other.sh")
    ident = snapshots.take("before")
    run("echo changed >> run.sh", work)
    snapshots.restore(ident)
    assert (work / "run.sh").stat().st_ino == (work / "other.sh").stat().st_ino
    assert (work / "other.sh").read_text() == "#!/bin/sh\n"


def test_a_file_outside_that_was_named_is_covered(work: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    there, new = tmp_path / "there.txt", tmp_path / "new.txt"
    there.write_text("old")
    ident = snapshots.take("before", also=[there, new])
    there.write_text("changed")
    new.write_text("made")
    report = snapshots.restore(ident)
    assert (there.read_text(), new.exists()) == ("old", False)
    snapshots.restore(report.before)
    assert (there.read_text(), new.read_text()) == ("changed", "made")


def test_further_folders_are_covered(work: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "m").write_text("m")
    snapshots = Snapshots(work, tmp_path / "store", [more])
    ident = snapshots.take("before")
    run(f"rm {more}/m; echo x > {more}/n; echo x >> run.sh", work)
    snapshots.restore(ident)
    assert (sorted(os.listdir(more)), (work / "run.sh").read_text()) == (["m"], "#!/bin/sh\n")


def test_the_store_may_lie_in_the_workspace(work: Path) -> None:
    snapshots = Snapshots(work, work / ".own" / "undo")
    ident = snapshots.take("before")
    run("rm -r src", work)
    snapshots.restore(ident)
    assert (work / "src" / "a.py").exists()
    assert not any(p.startswith(".own/undo") for p in snapshots.load(ident).tree)


def test_a_link_put_in_the_place_of_a_folder_is_not_followed(work: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "a.py").write_text("theirs")
    ident = snapshots.take("before")
    run(f"rm -r src; ln -s {tmp_path}/victim src", work)
    snapshots.restore(ident)
    assert (tmp_path / "victim" / "a.py").read_text() == "theirs"
    assert (work / "src" / "a.py").read_bytes() == b"one\r\ntwo\n\xff\x00"


def test_what_changes_while_it_is_looked_at_holds_nothing_up_and_leads_nowhere(work: Path, tmp_path: Path) -> None:
    """A command in the background puts pipes, links and growing files in the place of others as fast as it can."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("the key\n")
    job = """
    while :; do
        rm -f x; mkfifo x; rm x; ln -s ../outside/a.py x; rm x; echo x > x
        mv src kept; ln -s ../outside src; rm src; mv kept src
    done"""
    before = state(outside)
    with subprocess.Popen(["bash", "-c", f"yes > grows & {job}"], cwd=work, start_new_session=True) as process:
        snapshots = Snapshots(work, tmp_path / "store")
        try:
            idents = [snapshots.take(str(n)) for n in range(40)]
            for ident in idents[::8]:
                snapshots.restore(ident)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    kept = [snapshots.store.get(e[2]) for i in idents for e in snapshots.load(i).tree.values() if e[0] == "f"]
    assert (state(outside), b"the key\n" in kept) == (before, False)


def test_only_some_paths(work: Path, snapshots: Snapshots) -> None:
    ident = snapshots.take("before")
    run("echo x > run.sh; echo y > ignored.log", work)
    snapshots.restore(ident, only=["run.sh"])
    assert ((work / "run.sh").read_text(), (work / "ignored.log").read_text()) == ("#!/bin/sh\n", "y\n")


def test_the_difference_as_a_diff(work: Path, snapshots: Snapshots) -> None:
    ident = snapshots.take("before")
    run(
        "echo more >> src/deep/b.py; rm ignored.log; chmod 644 run.sh; ln -sf x link; printf new > n; echo >> src/a.py",
        work,
    )
    assert snapshots.diff(ident) == (
        "diff a/ignored.log b/ignored.log\ndeleted file mode 100644\n"
        "--- a/ignored.log\n+++ /dev/null\n@@ -1 +0,0 @@\n-log\n"
        "diff a/link b/link\n--- a/link\n+++ b/link\n@@ -1 +1 @@\n-src/a.py\n\\ No newline at end of file\n+x\n"
        "\\ No newline at end of file\n"
        "diff a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+new\n"
        "\\ No newline at end of file\n"
        "diff a/run.sh b/run.sh\nold mode 100755\nnew mode 100644\n"
        "diff a/src/a.py b/src/a.py\nBinary files a/src/a.py and b/src/a.py differ\n"
        "diff a/src/deep/b.py b/src/deep/b.py\n--- a/src/deep/b.py\n+++ b/src/deep/b.py\n@@ -1 +1,2 @@\n b\n+more\n"
    )
    assert [(c.path, c.what) for c in snapshots.changes(ident)] == [
        ("ignored.log", "deleted"),
        ("link", "changed"),
        ("n", "created"),
        ("run.sh", "mode"),
        ("src/a.py", "changed"),
        ("src/deep/b.py", "changed"),
    ]


def test_a_damaged_store_changes_nothing(work: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    ident = snapshots.take("before")
    run("echo x > run.sh; rm ignored.log", work)
    for path in (tmp_path / "store" / "objects").glob("*/*"):
        path.write_bytes(b"damaged")
    before = state(work)
    with pytest.raises(SnapshotError):
        snapshots.restore(ident)
    assert state(work) == before
    with pytest.raises(SnapshotError, match="no readable snapshot nothing"):
        snapshots.restore("nothing")


def test_pruning_keeps_what_is_needed(work: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    old = snapshots.take("old")
    (work / "only-old.txt").write_text("gone soon" * 100)
    middle = snapshots.take("middle")
    (work / "only-old.txt").unlink()
    new = snapshots.take("new")
    for path in (tmp_path / "store").rglob("*"):
        if path.is_file() and new not in path.name:
            os.utime(path, (1, 1))
    assert snapshots.prune(3600) >= 0
    snapshots.restore(new)
    assert snapshots.store.ids()[0] == old  # the chain of the newest one begins there
    assert middle in snapshots.store.ids()


def test_everything_is_private(work: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    snapshots.take("before")
    modes = {p.stat().st_mode & 0o077 for p in (tmp_path / "store").rglob("*") if p.name not in ("lock", "store")}
    assert modes == {0}


def test_five_thousand_files_are_quick(tmp_path: Path) -> None:
    for n in range(5_000):
        path = tmp_path / "work" / f"d{n // 50}" / f"f{n}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{n}\n" * 20)
    snapshots = Snapshots(tmp_path / "work", tmp_path / "store")
    snapshots.take("first")
    time.sleep(0.1)
    snapshots.take("settled")
    times: list[float] = []
    for n in range(7):
        (tmp_path / "work" / "d3" / f"f{150 + n}.py").write_text("changed")
        start = time.thread_time()  # of this thread alone: other work on the machine does not count
        snapshots.take(str(n))
        times.append(time.thread_time() - start)
    assert min(times) < 0.05


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "mkdir", "rename", "link", "chmod", "snapshot"]),
        st.sampled_from(["a", "b", "d", "d/x", "d/y", "e", "e/f/z"]),
        st.sampled_from(["a", "c", "d/y", "e"]),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_any_state_is_brought_back_from_any_other(tmp_path: Path, steps: list[tuple[str, str, str]]) -> None:
    work, store = tmp_path / "work", tmp_path / "store"
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(store, ignore_errors=True)
    work.mkdir()
    snapshots = Snapshots(work, store)
    kept = [(snapshots.take("start"), state(work))]
    for n, (what, path, other) in enumerate(steps):
        if what == "snapshot":
            kept.append((snapshots.take(str(n)), state(work)))
        else:
            change(work / path, what, work / other, n)
    for ident, expected in reversed(kept):
        snapshots.restore(ident)
        assert state(work) == expected


def change(path: Path, what: str, other: Path, n: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if what == "write":
            path.write_text(f"{n}")
        elif what == "delete":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        elif what == "mkdir":
            path.mkdir()
        elif what == "rename":
            path.rename(other)
        elif what == "link":
            path.symlink_to("a")
        else:
            path.chmod(0o700 + n % 8)
    except OSError:
        return
