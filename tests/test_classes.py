"""No class does everything: how long one may be, and how much its constructor may take.

An exception has its reason, and is one no more as soon as it could do without.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.test_architecture import found, modules

MAX_CLASS = 200
MAX_PARAMETERS = 8

LONG_CLASSES = {
    "adapters/onebot/connection.py:Connection": "its area is being parted",
    "adapters/openai/stream.py:AnswerReader": "its area is being parted",
    "adapters/simulator/server.py:Simulator": "its area is being parted",
    "adapters/simulator/sockets.py:Sockets": "its area is being parted",
    "adapters/simulator/world.py:World": "its area is being parted",
    "adapters/storage/batches.py:Batches": "its area is being parted",
    "adapters/storage/database.py:Database": "its area is being parted",
    "adapters/storage/writer.py:Writer": "its area is being parted",
}

MANY_PARAMETERS = {
    "adapters/onebot/connection.py:Connection": "its area is being parted",
    "adapters/onebot/forward_ws.py:ForwardClient": "its area is being parted",
    "adapters/onebot/reverse_ws.py:ReverseServer": "its area is being parted",
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
    sizes = {name: lines_of(node) for name, node in classes()}
    found(f"{name}: {size} lines" for name, size in sizes.items() if size > MAX_CLASS and name not in LONG_CLASSES)
    found(f"{name} is an exception no more" for name in LONG_CLASSES if sizes.get(name, 0) <= MAX_CLASS)


def test_a_constructor_takes_at_most_8_parameters() -> None:
    counts = {name: parameters_of(node) for name, node in classes()}
    found(
        f"{name} takes {count}"
        for name, count in counts.items()
        if count > MAX_PARAMETERS and name not in MANY_PARAMETERS
    )
    found(f"{name} is an exception no more" for name in MANY_PARAMETERS if counts.get(name, 0) <= MAX_PARAMETERS)
