"""`--help` and usage errors in the language of the terminal. typer has both in English only."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from shutil import get_terminal_size
from typing import Any, Final, NoReturn

import typer
from pydantic import ValidationError
from typer.core import TyperCommand, TyperGroup

from bot.cli.layout import joined, pad, width_of, wrap
from bot.cli.process import language
from bot.core.language import CATALOGUE, Bilingual, Language, Phrase, bilingual, text_in
from config.tables import field_complaint

NARROWEST: Final = 24  # columns of a description, at least
INDENT: Final = "  "

NONE: Final = Bilingual("none", "无")
OFF: Final = Bilingual("off", "关")
ASKS: Final = Bilingual("asks", "会问")
REQUIRED: Final = Bilingual("required", "必填")

USAGE: Final = Phrase("用法：{usage}", "Usage: {usage}")
OPTIONS: Final = Phrase("[选项]", "[OPTIONS]")
COMMAND: Final = Phrase("命令", "COMMAND")
MAY_COMMAND: Final = Phrase("[命令]", "[COMMAND]")
ARGUMENTS_HEAD: Final = Phrase("参数：", "Arguments:")
OPTIONS_HEAD: Final = Phrase("选项：", "Options:")
COMMANDS_HEAD: Final = Phrase("命令：", "Commands:")
IS_REQUIRED: Final = Phrase("{help}（必填）。", "{help} (required).")
HAS_DEFAULT: Final = Phrase("{help}（默认：{default}）。", "{help} (default: {default}).")
HELP: Final = Phrase("显示这份说明。", "Show this help.")

ERROR: Final = Phrase("错误：{what}", "error: {what}")
SEE_HELP: Final = Phrase("说明：{command} --help", "For help: {command} --help")
NO_ARGUMENT: Final = Phrase("缺少参数 {name}", "the argument {name} is missing")
NO_OPTION: Final = Phrase("缺少选项 {name}", "the option {name} is missing")
BAD_VALUE: Final = Phrase("{name} {what}", "{name} {what}")
UNKNOWN_OPTION: Final = Phrase("没有选项 {name}", "there is no option {name}")
UNKNOWN_COMMAND: Final = Phrase("没有命令 {name}", "there is no command {name}")
MEANT: Final = Phrase("{what}，是不是 {names}？", "{what}; did you mean {names}?")
VALUE_MISSING: Final = Phrase("选项 {name} 后面要写一个值", "the option {name} needs a value")
VALUE_TOO_MANY: Final = Phrase("选项 {name} 后面不写值", "the option {name} takes no value")
TOO_MANY: Final = Phrase("多出来的参数：{words}", "too many arguments: {words}")
COMMAND_MISSING: Final = Phrase("缺少命令", "a command is missing")
CATALOGUE.register(__name__, globals())

SURPLUS: Final = re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OptionHelp:
    """An option or an argument of a command; `shown` is how it is typed. `default` is one of the
    words above or a value.
    """

    shown: str
    default: Bilingual
    help: Bilingual

    @property
    def is_argument(self) -> bool:
        """Whether this is a positional argument."""
        return not self.shown.startswith("-")


@dataclass(frozen=True, slots=True)
class CommandHelp:
    """A command. `name` is the name as typed after the program's; `usage` is everything typed after
    that.
    """

    name: str
    help: Bilingual
    usage: Bilingual
    options: tuple[OptionHelp, ...]


def describe(name: str, command: Any) -> CommandHelp:
    """The help of a typer command. Its function and parameters must have bilingual descriptions."""
    function = inspect.unwrap(command.callback)
    told = function.__doc__
    assert isinstance(told, Bilingual), name  # noqa: S101  # `described` made it
    hints = typing.get_type_hints(function, include_extras=True)
    options = tuple(_describe_option(one, hints[one.name or ""]) for one in command.params)
    arguments = [option.shown for option in options if option.is_argument]
    usage = [
        *name.split(),
        *([OPTIONS.fill()] if len(arguments) < len(options) else ()),
        *arguments,
    ]
    if isinstance(command, TyperGroup):
        usage.append((MAY_COMMAND if command.invoke_without_command else COMMAND).fill())
    return CommandHelp(name, told, joined(usage, " "), options)


def _describe_option(parameter: Any, hint: Any) -> OptionHelp:
    (declared,) = [one for one in hint.__metadata__ if hasattr(one, "help")]
    shown = ", ".join((*parameter.opts, *parameter.secondary_opts))
    default = bilingual(str(parameter.default)) if parameter.default else NONE
    if parameter.param_type_name == "argument":
        shown = parameter.name.upper() if parameter.required else f"[{parameter.name.upper()}]"
    elif parameter.secondary_opts:
        default = ASKS if parameter.default is None else bilingual(parameter.opts[0])
    elif parameter.is_flag:
        default = OFF
    else:
        shown += " …"
    return OptionHelp(shown, REQUIRED if parameter.required else default, declared.help)


# --- as text --------------------------------------------------------------------------------------


class Command(TyperCommand):
    """A command with a help in the language of the terminal."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Fits typer."""
        formatter.write(help_text(ctx, language(), get_terminal_size().columns))


class Group(TyperGroup):
    """Commands under one name, with a help in the language of the terminal."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Fits typer."""
        formatter.write(help_text(ctx, language(), get_terminal_size().columns))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Fits typer."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            known = [name for name, one in self.commands.items() if not one.hidden]
            _refuse(ctx, UNKNOWN_COMMAND.fill(name=args[0]), get_close_matches(args[0], known))
        return super().resolve_command(ctx, args)


def _refuse(ctx: Any, what: Bilingual, near: list[str]) -> NoReturn:
    if near:
        what = MEANT.fill(what=what, names=", ".join(near))
    raise typer.BadParameter(what, ctx=ctx)


def help_text(ctx: Any, language: Language, width: int) -> str:
    """The output of a command's `--help`, wrapped at `width` columns."""
    told = describe("", ctx.command)
    options = [(option.shown, _with_default(option, language)) for option in told.options]
    options.append(("-h, --help", HELP.format(language)))
    parts = [
        "\n".join(wrap(_usage(ctx, language), width)),
        "\n".join(wrap(text_in(language, told.help), width)),
        *_section(ARGUMENTS_HEAD, [row for row in options if row[0][0] != "-"], language, width),
        *_section(OPTIONS_HEAD, [row for row in options if row[0][0] == "-"], language, width),
        *_section(COMMANDS_HEAD, list(_commands(ctx.command, language)), language, width),
    ]
    return "\n\n".join(parts)


def _usage(ctx: Any, language: Language) -> str:
    usage = text_in(language, describe("", ctx.command).usage)
    return USAGE.format(language, usage=f"{ctx.command_path} {usage}".rstrip())


def _with_default(option: OptionHelp, language: Language) -> str:
    if option.default in {NONE, OFF, ASKS}:
        return text_in(language, option.help)
    bare = text_in(language, option.help).rstrip("。.")
    if option.default == REQUIRED:
        return IS_REQUIRED.format(language, help=bare)
    return HAS_DEFAULT.format(language, help=bare, default=option.default)


def _commands(command: Any, language: Language) -> Iterator[tuple[str, str]]:
    for name, one in getattr(command, "commands", {}).items():
        if not one.hidden:
            yield name, text_in(language, describe(name, one).help)


def _section(
    head: Phrase, rows: list[tuple[str, str]], language: Language, width: int
) -> Iterator[str]:
    """A heading and rows of names and descriptions; empty without rows."""
    if not rows:
        return
    first = max(width_of(name) for name, _ in rows)
    lines = [head.format(language)]
    for name, text in rows:
        left = width - first - 2 * len(INDENT)
        wrapped = wrap(text, max(left, NARROWEST)) or [""]
        lines.append(f"{INDENT}{pad(name, first)}{INDENT}{wrapped[0]}")
        lines += [f"{INDENT}{' ' * first}{INDENT}{line}" for line in wrapped[1:]]
    yield "\n".join(lines)


# --- usage errors ---------------------------------------------------------------------------------


def usage_error(error: typer.TyperException, language: Language) -> str:
    """The usage error and how to get help."""
    ctx = getattr(error, "ctx", None)
    line = ERROR.format(language, what=_wrong(error))
    if ctx is None:
        return line
    return "\n".join(
        (_usage(ctx, language), line, SEE_HELP.format(language, command=ctx.command_path))
    )


def _wrong(error: Any) -> str:
    """The error in both languages if its kind is known. typer does not export the classes, so they
    are recognised by name.
    """
    if isinstance(error.message, Bilingual):
        return error.message
    match type(error).__name__:
        case "MissingParameter":
            is_argument = error.param.param_type_name == "argument"
            return (NO_ARGUMENT if is_argument else NO_OPTION).fill(name=_name_of(error.param))
        case "NoSuchOption":
            what = UNKNOWN_OPTION.fill(name=error.option_name)
            names = ", ".join(sorted(error.possibilities or ()))
            return MEANT.fill(what=what, names=names) if names else what
        case "BadOptionUsage":
            is_surplus = "does not take a value" in error.message
            return (VALUE_TOO_MANY if is_surplus else VALUE_MISSING).fill(name=error.option_name)
        case "BadParameter" if isinstance(error.__cause__, ValidationError) and error.param:
            (detail, *_) = error.__cause__.errors(include_url=False, include_input=False)
            return BAD_VALUE.fill(name=_name_of(error.param), what=field_complaint(detail))
        case "UsageError" if found := SURPLUS.fullmatch(error.message):
            return TOO_MANY.fill(words=found[1])
        case "UsageError" if error.message == "Missing command.":
            return COMMAND_MISSING.fill()
        case _:
            return str(error.format_message())


def _name_of(parameter: Any) -> str:
    """The parameter as typed, or as `--help` names it."""
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    return str(parameter.opts[0])
