"""Finds tools in the packaged modules and in the operator's folder. A file there needs no
registration.

An unusable file is reported with its line and costs only its own tools. So is a second tool of the
same name, unless it says `replace=True`. Nothing is written to the operator's folder. Its modules
are named `tools_dir_...`, so that a `json.py` there does not shadow `json`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import pkgutil
import stat
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

from bot.core.command import Command
from bot.core.language import CATALOGUE, Phrase
from frostagent.cancellation import BROKEN, isolate
from frostagent.types.errors import Problem
from frostagent.types.tools import Tool

logger = logging.getLogger(__name__)

T = TypeVar("T")

VARIABLE = "TOOLS_DIR"
MEND = Phrase(
    "改正这个文件，在那之前不用它的工具", "Correct the file; its tools are left out until then"
)
RENAME = Phrase("改名：字母、数字和下划线", "Rename it: letters, digits and underscores")
SECOND = Phrase(
    "里面又有一个工具 {tool}，{place} 里已经有了",
    "has a second tool {tool}, besides that of {place}",
)
RENAME_TOOL = Phrase(
    "改个名字；要代替那一个就声明 replace=True",
    "Rename it, or declare replace=True if it should replace the other",
)
UNREADABLE_FOLDER = Phrase("{folder} 读不了（{why}）", "{folder} cannot be read ({why})")
NAME_A_FOLDER = Phrase("写一个机器人能读的目录", "Name a folder that the bot may read")
HAS_DOT = Phrase("名字里有点，不能当模块", "has a dot in its name, so it cannot be a module")
UNREADABLE = Phrase("读不了（{why}）", "cannot be read ({why})")
WRITABLE = Phrase(
    "{path} 谁都能写：能写的人决定机器人执行什么",
    "{path} can be written by everyone, who then decide what the bot runs",
)
CHMOD = Phrase("对它执行 chmod o-w", "chmod o-w it")
EMPTY = Phrase("里面没有工具，也没有命令", "has no tool and no command")
DECORATE = Phrase(
    "给函数加上 @tool 或 @command；只给别的文件用的，名字以 _ 开头",
    "Put @tool or @command on its function; name helper files with a leading _",
)
UNUSABLE = Phrase("不能用（{why}）", "cannot be used ({why})")
CATALOGUE.register(__name__, globals())
PACKAGE = "tools_dir_"


@dataclass(frozen=True, slots=True)
class FoundTools:
    """Tools with the file each is reported by, problems, and commands."""

    tools: tuple[tuple[Tool, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    commands: tuple[Command, ...] = ()


@dataclass(frozen=True, slots=True)
class Discovered:
    """The tools, one of each name, sorted by name; and all problems."""

    tools: tuple[Tool, ...] = ()
    problems: tuple[Problem, ...] = ()
    commands: tuple[Command, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.tools)


class ToolSource(Protocol):
    def find(self) -> FoundTools:
        """Return everything found. Never raises for an unusable tool: that is a problem."""
        ...


def discover(*sources: ToolSource) -> Discovered:
    """Collect the tools of all sources. A later tool replaces an earlier one only if it says so."""
    tools: dict[str, tuple[Tool, str]] = {}
    problems: list[Problem] = []
    commands: list[Command] = []
    for found in (source.find() for source in sources):
        problems += found.problems
        commands += found.commands
        for tool, place in found.tools:
            known, where = tools.get(tool.name, (None, ""))
            if known is None or tool.replaces:
                tools[tool.name] = tool, place
            elif known is not tool:
                what = SECOND.fill(tool=tool.name, place=where)
                problems.append(Problem(place, what, RENAME_TOOL.fill()))
    in_order = tuple(tools[name][0] for name in sorted(tools))
    return Discovered(in_order, tuple(problems), tuple(commands))


def report(problems: Iterable[Problem]) -> None:
    for problem in problems:
        logger.warning("tools: %s", problem)


# --- sources --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PackagedTools:
    package: ModuleType

    def find(self) -> FoundTools:
        return _look_into(
            self.package.__name__, list(self.package.__path__), label=self.package.__name__
        )


@dataclass(frozen=True, slots=True)
class ToolFolder:
    """The operator's folder: its files and packages, unless their names begin with an underscore.

    Its modules can import each other (`from . import dice`) and all of ours.
    """

    folder: Path

    @property
    def package(self) -> str:
        """The package name of its modules, unique per folder."""
        return PACKAGE + hashlib.sha256(str(self.folder.absolute()).encode()).hexdigest()[:8]

    def find(self) -> FoundTools:
        """Return its tools. If others can write to the folder, they control the bot: a problem."""
        try:
            inside = sorted(
                path for path in self.folder.iterdir() if path.suffix == ".py" or path.is_dir()
            )
        except OSError as error:
            what = UNREADABLE_FOLDER.fill(folder=self.folder, why=error.strerror)
            return FoundTools((), (Problem(VARIABLE, what, NAME_A_FOLDER.fill()),))
        doubtful = [
            problem for path in (self.folder, *inside) if (problem := _doubt(path)) is not None
        ]
        doubtful += [
            Problem(str(path), HAS_DOT.fill(), RENAME.fill()) for path in inside if _is_dotted(path)
        ]
        self._enter()
        found = _look_into(
            self.package, [str(self.folder.absolute())], label=str(self.folder), empty=True
        )
        return replace(found, problems=(*doubtful, *found.problems))

    def _enter(self) -> None:
        if self.package not in sys.modules:
            package = ModuleType(self.package, f"The tools in {self.folder}.")
            package.__path__ = [str(self.folder.absolute())]
            sys.modules[self.package] = package
        if not any(isinstance(finder, Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, Finder())


def _doubt(path: Path) -> Problem | None:
    """The problem of a file's type or mode. A dangling link whose name begins with a dot, such as
    an editor's lock, is none.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return (
            None
            if path.name.startswith(".")
            else Problem(str(path), UNREADABLE.fill(why=error.strerror), MEND.fill())
        )
    if mode & stat.S_IWOTH:
        return Problem(
            VARIABLE,
            WRITABLE.fill(path=path),
            CHMOD.fill(),
        )
    return None


def _is_dotted(path: Path) -> bool:
    return path.suffix == ".py" and "." in path.stem and not path.name.startswith((".", "_"))


class Loader(SourceFileLoader):
    """Loads a module from its source each time, and writes no bytecode."""

    def path_stats(self, path: Any) -> Any:
        """Used for bytecode only."""
        raise OSError(f"no bytecode is kept for {path!r}")


class Finder:
    """Finds only modules of the operator's folders."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: object = None
    ) -> ModuleSpec | None:
        if not name.startswith(PACKAGE):
            return None
        finders = (FileFinder(place, (Loader, SOURCE_SUFFIXES)) for place in path or ())
        return next(
            (spec for finder in finders if (spec := finder.find_spec(name)) is not None), None
        )


# --- modules --------------------------------------------------------------------------------------


def _look_into(package: str, folders: list[str], *, label: str, empty: bool = False) -> FoundTools:
    """Load every module of a package. With `empty`, one without a tool is a problem.

    `label` is the folder's name in problems: `label/file.py:line`.
    """
    tools: dict[int, tuple[Tool, str]] = {}
    commands: dict[int, Command] = {}
    problems = []
    for info in pkgutil.iter_modules(folders):
        if info.name.startswith("_"):
            continue
        place = f"{label}/{info.name}" + ("" if info.ispkg else ".py")
        try:
            module = importlib.import_module(f"{package}.{info.name}")
            found, typed = list(_all_of(Tool, module)), list(_all_of(Command, module))
        except BROKEN as error:
            isolate(error)
            logger.debug("a tool cannot be used", exc_info=True)
            problems.append(_broken(error, place, folders, label))
            continue
        tools |= {id(tool): (tool, place) for tool in found if id(tool) not in tools}
        commands |= {id(one): one for one in typed}
        if empty and not found and not typed:
            problems.append(Problem(place, EMPTY.fill(), DECORATE.fill()))
    return FoundTools(tuple(tools.values()), tuple(problems), tuple(commands.values()))


def _all_of(kind: type[T], module: ModuleType) -> Iterator[T]:
    """Yield the module's values of this type, alone or in lists."""
    for value in vars(module).values():
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, kind):
                yield item


def _broken(error: BaseException, place: str, folders: list[str], label: str) -> Problem:
    """Describe the error, with the innermost line in these folders, not in a library."""
    lines = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    what = str(error)
    if isinstance(error, SyntaxError):
        lines.append((error.filename or "", error.lineno))
        what = error.msg
    for file, line in lines:
        for folder in folders:
            if Path(file).is_relative_to(folder):
                place = f"{label}/{Path(file).relative_to(folder)}:{line}"
    why = f"{type(error).__name__}{f': {what}' if what else ''}"
    return Problem(place, UNUSABLE.fill(why=why), MEND.fill())
