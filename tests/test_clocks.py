"""The system's clocks are handed in: their name stands only where a program begins, or where a caller gives no others.

So whoever drives time, a test or the simulation, hands in other clocks. An entry point is what nobody of ours calls: a
command, and what Spark makes; each names the clocks once and hands them on.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"
NAME = "SYSTEM_CLOCKS"
ENTRY_POINTS = ("lamina/cli/", "pyspark_lamina/")
WITHOUT_DEFAULTS = ("lamina/broker/",)
"""Here who forgot to hand on the clocks would go by the machine's in a simulation; the server is what begins."""
SERVER = "lamina/broker/server.py"


def misuses(path: str, source: str) -> Iterator[str]:
    """Where a module names the system's clocks and may not."""
    tree = ast.parse(source)
    defaults = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.arguments | ast.AnnAssign)
        for default in ((*node.defaults, *node.kw_defaults) if isinstance(node, ast.arguments) else (node.value,))
        if default is not None
        for part in ast.walk(default)
    }
    may_have_defaults = path == SERVER or not path.startswith(WITHOUT_DEFAULTS)
    times = Counter[str]()
    for where, node in named(tree, "the module"):
        if isinstance(node, ast.alias):
            if node.asname is not None:
                yield f"{path}: another name for {NAME}"
        elif id(node) in defaults:
            if not may_have_defaults:
                yield f"{path}:{node.lineno}: a default"
        else:
            times[where] += 1
            if not path.startswith(ENTRY_POINTS) or where == "the module":
                yield f"{path}:{node.lineno}: in {where}"
    yield from (f"{path}: {count} times in {where}" for where, count in times.items() if count > 1)


def named(node: ast.AST, where: str) -> Iterator[tuple[str, ast.Name | ast.Attribute | ast.alias]]:
    """By the innermost function that names them."""
    for child in ast.iter_child_nodes(node):
        if (isinstance(child, ast.Name) and child.id == NAME) or (
            isinstance(child, ast.Attribute | ast.alias) and getattr(child, "attr", getattr(child, "name", "")) == NAME
        ):
            yield where, child
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from named(child, f"{child.name}, line {child.lineno}")
        else:
            yield from named(child, where)


def test_only_entry_points_and_defaults_name_the_clocks_of_the_system() -> None:
    found: list[str] = []
    for path in sorted(SOURCES.rglob("*.py")):
        name = str(path.relative_to(SOURCES))
        if name != "lamina/clocks.py":
            found += misuses(name, path.read_text())
    assert not found


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("lamina/client/x.py", "def f():\n    return SYSTEM_CLOCKS.now_ms()"),
        ("lamina/client/x.py", "def f():\n    return clocks.SYSTEM_CLOCKS.now_ms()"),
        ("lamina/cli/x.py", "BEGAN = SYSTEM_CLOCKS.now_ms()"),
        ("lamina/cli/x.py", "def f():\n    return SYSTEM_CLOCKS.now_ms() - SYSTEM_CLOCKS.now_ms()"),
        ("lamina/client/x.py", "from lamina.clocks import SYSTEM_CLOCKS as CLOCKS"),
        ("lamina/broker/parts.py", "def f(clocks: Clocks = SYSTEM_CLOCKS):\n    pass"),
    ],
)
def test_naming_them_elsewhere_is_found(path: str, source: str) -> None:
    assert list(misuses(path, source))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("lamina/client/x.py", "def f(*, clocks: Clocks = SYSTEM_CLOCKS):\n    return clocks.now_ms()"),
        ("lamina/broker/server.py", "def f(clocks: Clocks = SYSTEM_CLOCKS):\n    pass"),
        ("lamina/cli/x.py", "from lamina.clocks import SYSTEM_CLOCKS\ndef f():\n    return SYSTEM_CLOCKS.now_ms()"),
        ("lamina/offline/x.py", "class Circumstances:\n    clocks: Clocks = SYSTEM_CLOCKS"),
    ],
)
def test_an_entry_point_and_a_default_may_name_them(path: str, source: str) -> None:
    assert not list(misuses(path, source))
