"""Rules: how they are written, what they fit, which one decides, where they are kept."""

import json
import stat
import threading
from pathlib import Path

import pytest

from agent.permissions import Rule, RuleError, parse_rule
from agent.permissions.commands import decide, judge_by
from agent.permissions.hosts import host_matches
from agent.permissions.rules import name_matches, path_matches, words_match
from agent.permissions.store import RuleBook

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "shell_rules.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()] if CASES.exists() else []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("bash(git log *)", Rule("allow", "bash", "git log *")),
        ("Bash(npm run test:*)", Rule("allow", "bash", "npm run test *")),
        ("bash", Rule("allow", "bash", "*")),
        ("edit(src/**)", Rule("allow", "edit", "src/**")),
        ("Write(src/**)", Rule("allow", "edit", "src/**")),
        ("Read(~/notes/**)", Rule("allow", "read", "~/notes/**")),
        ("fetch(Example.org)", Rule("allow", "fetch", "example.org")),
        ("WebFetch(domain:example.org)", Rule("allow", "fetch", "example.org")),
        ("mcp(github/*)", Rule("allow", "mcp", "github/*")),
        ("mcp__github__search", Rule("allow", "mcp", "github/search")),
        ("mcp__github", Rule("allow", "mcp", "github/*")),
        ("outside(docker *)", Rule("allow", "outside", "docker *")),
        ("*", Rule("allow", "*", "*")),
        ("bash(echo (a))", Rule("allow", "bash", "echo (a)")),
    ],
)
def test_a_rule_is_read(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize("text", ["", "bash(", "bash()", "git log", "(x)", "bash(x", "bash( )"])
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(RuleError):
        parse_rule(text)


@pytest.mark.parametrize("text", ["bash(git log *)", "edit(src/**)", "fetch(a.b)", "mcp(a/b)", "todo"])
def test_a_rule_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_rule(text)) == text


@pytest.mark.parametrize(
    ("pattern", "words", "allow", "deny"),
    [
        ("git log *", "git log", True, True),
        ("git log *", "git log -1 a", True, True),
        ("git log", "git log -1", False, True),
        ("git log", "git log", True, True),
        ("git log *", "git logs", False, False),
        ("git *", "gitk", False, False),
        ("npm run test*", "npm run test:unit", True, True),
        ("npm * build", "npm run build", True, True),
        ("ls [a]", "ls a", False, False),
        ("git commit -m 'a b'", "git commit -m|a b", True, True),
        ("*", "anything at all", True, True),
    ],
)
def test_words(pattern: str, words: str, allow: bool, deny: bool) -> None:
    given = words.split("|")[0].split() + words.split("|")[1:]
    assert (words_match(pattern, given, whole=True), words_match(pattern, given, whole=False)) == (allow, deny)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "/w/src/a/b.py", True),
        ("src/**", "/w/src", True),
        ("src", "/w/src/a.py", True),
        ("src/*.py", "/w/src/a.py", True),
        ("src/*.py", "/w/src/a/b.py", False),
        ("*.py", "/w/deep/down/a.py", True),
        ("*.py", "/elsewhere/a.py", False),
        ("docs/**/x.md", "/w/docs/x.md", True),
        ("docs/**/x.md", "/w/docs/a/b/x.md", True),
        ("/etc/**", "/etc/hosts", True),
        ("//etc/hosts", "/etc/hosts", True),
        ("/etc", "/etcetera", False),
        ("src", "/w/srcs/a", False),
        ("**", "/w/a", True),
        ("a?.py", "/w/ab.py", True),
        ("./a.py", "/w/a.py", True),
        ("*", "/anywhere", True),
    ],
)
def test_paths(pattern: str, path: str, fits: bool) -> None:
    assert path_matches(pattern, path, "/w") is fits


def test_hosts_and_names() -> None:
    assert host_matches("example.org", "Example.org.")
    assert host_matches("*.example.org", "a.example.org")
    assert not host_matches("*.example.org", "example.org")
    assert not host_matches("example.org", "notexample.org")
    assert name_matches("github", "github/search")
    assert name_matches("*/read_*", "files/read_one")
    assert not name_matches("git", "github/search")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_shared_cases(row: dict) -> None:
    given = row["input"]
    found = decide(given["command"], allow=given["allow"], deny=given["deny"], ask=given["ask"])
    assert found.decision == row["expected"]["decision"]


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("git push", "deny"),
        ("git -C sub push", "deny"),
        ("git --git-dir x push", "deny"),
        ("/usr/bin/git push", "deny"),
        ("command git push", "deny"),
        ("timeout 5 git push", "deny"),
        ("sh -c 'git push'", "deny"),
        ("x=1 git push", "deny"),
        ("git -c alias.p=push p", "deny"),
        ("true; " * 500 + "git push", "deny"),
        ("echo $(git push)", "deny"),
        ("for i in a; do git push; done", "deny"),
        ("find . -exec git push \\;", "deny"),
        ("git 'pu'sh", "deny"),
        ("git push (", "deny"),
        ("$(echo git) push", "ask"),
        ("git $x", "ask"),
        ("git log", "allow"),
        ("git commit -m push", "allow"),
        ("rm -fr x", "deny"),
        ("rm -r --force x", "deny"),
        ("rm -r x", "allow"),
    ],
)
def test_a_deny_reaches_everywhere(command: str, decision: str) -> None:
    assert decide(command, allow=["*"], deny=["git push", "rm -rf"]).decision == decision


def test_ask_beats_allow_and_deny_beats_both() -> None:
    assert decide("npm publish", allow=["npm"], ask=["npm publish"]).decision == "ask"
    assert decide("npm publish", allow=["npm"], ask=["npm"], deny=["npm publish"]).decision == "deny"


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git commit -m x", "bash(git commit *)"),
        ("npm run build -- --fast", "bash(npm run build *)"),
        ("python -m pytest -q", "bash(python -m pytest *)"),
        ("python3 tool.py --x", "bash(python3 tool.py --x)"),
        ("./run.sh a", "bash(./run.sh a)"),
        ("rm a", "bash(rm a)"),
        ("rm -rf build", "bash(rm -rf build)"),
        ("pytest -q && git push", "bash(pytest *)\nbash(git push *)"),
        ("NODE_OPTIONS=x npm test", "bash(NODE_OPTIONS=x npm test *)"),
        ("CI=1 npm test", "bash(npm test *)"),
        ("sh -c 'make all'", "bash(make all *)"),
        ("$X a", ""),
        ("python3 -c 'print(1)'", "bash(python3 -c 'print(1)')"),
        ("git log > a", "bash(git log *)\nedit(/a)"),
        ("/opt/x/git log", "bash(/opt/x/git log)"),
        ("find . -name x", "bash(find *)"),
        ("find . 2>/dev/null -delete", "bash(find . -delete)"),
    ],
)
def test_the_rule_that_would_allow(command: str, rule: str) -> None:
    assert decide(command).rule == rule


@pytest.mark.parametrize(
    "command",
    ["git commit -m x", "python3 tool.py 'a b'", "pytest -q && git push", "rm -rf build", "A=1 ./x", "sudo ls"],
)
def test_the_rule_that_is_offered_is_enough(command: str) -> None:
    rules = [parse_rule(r) for r in decide(command).rule.splitlines()]
    assert judge_by(command, rules).decision == "allow"


def test_rules_are_kept_by_scope_and_read_by_others(tmp_path: Path) -> None:
    home, one, two = tmp_path / "home", tmp_path / "one", tmp_path / "two"
    book = RuleBook(home, one)
    other = RuleBook(home, one)
    book.add(Rule("allow", "bash", "git log *", "user"))
    book.add(Rule("deny", "edit", 'a [x] "y"', "project"))
    book.add(Rule("allow", "bash", "make *", "session"))
    book.add(Rule("allow", "bash", "once", "once"))
    assert {str(r) for r in other} == {"bash(git log *)", 'edit(a [x] "y")'}
    assert {str(r) for r in RuleBook(home, two)} == {"bash(git log *)"}
    assert len(list(book)) == 3
    assert stat.S_IMODE((home / "permissions.toml").stat().st_mode) == 0o600
    book.drop(Rule("allow", "bash", "git log *", "user"))
    assert [str(r) for r in RuleBook(home, two)] == []


def test_a_file_that_cannot_be_read_is_said_and_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "permissions.toml").write_text("[user]\ndeny = 'bash(rm *)'\n")
    with pytest.raises(RuleError, match="deny has to be a list"):
        RuleBook(tmp_path, tmp_path)
    (tmp_path / "permissions.toml").write_text("[user\n")
    with pytest.raises(RuleError, match=r"permissions\.toml cannot be read"):
        RuleBook(tmp_path, tmp_path)


def test_two_that_save_at_once_lose_nothing(tmp_path: Path) -> None:
    books = [RuleBook(tmp_path, tmp_path) for _ in range(4)]

    def add(n: int) -> None:
        for k in range(10):
            books[n].add(Rule("allow", "bash", f"tool{n} {k}", "user"))

    threads = [threading.Thread(target=add, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(RuleBook(tmp_path, tmp_path))) == 40
