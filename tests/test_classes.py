"""No class does everything: how long one may be, and how much its constructor may take.

An exception has its reason, and is one no more as soon as it could do without.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.test_architecture import found, modules

MAX_CLASS = 200
MAX_PARAMETERS = 8

MANY_PARAMETERS = {
    "bot/agent/agent.py:Agent": "the library's one facade: people type what they need of it by name, and all but the "
    "model has a default; a bag of options would be one more thing to import",
}


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class of ours, as path:name."""
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                yield f"{path}:{node.name}", node


def lines_of(node: ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def parameters_of(node: ast.ClassDef) -> int:
    """Those of its own constructor; the instance itself is none."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return len(each.args.posonlyargs) + len(each.args.args) + len(each.args.kwonlyargs) - 1
    return 0


def test_a_class_has_at_most_200_lines() -> None:
    found(f"{name}: {size} lines" for name, node in classes() if (size := lines_of(node)) > MAX_CLASS)


def test_a_constructor_takes_at_most_8_parameters() -> None:
    counts = {name: parameters_of(node) for name, node in classes()}
    found(
        f"{name} takes {count}"
        for name, count in counts.items()
        if count > MAX_PARAMETERS and name not in MANY_PARAMETERS
    )
    found(f"{name} is an exception no more" for name in MANY_PARAMETERS if counts.get(name, 0) <= MAX_PARAMETERS)


def test_a_name_is_that_of_one_class() -> None:
    """Twice already names came to stand for two classes each, thirty of them: who searches finds the wrong one."""
    where: dict[str, list[str]] = {}
    for name, node in classes():
        if not node.name.startswith("_"):
            where.setdefault(node.name, []).append(name)
    found(" and ".join(paths) for paths in where.values() if len(paths) > 1)
