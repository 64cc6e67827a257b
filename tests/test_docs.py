"""What is written down is what there is: settings, exit codes, options."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from agent.cli.printed import env_example, man_page
from agent.cli.table import COMMANDS, help_page
from agent.exits import MEANING
from agent.settings import Settings, rows
from tests.support.command import argv, refold

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
FLAGS = sorted({flag for command in COMMANDS for option in command.options for flag in option.flags})


def test_the_example_of_settings() -> None:
    assert (ROOT / ".env.example").read_text() == env_example()


def test_the_example_says_the_defaults(tmp_path: Path) -> None:
    """Every line of it, with the # taken away, changes nothing."""
    pairs = dict(re.findall(r"^# ([A-Z_]+)=(.+)$", env_example(), re.M))
    pairs.pop("REFOLD_HOME")
    plain = Settings.load({}, {"REFOLD_HOME": str(tmp_path), "REFOLD_ENV_FILE": ""})
    said = Settings.load({}, {"REFOLD_HOME": str(tmp_path), "REFOLD_ENV_FILE": "", **pairs})
    assert said == plain


def test_the_settings_of_the_readme() -> None:
    table = dict(
        re.findall(r"^\| (`[A-Z_]+`(?: or `[A-Z_]+`)?) \| (.*?) \| ", README.partition("## Settings")[2], re.M)
    )
    expected = {}
    for _, names, default, _ in rows():
        shown = "" if default in ("", None) else f"`{str(default).lower() if isinstance(default, bool) else default}`"
        expected[" or ".join(f"`{n}`" for n in names.split(" or "))] = shown
    assert table == {**expected, "`REFOLD_HOME`": "`~/.refold`"}


def test_the_exit_codes_of_the_readme() -> None:
    said = dict(re.findall(r"^\| (\d+) \| (.*) \|$", README, re.M))
    assert said == {str(int(code)): meaning for code, meaning in MEANING.items() if code < 128}
    assert "| 129, 130, 143 |" in README


@pytest.mark.parametrize("flag", FLAGS)
def test_every_option_is_in_help_and_man_page(flag: str) -> None:
    pages = "\n".join([help_page(), *(help_page(c) for c in COMMANDS)])
    assert re.search(rf"{flag}\b", pages)
    if any(flag in option.flags for option in COMMANDS[0].options):
        assert flag.replace("-", "\\-") in man_page()


def test_only_options_that_exist_are_written_about() -> None:
    written = {
        flag
        for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("scripting.md")))
        for line in path.read_text().splitlines()
        if "refold" in line or "`-" in line
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", line)
    }
    assert written - set(FLAGS) - {"--cached", "--version", "--help"} == set()


PAGES = (
    ROOT / "README.md",
    ROOT / "AGENTS.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "benchmarks" / "README.md",
)


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as links have them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    wrong: list[str] = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        path, _, anchor = link.partition("#")
        to = (page.parent / path).resolve() if path else page
        if not re.match(r"https?:", link) and (not to.exists() or (anchor and anchor not in anchors(to))):
            wrong.append(link)
    assert wrong == []


def test_every_page_is_linked_from_the_readme() -> None:
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert pages - set(re.findall(r"\]\(([^)#\s]+)[^)]*\)", README)) == set()


@pytest.mark.parametrize("words", [["--help"], ["man"], ["completion", "bash"], ["run", "--help"]])
def test_a_reader_that_has_enough_is_no_fault(words: list[str], tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(argv(*words), cwd=tmp_path, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, tmp_path: Path) -> None:
    done = refold("completion", shell, cwd=tmp_path)
    assert (done.returncode, "sessions" in done.stdout) == (0, True)


def test_completion_works_in_bash(tmp_path: Path) -> None:
    (tmp_path / "complete.sh").write_text(refold("completion", "bash", cwd=tmp_path).stdout)
    ask = "source complete.sh; COMP_WORDS=(refold {words}); COMP_CWORD={n}; _refold; echo ${{COMPREPLY[*]}}"
    found = {}
    for words, n in (("ses", 1), ("--output-format ''", 2), ("run --max-t", 2)):
        line = ["bash", "-c", ask.format(words=words, n=n)]
        found[words] = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    assert found == {
        "ses": ["sessions"],
        "--output-format ''": ["text", "json", "stream-json"],
        "run --max-t": ["--max-turns", "--max-tokens"],
    }
