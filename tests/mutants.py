"""How much of what is broken on purpose the tests notice: `python -m tests.mutants --seed 1 --number 60`.

First all tests run once with coverage, a context a test (`--map FILE` keeps that, or takes what is there). Then lines
of the product are drawn that the fast tier or the second one covers, one change is made to each in a copy of the tree,
and the tests that cover the line run with -x: those of the fast tier, and only if it survives them the
others. A line a mutant, and a sum at the end. PostgreSQL is the one that FROST_TEST_POSTGRES names. What only a child
process runs is covered by no test here, and never drawn.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = ("frostagent", "bot", "adapters", "tools")
COPIED = (*PRODUCT, "config", "tests", "docs", "deploy", "my-tools", ".ci")
LONGEST = 900  # seconds for the tests of one mutant
NEAR = 50  # tests that run first, those of the mutant's own package before others: most mutants die there
MAPPED = "FROST_COVERAGE_MAP"

# --- as a plug-in of pytest: which test runs which line ---------------------------------------------


class Mapper:
    """Keeps the lines that each test runs, in a file a worker."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self._coverage = coverage.Coverage(
            data_file=folder / f"lines-{os.getpid()}", source=[str(ROOT / top) for top in PRODUCT], config_file=False
        )
        self._coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        tier = "system" if _is_system(item) else "fast"
        self._coverage.switch_context(f"{tier} {item.nodeid}")
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        self._coverage.save()


def _is_system(item: pytest.Item) -> bool:
    from tests.tiers import is_system

    return is_system(item)


def pytest_configure(config: pytest.Config) -> None:
    if folder := os.environ.get(MAPPED):
        config.pluginmanager.register(Mapper(Path(folder)))


def make_map() -> dict[str, dict[str, list[str]]]:
    """path:line -> tier -> the tests that run it."""
    import coverage

    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    with TemporaryDirectory() as name:
        words = (sys.executable, "-m", "pytest", "-q", "--system", "-p", "tests.mutants", "-p", "no:cacheprovider")
        subprocess.run(words, cwd=ROOT, env=os.environ | {MAPPED: name}, check=False)
        for file in Path(name).iterdir():
            data = coverage.CoverageData(str(file))
            data.read()
            for path in data.measured_files():
                for line, contexts in data.contexts_by_lineno(path).items():
                    for context in filter(None, contexts):
                        tier, _, test = context.partition(" ")
                        found[f"{Path(path).relative_to(ROOT)}:{line}"][tier].append(test)
    return found


# --- mutants -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """One change: what stands at these places of a line becomes something else."""

    path: str
    line: int
    begin: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old} -> {self.new}"


COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.FloorDiv: "*"}


def mutants_of(path: str, text: str) -> Iterator[Mutant]:
    """Every change there is to the bodies of functions, each on one line."""
    lines = text.splitlines()
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                for node in ast.walk(statement):
                    yield from _mutants_at(path, lines, node)


def _mutants_at(path: str, lines: list[str], node: ast.AST) -> Iterator[Mutant]:
    match node:
        case ast.Compare(ops=[operator], left=left, comparators=[right]) if type(operator) in COMPARISONS:
            yield from _between(path, lines, left, right, f" {COMPARISONS[type(operator)]} ")
        case ast.BoolOp(op=ast.And() | ast.Or() as operator, values=[left, right, *_]):
            yield from _between(path, lines, left, right, " or " if isinstance(operator, ast.And) else " and ")
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in ARITHMETIC:
            if not any(isinstance(side, ast.JoinedStr | ast.Tuple | ast.List) for side in (left, right)):
                yield from _between(path, lines, left, right, f" {ARITHMETIC[type(operator)]} ")
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _instead(path, lines, node, ast.unparse(operand))
        case ast.Constant(value=bool(value)):
            yield from _instead(path, lines, node, str(not value))
        case ast.Constant(value=int(value)):
            yield from _instead(path, lines, node, str(value + 1))
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield from _instead(path, lines, value, "None")
        case ast.Expr(value=ast.Call() | ast.Await() as value):
            yield from _instead(path, lines, value, "None")
        case _:
            pass


def _between(path: str, lines: list[str], left: ast.expr, right: ast.expr, new: str) -> Iterator[Mutant]:
    begin, end, line = left.end_col_offset, right.col_offset, right.lineno
    if left.end_lineno == line and begin is not None:
        old = lines[line - 1].encode()[begin:end].decode()
        if "(" not in old and ")" not in old:
            yield Mutant(path, line, begin, end, old, new)


def _instead(path: str, lines: list[str], node: ast.expr, new: str) -> Iterator[Mutant]:
    if node.end_lineno == node.lineno and node.end_col_offset is not None:
        old = lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()
        yield Mutant(path, node.lineno, node.col_offset, node.end_col_offset, old, new)


def draw(number: int, seed: int, covered: dict[str, dict[str, list[str]]]) -> list[Mutant]:
    """That many, each in another module, on lines that a test runs; none in what is said to a log."""
    chance = random.Random(seed)  # a draw that can be repeated
    files = sorted({place.rpartition(":")[0] for place in covered if ".py:" in place})
    chance.shuffle(files)
    drawn: list[Mutant] = []
    for path in files:
        text = (ROOT / path).read_text("utf-8")
        lines = text.splitlines()
        choice = [
            one
            for one in mutants_of(path, text)
            if f"{path}:{one.line}" in covered
            and "logger." not in lines[one.line - 1]
            and one.old.strip() != one.new.strip()
        ]
        if choice and len(drawn) < number:
            drawn.append(chance.choice(choice))
    return drawn


# --- trying them -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tree:
    """A copy of ours, in which one file at a time is changed."""

    folder: Path

    def kills(self, mutant: Mutant, tests: list[str]) -> bool:
        """Whether one of these tests fails with it, and passes without."""
        if not tests:
            return False
        file = self.folder / mutant.path
        whole = file.read_text("utf-8")
        lines = whole.splitlines(keepends=True)
        raw = lines[mutant.line - 1].encode()
        lines[mutant.line - 1] = (raw[: mutant.begin] + mutant.new.encode() + raw[mutant.end :]).decode()
        file.write_text("".join(lines), "utf-8")
        near = sorted(
            {*tests}, key=lambda test: (not test.startswith(f"tests/{mutant.path[:-3].rpartition('/')[0]}"), test)
        )
        try:
            code, failed = self._run(near[:NEAR])
            if code == 0 and near[NEAR:]:
                code, failed = self._run(near[NEAR:])
        except subprocess.TimeoutExpired:
            return True
        finally:
            file.write_text(whole, "utf-8")
        if code and self._run(failed or near[:NEAR])[0] == code:
            print(f"not counted, these fail without it, too: {(failed or near)[:3]}", flush=True)  # noqa: T201  # a command
            return False
        return code != 0  # a test failed, or not even the tests can be imported

    def _run(self, tests: list[str]) -> tuple[int, list[str]]:
        """pytest's exit code, and the tests that failed."""
        (self.folder / "chosen").write_text("\n".join(tests), "utf-8")
        words = (sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider", "@chosen")
        alone = ("-n", "0") if len(tests) < 200 else ()
        done = subprocess.run(
            (*words, *alone), cwd=self.folder, capture_output=True, text=True, timeout=LONGEST, check=False
        )
        known = {*tests}
        told = (line.split(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR ")))
        return done.returncode, [test for test in (line.split(" - ", 1)[0] for line in told) if test in known]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--map", type=Path, help="where what covers what is kept")
    given = parser.parse_args()
    if given.map and given.map.exists():
        covered = json.loads(given.map.read_text("utf-8"))
    else:
        covered = make_map()
        if given.map:
            given.map.write_text(json.dumps(covered), "utf-8")
    ends: dict[str, int] = defaultdict(int)
    with TemporaryDirectory() as name:
        tree = Tree(Path(name) / "tree")
        tree.folder.mkdir()
        for top in (*COPIED, *(file.name for file in ROOT.iterdir() if file.is_file())):
            copy = shutil.copytree if (ROOT / top).is_dir() else shutil.copy
            copy(ROOT / top, tree.folder / top)
        for mutant in draw(given.number, given.seed, covered):
            tests = covered[f"{mutant.path}:{mutant.line}"]
            fast, slow = tests.get("fast", []), tests.get("system", [])
            end = "fast" if tree.kills(mutant, fast) else "second tier" if tree.kills(mutant, slow) else "survives"
            ends[end] += 1
            print(f"{end:12} {len(fast):5} {len(slow):4}  {mutant}", flush=True)  # noqa: T201  # a command
    killed = ends["fast"] + ends["second tier"]
    print(f"killed {killed} of {sum(ends.values())}, {ends['fast']} by the fast tier alone")  # noqa: T201  # a command


if __name__ == "__main__":
    main()
