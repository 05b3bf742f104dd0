"""What import-linter and ruff cannot hold of the house: sizes, names, mirrored tests, what may not be called where.

Every test collects all its findings and fails with one line for each, so that a glance at CI tells what to mend.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import tools

ROOT = Path(__file__).parents[1]
PACKAGES = ("bot", "adapters", "tools", "config")
MAX_MODULE = 400
MAX_FUNCTION = 50

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

FREE_TESTS = {
    "tests/adapters/broker/test_upgrade.py": "tests gateways and workers of two versions side by side",
    "tests/adapters/storage/test_outages.py": "tests the store as a whole while its database is away",
    "tests/adapters/storage/test_cut_off_turns.py": "tests what is recovered of turns that were cut off in a request",
    "tests/adapters/storage/test_others_turns.py": "tests erasing a person in each kind of row of others' turns",
    "tests/bot/conversation/recovery/test_missed_questions.py": "tests catching up and the dispatcher with histories",
    "tests/bot/conversation/recovery/test_taken_twice.py": "tests a start and turns with rows of one question",
    "tests/test_architecture.py": "tests the tree itself",
    "tests/test_classes.py": "tests the sizes of all classes",
    "tests/test_cluster_compose.py": "tests the compose file of a cluster",
    "tests/test_corpora.py": "tests what the corpora under tests/data show",
    "tests/test_deploy.py": "tests the Dockerfile and the compose files",
    "tests/test_documents.py": "tests the commands in README, docs and CONTRIBUTING",
    "tests/test_env_example.py": "tests .env.example",
    "tests/test_owner_lines.py": "tests what is there in two languages",
    "tests/test_rooms.py": "tests who imports whom",
    "tests/test_pages.py": "tests links, both languages and the figures of the pages",
}
FREE_FOLDERS = ("tests/compose/", "tests/e2e/", "tests/torture/", "tests/bench/", "tests/data/", "tests/conformance/")

UNTESTED = {
    "adapters/simulator/people.py": "data",
    "bot/__main__.py": "calls the command line and nothing else; tests/e2e starts it",
    "bot/domain/run.py": "data",
    "bot/domain/segments.py": "data",
    "bot/domain/feed.py": "data and a port",
    "bot/domain/inspection.py": "data and a port",
    "bot/domain/shown.py": "data and ports",
}
"""Modules without a test file of their own, each with the reason; none that decides something."""

FORBIDDEN_NAMES = {"manager", "managers", "helper", "helpers", "util", "utils", "common", "misc"}

# Where a task has no owner, nobody sees how it ended.
OWNERLESS = {"asyncio.create_task", "asyncio.ensure_future"}
LOOPS = {"asyncio.get_running_loop", "asyncio.get_event_loop", "asyncio.new_event_loop"}

TIME = {
    "asyncio.sleep", "time.sleep", "time.time", "time.monotonic", "time.time_ns", "time.monotonic_ns",
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today",
}  # fmt: skip
STOP_WATCHES = {"time.perf_counter", "time.perf_counter_ns", "time.process_time", "timeit.timeit"}
ENVIRONMENT = {"os.environ", "os.getenv", "os.environb"}

TIME_KEEPERS = {"bot/app.py", "bot/runtime/clock.py"}
ENVIRONMENT_READERS = {"bot/app.py", "bot/cli/cli.py", "bot/cli/process.py"}
LAZY_IMPORTERS = {
    "adapters/words/lists.py",
    "bot/app.py",
    "bot/cli/cli.py",
    "bot/cli/control_commands.py",
    "bot/cli/doctor/cluster.py",
    "bot/cli/journal_commands.py",
    "bot/cli/process.py",
    "bot/engine/foreign.py",
    "bot/gateway.py",
    "bot/policy/likeness.py",
    "bot/wiring/console.py",
    "bot/wiring/fetching.py",
    "bot/wiring/line.py",
    "bot/wiring/web.py",
    "tools/get_game_version/names.py",
    "tools/get_weather/gazetteer.py",
}

# Written in two halves, so that this file does not accuse itself.
FOREIGN = re.compile(
    "|".join(
        [
            re.escape("pypi" + ".org"),
            re.escape("pythonhosted" + ".org"),
            re.escape("npmjs" + ".org"),
            re.escape("tuna.tsinghua" + ".edu"),
            r"mirrors\.[a-z]+\.(com|cn|edu)" + r"(\.cn)?/pypi",
            "--(extra-)?index" + "-url",
            "--find" + "-links",
            r"(?<![\w.-])/wo" + "rk/",
            r"(?<![\w.-])/opt/py" + "pi",
            re.escape(f"{ROOT}/"),
        ]
    )
)

SUPPRESSION = re.compile(r"#\s*(type:\s*ignore|noqa|pragma:|mypy:|ruff:|nosec|pylint:)")
EXPLAINED = re.compile(r"# (type: ignore\[[a-z-]+(, ?[a-z-]+)*\]|noqa: [A-Z]+[0-9]+(, ?[A-Z]+[0-9]+)*)  # \S+")


# --- reading the tree -----------------------------------------------------------------------------


@cache
def sources() -> dict[str, str]:
    """Every Python file of ours: path from the root -> text."""
    folders = (*PACKAGES, "tests")
    files = sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in files}


@cache
def trees() -> dict[str, ast.Module]:
    return {path: ast.parse(text, path) for path, text in sources().items()}


def modules(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """The modules of these packages, of all four when none is named."""
    for path, tree in trees().items():
        if path.partition("/")[0] in (folders or PACKAGES):
            yield path, tree


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def docstring_lines(tree: ast.AST) -> set[int]:
    """The lines of every docstring inside."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef | ast.Module) and ast.get_docstring(node, clean=False) is not None:
            lines.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


@cache
def uses(tree: ast.Module) -> list[tuple[str, int]]:
    """Every dotted name the module uses, as its full name whatever it was imported as, with its line."""
    imported = {}
    names = []
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    imported[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else ""
            case ast.ImportFrom(module=str(module), level=0):
                for alias in node.names:
                    imported[alias.asname or alias.name] = f"{module}.{alias.name}"
            case ast.Attribute() | ast.Name():
                names.append((dotted(node), node.lineno))
            case _:
                pass
    used = []
    for name, line in names:
        first, _, rest = name.partition(".")
        used.append((".".join(filter(None, (imported.get(first) or first, rest))), line))
    return used


def dotted(node: ast.expr) -> str:
    """As `ast.unparse` writes it but for brackets, which takes ten times as long for mere names and dots."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return f"{dotted(node.value)}.{node.attr}"
        case _:
            return ast.unparse(node)


def has_code(tree: ast.Module) -> bool:
    """Whether a module does more than import and list names."""
    return any(isinstance(node, Function | ast.ClassDef) for node in tree.body)


def mirror_of(path: str) -> str:
    """The test file of a module; that of a package is named after its folder and lies beside it."""
    stem = path.removesuffix(".py").removesuffix("/__init__")
    folder, _, name = stem.rpartition("/")
    return "/".join(filter(None, ("tests", folder, f"test_{name}.py")))


def text_files() -> Iterator[tuple[str, str]]:
    """What is, or is about to be, in a commit; all of our Python where there is no git."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, check=False, timeout=30)
    for path in filter(None, done.stdout.decode().split("\0")) if done.returncode == 0 else sources():
        file = ROOT / path
        content = file.read_bytes() if file.is_file() and not file.is_symlink() else b""
        if b"\0" not in content:
            yield path, content.decode("utf-8", "replace")


def found(lines: Iterable[str]) -> None:
    """Fail with these lines, if there are any."""
    told = sorted(lines)
    if told:
        pytest.fail("\n".join(told), pytrace=False)


# --- sizes, docstrings, names ---------------------------------------------------------------------


def test_no_test_measures_time() -> None:
    """A machine that has other things to do must fail no test: what a part costs is for `make bench`."""
    found(
        f"{path}:{line}: {name}"
        for path, tree in trees().items()
        if path.startswith("tests/") and "test_" in path and not path.startswith("tests/bench/")
        for name, line in uses(tree)
        if name in STOP_WATCHES
    )


def test_a_module_has_at_most_400_lines() -> None:
    found(
        f"{path}: {size} lines"
        for path, text in sources().items()
        if (size := text.count("\n")) > MAX_MODULE and not path.startswith("tests/data/")
    )


def test_a_function_has_at_most_50_lines_of_code() -> None:
    def long() -> Iterator[str]:
        for path, tree in trees().items():
            for function in functions(tree):
                span = range(function.lineno, (function.end_lineno or function.lineno) + 1)
                if len(span) <= MAX_FUNCTION:
                    continue
                text = sources()[path].splitlines()
                silent = docstring_lines(function)
                code = [n for n in span if n not in silent and text[n - 1].strip() and text[n - 1].strip()[0] != "#"]
                if len(code) > MAX_FUNCTION:
                    yield f"{path}:{function.lineno}: {function.name} has {len(code)} lines of code"

    found(long())


def test_every_module_says_what_it_is() -> None:
    found(path for path, tree in modules() if tree.body and ast.get_docstring(tree) is None)


def test_no_file_has_a_name_that_says_nothing() -> None:
    found(path for path in sources() if FORBIDDEN_NAMES & set(re.split(r"[/_]", path.removesuffix(".py").lower())))


# --- tests mirror the tree ------------------------------------------------------------------------


def test_every_test_file_has_the_module_it_tests() -> None:
    mirrored = {mirror_of(path) for path, _ in modules()}
    found(
        path
        for path in sources()
        if Path(path).name.startswith("test_")
        and path not in mirrored | FREE_TESTS.keys()
        and not path.startswith(FREE_FOLDERS)
    )


def test_every_module_with_code_has_its_test_file() -> None:
    found(
        f"{path}: there is no {mirror_of(path)}"
        for path, tree in modules()
        if has_code(tree) and path not in UNTESTED and mirror_of(path) not in sources()
    )


def test_every_exception_is_still_one() -> None:
    found(path for path in FREE_TESTS if path not in sources())
    found(path for path in UNTESTED if path not in sources() or mirror_of(path) in sources())


# --- what may not be called where -----------------------------------------------------------------


def test_imports_stand_at_the_top() -> None:
    found(
        f"{path}:{node.lineno}"
        for path, tree in modules()
        if path not in LAZY_IMPORTERS
        for function in functions(tree)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def test_every_task_has_an_owner() -> None:
    def ownerless() -> Iterator[str]:
        for path, tree in trees().items():
            for name, line in uses(tree):
                if name in OWNERLESS:
                    yield f"{path}:{line}: {name}; use an asyncio.TaskGroup"
                owner, _, method = name.rpartition(".")
                if method == "create_task" and (owner.endswith("loop") or owner.removesuffix("()") in LOOPS):
                    yield f"{path}:{line}: {name}; use an asyncio.TaskGroup"

    found(ownerless())


def test_every_connection_is_closed() -> None:
    """That of sqlite3, as a context, ends a transaction alone; who leaves it open is told in another test, or never."""
    found(
        f"{path}:{node.lineno}: use contextlib.closing"
        for path, tree in trees().items()
        for with_ in ast.walk(tree)
        if isinstance(with_, ast.With | ast.AsyncWith)
        for item in with_.items
        if isinstance(node := item.context_expr, ast.Call) and ast.unparse(node.func) == "sqlite3.connect"
    )


def test_the_core_asks_the_clock_for_time() -> None:
    found(
        f"{path}:{line}: {name}; ask the Clock port"
        for path, tree in modules("bot")
        if path not in TIME_KEEPERS
        for name, line in uses(tree)
        if name in TIME
    )


def test_only_the_command_line_reads_the_environment() -> None:
    found(
        f"{path}:{line}: {name}; take it from the settings"
        for path, tree in modules()
        if path not in ENVIRONMENT_READERS
        for name, line in uses(tree)
        if name in ENVIRONMENT
    )


# --- tools ----------------------------------------------------------------------------------------


def undescribed(schema: dict[str, Any], where: str) -> Iterator[str]:
    """The parameters inside a schema that the model knows only by name."""
    for name, parameter in schema.get("properties", {}).items():
        if not parameter.get("description", "").strip():
            yield f"{where}.{name}"
        yield from undescribed(parameter, f"{where}.{name}")
    if "items" in schema:
        yield from undescribed(schema["items"], f"{where}[]")


def test_every_tool_and_every_parameter_of_it_is_described() -> None:
    offered = tools.discover()
    assert offered
    found(tool.name for tool in offered if not tool.description.strip())
    found(line for tool in offered for line in undescribed(tool.spec.parameters, tool.name))


# --- texts ----------------------------------------------------------------------------------------


def test_no_text_names_a_path_of_this_machine_or_a_package_index() -> None:
    found(
        f"{path}:{number}: {match[0]}"
        for path, text in text_files()
        if FOREIGN.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        for match in FOREIGN.finditer(line)
    )


def test_every_suppression_has_a_code_and_a_reason() -> None:
    def bare() -> Iterator[str]:
        for path, text in sources().items():
            if not SUPPRESSION.search(text):
                continue
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                comment = token.string if token.type == tokenize.COMMENT else ""
                if SUPPRESSION.search(comment) and not EXPLAINED.match(comment):
                    yield f"{path}:{token.start[0]}: {comment}"

    found(bare())
