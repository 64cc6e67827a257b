"""What we read of a line is what bash and sed make of it: random lines are given to both."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.permissions.commands import decide
from agent.permissions.shell import analyse, loops, plain
from agent.permissions.shell.scripts import why_not_sed

SIGNS = [
    "'",
    '"',
    "\\",
    "\n",
    "$",
    "`",
    "~",
    "#",
    "!",
    "*",
    "?",
    "[",
    "]",
    "{",
    "}",
    ",",
    "..",
    "=",
    "-",
    "+",
    "@",
    "%",
]
SIGNS += [
    "&",
    "|",
    ";",
    "^",
    "a",
    "b",
    " ",
    "\t",
    "0",
    "2",
    "é",
    "$'",
    '$"',
    "~/",
    "x=",
    "''",
    '""',
    "\u00a0",
    "/",
    "\\n",
]


@pytest.fixture(scope="module")
def show(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program `show` that prints its arguments, each ended by NUL, and END after the last."""
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "show"
    program.write_text('#!/bin/sh\nfor a in "$@"; do printf "%s\\0" "$a"; done\nprintf "END\\0"\n')
    program.chmod(0o755)
    return folder


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.sampled_from(SIGNS), max_size=9))
def test_the_words_of_a_plain_line_are_those_bash_sees(show: Path, pieces: list[str]) -> None:
    line = "show " + "".join(pieces)
    if analyse(line).unclear or analyse(line).error:
        return
    commands = plain.read(line)
    if any(c.words and c.words[0] != "show" for c in commands) or any(c.redirects for c in commands):
        return
    env = {"PATH": f"{show}:/usr/bin:/bin", "HOME": os.path.expanduser("~")}
    ran = subprocess.run(["bash", "-f", "-c", line], env=env, cwd=show, capture_output=True, stdin=subprocess.DEVNULL)
    # Of commands in a pipe only the last one's output is seen; then the others prove nothing.
    expected = ["".join(f"{w}\0" for w in c.words[1:]) for c in commands if c.words]
    seen = ran.stdout.decode("utf-8", "surrogateescape").split("END\0")[:-1]
    assert set(seen) <= set(expected)
    assert len(seen) == len(expected) or "|" in line or "&" in line


BODY = st.lists(
    st.sampled_from(
        [
            "'",
            '"',
            "\\",
            ";",
            " ",
            "\n",
            "$f",
            "${f}",
            '"$f"',
            "x",
            "show ",
            "; done",
            "; show ",
            "$",
            "f=",
            "#",
            "&",
            "|",
        ]
    ),
    max_size=9,
)
VALUES = st.lists(
    st.sampled_from(["a", "b.c", "'d e'", '"f g"', "-x", "{1..3}", "{2..1}", "'; show h'", '"; done"', "i$j", "'#'"]),
    max_size=4,
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=VALUES,
    body=BODY,
    after=st.sampled_from(["", "; show z", " | cat", "\n", " && show 'z'", "; show '", "; done"]),
)
def test_a_loop_that_is_written_out_does_what_the_loop_does(
    show: Path, values: list[str], body: list[str], after: str
) -> None:
    line = f"for f in {' '.join(values)}; do show {''.join(body)}; done{after}"
    plainer = loops.written_out(line)
    if not plainer:
        return
    try:
        commands = plain.read(plainer)
    except plain.NotPlain:
        return
    if any(c.words and c.words[0] not in ("show", "cat") for c in commands) or any(c.redirects for c in commands):
        return
    env = {"PATH": f"{show}:/usr/bin:/bin", "HOME": os.path.expanduser("~")}
    ran = subprocess.run(["bash", "-f", "-c", line], env=env, cwd=show, capture_output=True, stdin=subprocess.DEVNULL)
    if b"syntax error" in ran.stderr:
        return  # bash runs none of it
    expected = ["".join(f"{w}\0" for w in c.words[1:]) for c in commands if c.words and c.words[0] == "show"]
    seen = ran.stdout.decode("utf-8", "surrogateescape").split("END\0")[:-1]
    assert set(seen) <= set(expected)
    assert len(seen) == len(expected) or "|" in line or "&" in line


SED = list("swWrReFpdqabcx/|;\n{}!,$0123 \\&gIM[]^~+=y#:tT") + ["s/", "/e", "/w f", "s/a/", "w f", "e id", "1,3", "a\\"]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(SED), min_size=1, max_size=9))
def test_a_sed_script_that_only_prints_is_no_other_for_sed(pieces: list[str]) -> None:
    script = "".join(pieces)
    if not why_not_sed(script):
        ran = subprocess.run(["sed", "--sandbox", "-n", "--", script, "/dev/null"], capture_output=True, text=True)
        assert "sandbox" not in ran.stderr


NAMES = [
    "zap",
    "z''ap",
    "'zap'",
    '"zap"',
    "z\\ap",
    "z\\\nap",
    "$'\\x7aap'",
    "$'\\172ap'",
    '$"zap"',
    "${x:-zap}",
    "bin/zap",
]
ENDS = ["", " a", " 'a b'", " >/dev/null", " 2>&1", " </dev/null", " #c"]
AROUND = [
    "{}", "true && {}", "false || {}", "true | {}", "true\n{}", "true # x\n{}", "( {}\n)", "{{ {}\n}}", "! {}",
    "A=1 {}", "2>/dev/null {}", "echo $({}\n)", "x=$({}\n)", "cat <({}\n)", "cat <<E\n$({}\n)\nE",
    "if true; then {}\nfi", "for i in 1; do {}\ndone", "while {}\ndo break; done", "case a in a) {}\nesac",
    "f() {{ {}\n}}; f", "command {}", "env {}", "env -u A -- {}", "nice -n 3 {}", "timeout -s INT 5 {}", "time -p {}",
    "exec {}", "stdbuf -oL {}", "echo a | xargs {}", "echo a | xargs -n 1 {}", "echo a | xargs -i {}",
    "echo a | xargs 2>/dev/null {}", "bash <<'E'\n{}\nE", "true && timeout 5 bash <<'E'\n{}\nE",
    "set -- ; eval \"$(cat <<'E'\n{}\nE\n)\"",
]  # fmt: skip
IN_QUOTES = [
    "sh -c '{}'", "bash -xc '{}'", "bash -o pipefail -c '{}'", "eval '{}'", "trap '{}' EXIT", "bash <<< '{}'",
    "echo '{}' | sh", "source /dev/stdin <<< '{}'", "mapfile -C '{}\n:' -c 1 q <<< a",
    "shopt -s expand_aliases\nalias q='{}'\nq", "find . -maxdepth 0 -exec sh -c '{}' \\;",
]  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(NAMES),
    end=st.sampled_from(ENDS),
    around=st.lists(st.sampled_from(AROUND + IN_QUOTES), max_size=3),
)
def test_a_program_that_bash_runs_is_found_wherever_it_hides(
    tmp_path_factory: pytest.TempPathFactory, name: str, end: str, around: list[str]
) -> None:
    line = name + end
    for form in around:
        if form not in IN_QUOTES or "'" not in line:
            line = form.format(line)
    if decide(line, allow=["*"], deny=["zap"]).decision != "allow" and analyse(line).why_not_safe:
        return
    folder = tmp_path_factory.mktemp("zap")
    (folder / "bin").mkdir()
    (folder / "bin/zap").write_text(f"#!/bin/sh\necho ran >> '{folder}/ran'\n")
    (folder / "bin/zap").chmod(0o755)
    env = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder)}
    subprocess.run(["bash", "-c", line], env=env, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL)
    assert not (folder / "ran").exists()
