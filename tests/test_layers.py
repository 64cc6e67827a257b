"""The rules of the house: who may import whom, and how large a thing may grow."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BELOW = {
    "transcripts": {"transcripts"},
    "tools": {"tools"},
    "runtime": {"runtime", "tools", "transcripts"},
    "agent": {"agent", "runtime", "tools", "transcripts"},
    "main": {"agent"},
}
HOMES = {
    "mcp": "agent/mcp/",
    "anyio": "agent/mcp/",
    "openai": "agent/models/",
    "httpx": "agent/models/",
    "httpx2": "agent/models/",
    "xllamacpp": "agent/models/",
    "rich": "agent/terminal/",
    "prompt_toolkit": "agent/terminal/",
    "dotenv": "agent/settings.py",
    "typer": "main.py",
}
"""Third-party package -> the only place that knows it."""
QUICK = {
    "mcp",
    "anyio",
    "openai",
    "rich",
    "prompt_toolkit",
    "typer",
    "xllamacpp",
    "json_repair",
    "genai_prices",
    "tree_sitter",
    "jsonschema",
}
"""Packages that are slow to import, so only where they are needed. In agent/terminal rich and prompt_toolkit are."""
FILES = sorted([ROOT / "main.py", *(f for name in BELOW for f in (ROOT / name).rglob("*.py"))])
NAMES = [str(f.relative_to(ROOT)) for f in FILES]
OURS = set(BELOW)


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(module, line) of each import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((a.name, node.lineno) for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or "", node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield "(relative)", node.lineno


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def inside_functions(tree: ast.AST) -> list[tuple[str, int]]:
    return [found for f in functions(tree) for found in imports(f)]


def top(module: str) -> str:
    return module.partition(".")[0]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_imports_upward(name: str) -> None:
    layer = top(name.removesuffix(".py").replace("/", "."))
    found = [(m, line) for m, line in imports(ast.parse((ROOT / name).read_text())) if top(m) in OURS | {"refold"}]
    assert [f for f in found if top(f[0]) not in BELOW[layer]] == []


@pytest.mark.parametrize("name", NAMES)
def test_our_own_modules_are_imported_at_the_top(name: str) -> None:
    lazy = inside_functions(ast.parse((ROOT / name).read_text()))
    assert [f for f in lazy if top(f[0]) in OURS | {"(relative)"}] == []


@pytest.mark.parametrize("name", NAMES)
def test_third_parties_are_known_in_one_place(name: str) -> None:
    found = [m for m, _ in imports(ast.parse((ROOT / name).read_text())) if top(m) in HOMES]
    assert [m for m in found if not name.startswith(HOMES[top(m)])] == []


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith("agent/terminal/")])
def test_slow_packages_are_imported_when_needed(name: str) -> None:
    tree = ast.parse((ROOT / name).read_text())
    late = set(inside_functions(tree)) | set(_type_checking(tree))
    assert [f for f in imports(tree) if top(f[0]) in QUICK and f not in late] == []


def _type_checking(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in tree.body:
        if _is_type_checking(node):
            yield from imports(node)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def test_no_import_goes_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    known = {n.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for n in NAMES}
    for name in NAMES:
        tree = ast.parse((ROOT / name).read_text())
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        graph[module] = set(_modules(tree, known)) - {module}
    while free := [m for m, needs in graph.items() if not needs & graph.keys()]:
        for module in free:
            del graph[module]
    assert graph == {}


def _modules(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """The modules of ours that are imported; `from package import part` means the part."""
    only_types = {id(n) for i in ast.walk(tree) if _is_type_checking(i) for n in ast.walk(i)}
    for node in (n for n in ast.walk(tree) if id(n) not in only_types):
        if isinstance(node, ast.ImportFrom):
            parts = {f"{node.module}.{a.name}" for a in node.names}
            yield from parts & known or {str(node.module)} & known
        elif isinstance(node, ast.Import):
            yield from {a.name for a in node.names} & known


RAISES = {"expanduser": 0, "resolve": 0, "exists": 0, "is_dir": 0, "is_file": 0}
"""Methods of Path that raise for a path somebody may type (too long, a loop of links, ~nobody, a folder one may not
look into), with the arguments they are given then. Those of os.path do not; a tool hands what they say to the model."""


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith("tools/")])
def test_questions_about_paths_are_asked_of_os_path(name: str) -> None:
    calls = [n for n in ast.walk(ast.parse((ROOT / name).read_text())) if isinstance(n, ast.Call)]
    found = [c for c in calls if isinstance(c.func, ast.Attribute) and not c.keywords]
    asked = [ast.unparse(c) for c in found if RAISES.get(c.func.attr) == len(c.args)]  # type: ignore[attr-defined]
    assert [words for words in asked if "__file__" not in words] == []


@pytest.mark.parametrize("name", NAMES)
def test_sizes(name: str) -> None:
    text = (ROOT / name).read_text()
    assert len(text.splitlines()) <= (150 if name == "runtime/loop.py" else 400)
    long = [(f.name, (f.end_lineno or 0) - f.lineno + 1) for f in functions(ast.parse(text))]
    assert [f for f in long if f[1] > 60] == []


def test_no_test_pretends() -> None:
    tests = [f for f in (ROOT / "tests").rglob("*.py") if f != Path(__file__)]
    found = [(f.name, m) for f in tests for m, _ in imports(ast.parse(f.read_text())) if m.startswith("unittest")]
    assert found == []


def test_help_and_version_import_nothing_slow() -> None:
    for words in (["--help"], ["--version"], ["run", "--help"]):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", str(ROOT / "main.py"), *words],
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = {top(line.rpartition("|")[2].strip()) for line in done.stderr.splitlines()}
        assert loaded & (QUICK | {"asyncio", "runtime"}) == set()
