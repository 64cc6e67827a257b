"""`refold batch`: each task once, in a workspace of its own, whatever happens to the batch."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import argv, lines, refold, script

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def folder(tmp_path: Path, home: Path) -> Path:
    """Where the tasks file lies."""
    path = tmp_path / "batch"
    path.mkdir()
    return path


def bash(command: str) -> dict[str, Any]:
    """An answer that runs one command."""
    return {"calls": [{"name": "bash", "arguments": {"command": command}}]}


def write_tasks(folder: Path, tasks: list[dict[str, Any]]) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("".join(json.dumps(t) + "\n" for t in tasks))
    return path


def forty(folder: Path, pause: float = 0.0) -> Path:
    """40 tasks; each writes a file of its own in two steps and says so."""
    tasks = []
    for n in range(40):
        steps = [bash(f"echo {n} >> mine.txt"), bash("echo end >> mine.txt"), {"text": f"task {n}"}]
        model = script(folder / f"script{n}.jsonl", *({**s, "delay": pause} for s in steps))
        tasks.append({"id": f"t{n}", "prompt": f"Do {n}", "model": model})
    return write_tasks(folder, tasks)


def ended(folder: Path) -> dict[str, dict[str, Any]]:
    """Results by id; fails where a task has more than one."""
    rows = lines((folder / "tasks.results.jsonl").read_text())
    assert len({r["id"] for r in rows}) == len(rows)
    return {r["id"]: r for r in rows}


def whole(folder: Path) -> None:
    """Each of the 40 was done exactly once."""
    rows = ended(folder)
    assert {i: (r["exit_code"], r["result"]) for i, r in rows.items()} == {f"t{n}": (0, f"task {n}") for n in range(40)}
    found = {i: (Path(r["dir"]) / "mine.txt").read_text() for i, r in rows.items()}
    assert found == {f"t{n}": f"{n}\nend\n" for n in range(40)}


def test_killed_twice_each_task_is_done_once(folder: Path) -> None:
    tasks = forty(folder)
    words = argv("batch", str(tasks), "--yolo", "-j", "2")
    results = folder / "tasks.results.jsonl"
    for number, after in ((signal.SIGKILL, 6), (signal.SIGTERM, 14)):
        process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 300
        while not results.exists() or len(results.read_text().splitlines()) < after:
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(number)
        process.wait(timeout=30)
    done = refold("batch", str(tasks), "--yolo", "-j", "2", cwd=folder, timeout=500)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("40 of 40 tasks done")
    assert "tasks were done before" in done.stderr
    whole(folder)
    again = refold("batch", str(tasks), "--yolo", cwd=folder)
    assert (again.returncode, "40 of 40 tasks were done before" in again.stderr) == (0, True)


def test_what_failed_is_not_done_again_unasked_and_it_says_how(folder: Path) -> None:
    model = script(folder / "s.jsonl", "Done.")
    (folder / "t.jsonl").write_text('{"id": "a", "prompt": "x", "check": "exit 1"}\n{"id": "b", "prompt": "x"}\n')
    words = ("batch", "t.jsonl", "--model", model, "--yolo")
    first, again = refold(*words, cwd=folder), refold(*words, cwd=folder)
    told = "refold: 1 of 2 tasks have not ended well; the same with --retry-failed does those again"
    assert (first.returncode, first.stderr.splitlines()[-1]) == (1, told)
    assert (again.returncode, again.stderr) == (1, f"2 of 2 tasks were done before\n{told}\n")


def test_side_by_side_is_faster(folder: Path) -> None:
    """Models that take 200 ms an answer: four at a time against one at a time."""
    took = {}
    for jobs in (1, 4):
        place = folder / str(jobs)
        place.mkdir()
        steps = [bash("true") for _ in range(9)] + [{"text": "done"}]
        model = script(place / "s.jsonl", *({**s, "delay": 0.2} for s in steps))
        tasks = write_tasks(place, [{"prompt": "x"} for _ in range(4)])
        started = time.monotonic()
        done = refold("batch", str(tasks), "--yolo", "--model", model, "-j", str(jobs), cwd=place)
        took[jobs] = time.monotonic() - started
        assert done.returncode == 0, done.stderr
    assert took[1] / took[4] >= 1.6, took


def test_worktrees_of_a_repository(folder: Path) -> None:
    repo = folder / "repo"
    (repo / "sub").mkdir(parents=True)
    (repo / "sub" / "a.txt").write_text("a\n")
    git = ["git", "-C", str(repo), "-c", "user.name=x", "-c", "user.email=x@x"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    model = script(folder / "s.jsonl", bash("echo b >> a.txt; echo n > new.txt"), {"text": "done"})
    tasks = write_tasks(folder, [{"id": n, "prompt": "x", "dir": "repo/sub"} for n in ("one", "two")])
    done = refold("batch", str(tasks), "--yolo", "--model", model, cwd=folder)
    assert done.returncode == 0, done.stderr
    listed = subprocess.run([*git, "worktree", "list"], check=True, capture_output=True, text=True).stdout
    assert (len(listed.splitlines()), (repo / "sub" / "a.txt").read_text()) == (1, "a\n")
    for row in ended(folder).values():
        subprocess.run([*git, "apply", "--index", row["patch"]], check=True)
        assert ((repo / "sub" / "a.txt").read_text(), (repo / "sub" / "new.txt").read_text()) == ("a\nb\n", "n\n")
        subprocess.run([*git, "reset", "-q", "--hard"], check=True)


def test_a_copy_of_a_folder(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "a.txt").write_text("a\n")
    model = script(folder / "s.jsonl", bash("echo b >> a.txt"), {"text": "done"})
    tasks = write_tasks(folder, [{"id": "one", "prompt": "x", "dir": "src"}])
    assert refold("batch", str(tasks), "--yolo", "--model", model, cwd=folder).returncode == 0
    copy = Path(ended(folder)["one"]["dir"]) / "a.txt"
    assert (copy.read_text(), (folder / "src" / "a.txt").read_text()) == ("a\nb\n", "a\n")


def test_failures_are_told_and_done_again_on_request(folder: Path) -> None:
    good = script(folder / "good.jsonl", {"text": "fine"})
    bad = script(folder / "bad.jsonl", {"error": "quota", "message": "no money"})
    tasks = write_tasks(
        folder, [{"id": "good", "prompt": "x", "model": good}, {"id": "bad", "prompt": "x", "model": bad}]
    )
    done = refold("batch", str(tasks), cwd=folder)
    assert (done.returncode, done.stdout.splitlines()[:2][1]) == (1, "  exit 1: 1 (bad)")
    assert (ended(folder)["bad"]["cause"], ended(folder)["bad"]["why"]) == ("quota", "quota: no money")
    script(folder / "bad.jsonl", {"text": "now"})
    assert refold("batch", str(tasks), cwd=folder).returncode == 1
    again = refold("batch", str(tasks), "--retry-failed", cwd=folder)
    newest = lines((folder / "tasks.results.jsonl").read_text())[-1]
    assert (again.returncode, newest["id"], newest["result"], newest["attempt"]) == (0, "bad", "now", 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{nonsense\n", "line 1, is not JSON"),
        ('{"id": "x"}\n', "needs a prompt"),
        ('{"prompt": "x", "what": 1}\n', "a task has no what"),
        ('{"id": "a", "prompt": "x"}\n{"id": "a", "prompt": "y"}\n', "more than once"),
        ('{"id": "../up", "prompt": "x"}\n', "cannot be the name of a folder"),
    ],
)
def test_a_wrong_tasks_file(text: str, why: str, folder: Path) -> None:
    (folder / "tasks.jsonl").write_text(text)
    done = refold("batch", "tasks.jsonl", cwd=folder)
    assert (done.returncode, why in done.stderr) == (2, True)


def test_two_batches_do_not_share_results(folder: Path) -> None:
    model = script(folder / "s.jsonl", {"text": "late", "delay": 30})
    tasks = write_tasks(folder, [{"prompt": "x"}])
    first = subprocess.Popen(argv("batch", str(tasks), "--model", model), cwd=folder, stderr=subprocess.DEVNULL)
    while not list((folder / "tasks.work").glob("1.*")):
        time.sleep(0.02)
    second = refold("batch", str(tasks), "--model", model, cwd=folder)
    first.send_signal(signal.SIGTERM)
    assert (second.returncode, "another batch writes" in second.stderr) == (2, True)
    assert first.wait(timeout=30) == 143


if importlib.util.find_spec("ray"):

    def test_on_a_ray_cluster_of_this_machine(folder: Path) -> None:
        tasks = forty(folder)
        words = ["batch", str(tasks), "--yolo", "-j", "2", "--on", "ray"]
        done = refold(*words, cwd=folder, timeout=500)
        assert done.returncode == 0, done.stderr
        whole(folder)

else:

    def test_without_ray_it_is_said_how_to_get_it(folder: Path) -> None:
        done = refold("batch", str(write_tasks(folder, [{"prompt": "x"}])), "--on", "ray", cwd=folder)
        assert (done.returncode, "pip install 'refold[ray]'" in done.stderr) == (2, True)
