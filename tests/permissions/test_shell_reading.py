"""Which commands run unasked because they only read, and which never may."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.permissions.shell import analyse

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"


def rows(name: str) -> list[dict]:
    path = CASES / name
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


SAFE = [
    "ls -la src",
    "cat README.md | head -n 20",
    "grep -rn 'def main' --include='*.py' src",
    "rg -n --hidden pattern src | sort | uniq -c | sort -rn",
    "git status --short && git diff --stat HEAD~1",
    "git log --oneline -n 5 -- src/app.py",
    "git show HEAD:setup.py",
    "git branch -a",
    "find . -type f -name '*.py' -not -path './.venv/*'",
    "sed -n '10,20p' src/app.py",
    "awk -F: '{print $1, $3}' data.txt",
    "wc -l < input.txt",
    "cd src && ls",
    "head -c 100 a.bin | xxd",
    "LANG=C sort names.txt",
    "ls 2>/dev/null || true",
    "# what is here\nls",
    "timeout 5 cat notes.txt",
    'printf "%s\\n" done',
    "python3 --version",
    "diff -u old.txt new.txt",
    "echo 'rm -rf /'",
    'echo "a && b; c | d > e"',
    "command -v git",
    "jq -r .name package.json",
    "tar -tf archive.tar",
]

ASK = [
    # another program behind one that only reads
    "ls; rm a", "ls\nrm a", "ls & rm a", "ls | tee a", "ls || rm a", "cat a |& xargs rm", "true && (rm a)",
    "ls\r\nrm a",
    "ls \\\n; rm a", "ls #\nrm a", "{ ls; rm a; }", "! rm a", "if true; then rm a; fi", "ls $(rm a)", "ls `rm a`",
    'ls "$(rm a)"', "cat <(rm a)", "ls >(rm a)", "cat <<E\n$(rm a)\nE", "f() { rm a; }; f", "ls() { rm a; }; ls",
    "a=$(rm a)", "ls ${x:-$(rm a)}", "echo $((x[$(rm a)]))", "coproc rm a", "time rm a", "eval 'rm a'", "ls; eval rm a",
    # writing and reading by redirection
    "ls > a", "ls >> a", "ls >| a", "ls &> a", "ls 2> a", "ls <> a", "ls > $x", "cat < /dev/tcp/host/80", "ls >& a",
    "echo x > ~/.bashrc", "ls > /dev/sda",
    # options that run, write or reach out
    "sort -o a b", "sort --output=a b", "sort --outp=a b", "sort --compress-program=sh a", "find . -delete",
    "find . -exec rm {} +", "find . -fprint a", "rg --pre sh x", "rg x --pre=sh", "rg --pre-glob=x --pre sh", "rg -z x",
    "tree -o a", "git log --output=a", "git diff --ext-diff", "git diff --output a", "git grep -Ovi x",
    "git -c a.b=c log",
    "git -C /tmp status", "git --git-dir=x log", "git --exec-path=x log", "git -p log", "git log --format=%GK",
    "git branch new", "git branch -D old", "git tag v1", "git stash", "git remote update", "git remote add a b",
    "git reflog expire --all", "git config a b", "git diff -M --output=a", "git ls-remote x", "git archive HEAD",
    "sed -i s/a/b/ f", "sed -n 'w f' g", "sed 's/a/b/e' g", "sed 's/a/b/w f' g", "sed e g", "sed '1e id' g",
    "sed -f s g",
    "sed -ni p g", "sed --expression='w f' g", "sed 's/a/b/;w f' g", "sed '/x/{w f\n}' g", "sed 'y/a/b/;e' g",
    "awk '{print > \"f\"}' g", "awk '{print | \"sh\"}' g", "awk 'BEGIN{system(\"id\")}'", "awk -f prog g",
    "gawk -i inplace 1 g",
    "awk 'BEGIN{while((getline l < \"/etc/shadow\")>0) print l}'", "awk 'BEGIN{print ENVIRON[\"KEY\"]}'",
    "gawk '@load \"x\"'",
    "uniq a b", "xxd -r a b", "xxd a b", "date -s now", "date 010100002000", "hostname other", "tar -xf a",
    "unzip a.zip",
    "tar tf host:a", "tar -tf a --to-command=sh", "diff --paginate a b", "base64 -o a b", "file -C", "date -f f",
    "printf -v x y", "test -v 'a[$(id)]'", "[ -v 'a[$(id)]' ]", "jq -n env", "jq '$ENV.KEY' f", "ps e", "ps auxe",
    "env", "printenv", "set", "export", "declare -p", "history",
    # globs that may become options
    "rg x *", "sort *", "git log *", "sed p *", "find . -name * ", "diff ? b",
    # other ways to run
    "xargs ls", "env ls -la > a", "env -S 'rm a'", "timeout 5 rm a", "nice rm a", "nohup ls", "exec ls", "sh -c 'rm a'",
    "bash -c ls; rm a", "busybox rm a", ". a", "source a", "command rm a", "builtin eval rm", "trap 'rm a' EXIT",
    "alias ls=rm",
    "./ls", "bin/ls", "/tmp/ls", "LS", "l\\s x; rm y", "$X", "$X ls", "${X}", "'ls' > a",
    # variables that change what runs
    "PATH=. ls", "LD_PRELOAD=./x.so ls", "GIT_PAGER=sh git log", "PAGER=sh git log", "BASH_ENV=x ls", "IFS=x ls",
    "RIPGREP_CONFIG_PATH=x rg y", "PATH=.; ls", "GIT_EXTERNAL_DIFF=sh git diff", "LESSOPEN='|sh' ls",
    # secrets
    "cat .env", "cat ~/.ssh/id_rsa", "head -1 config/.env.production", "cat .e*", "cat .??v", "grep KEY .env",
    "grep -f .env a",
    "cat < .env", "cat ~/.aws/credentials", "cat server.pem", "cat .e\"n\"v", "cat .e'n'v", "cat .en\\v",
    "cat /proc/1/environ",
    "base64 .netrc", "cat $'\\x2eenv'",
    # not understood
    "ls 'open", 'ls "open', "ls (", "ls )", "ls $(", "ls | ", "ls &&", "", "   ", "ls \x00 a", "ls \u2028 rm",
    "ls \u202e a",
    "{ls,-la}", "ls {a,b}", "ls $'a'b$x", "ls !(a)", "ls @(a|b)", "for f in *; do cat $f; done", "ls;;rm",
    "ls\x1b[2K a",
]  # fmt: skip


@pytest.mark.parametrize("command", SAFE)
def test_reads_only(command: str) -> None:
    assert analyse(command).why_not_safe == ""


@pytest.mark.parametrize("command", ASK)
def test_is_asked(command: str) -> None:
    assert analyse(command).why_not_safe != ""


@pytest.mark.parametrize("row", rows("shell_readonly.jsonl"), ids=lambda row: row["id"])
def test_the_shared_cases_that_ask(row: dict) -> None:
    if row["expected"]["verdict"] == "ask":
        assert analyse(row["input"]["command"]).why_not_safe != ""


def test_nine_of_ten_shared_cases_that_are_safe_run_unasked() -> None:
    safe = [r["input"]["command"] for r in rows("shell_readonly.jsonl") if r["expected"]["verdict"] == "safe"]
    assert sum(not analyse(c).why_not_safe for c in safe) >= 0.9 * len(safe)


def test_no_real_command_raises() -> None:
    for row in rows("shell_oneliners.jsonl"):
        analyse(row["input"]["command"])


PIECES = st.sampled_from(
    ["ls", "cat", "rm", "a.txt", "-rf", "/", "$(", ")", "`", "'", '"', ";", "&", "&&", "||", "|", "|&", ">", ">>", "<"]
    + ["<<", "<<<", "\n", "#", "\\", "{", "}", "(", "$x", "${x}", "$((", "))", "*.py", "if", "then", "fi", "for", "do"]
    + [
        "done",
        "case",
        "esac",
        "in",
        "[[",
        "]]",
        "!",
        "function",
        "select",
        "x=1",
        "sudo",
        "sh",
        "-c",
        "eval",
        "\t",
        "é",
    ]
    + ["\u202e", "\x00"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=12), st.sampled_from(["", " "]))
def test_nothing_raises_and_nothing_that_deletes_is_safe(pieces: list[str], between: str) -> None:
    found = analyse(between.join(pieces))
    if not found.why_not_safe:
        assert all(part.program in ("ls", "cat", "") for part in found.parts)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read_without_raising(text: str) -> None:
    found = analyse(text)
    assert isinstance(found.why_not_safe, str) and isinstance(found.danger, str)


@pytest.mark.parametrize(
    "command", ["{1\U000f0000", "echo {12..\U0001f600", "{\U000f0000", "{1\uffff", "~\0", "ls ~\0/a"]
)
def test_what_a_parser_could_die_of_is_asked(command: str) -> None:
    assert analyse(command).why_not_safe != ""


def test_a_very_long_and_a_very_deep_line_are_read() -> None:
    assert analyse("true; " * 20_000 + "rm a").why_not_safe != ""
    assert analyse("true && " * 5_000 + "rm a").why_not_safe != ""
    assert analyse("(" * 3_000 + "ls" + ")" * 3_000).why_not_safe != ""
    assert analyse("echo " + "$(echo " * 500 + ")" * 500).why_not_safe != ""
    assert analyse("sh -c 'sh -c \"sh -c ls\"'").why_not_safe != ""
