"""The commands a person types: `python -m bot [command]`, installed as `frostagent`."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer
from typer import Argument, Option

from bot.cli.control_commands import AsJson, console, reload, status, stop
from bot.cli.journal_commands import backup, export, forget, restore, runs_list, runs_show
from bot.cli.process import (
    ENV_FILE,
    INTERRUPTED,
    LINGER,
    configure,
    exit_with,
    language,
    log_to_file,
    run_until_stopped,
    serve,
    tell,
)
from bot.core.engine_words import ENGINE_WORDS
from bot.runtime.loop import exit_process
from config.loading import is_configured
from frostagent.types.errors import ConfigError
from frostagent.words import use_words

TOKEN_BYTES = 16


def main() -> None:
    """The entry point of `frostagent`."""
    use_words(ENGINE_WORDS)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # Windows' code pages have no letters of others
            stream.reconfigure(errors="replace")
    app()


def print_version(wanted: bool) -> None:
    """Print the version and end, if that is wanted."""
    if wanted:
        from bot.runtime.version import version as installed

        print(installed())
        raise typer.Exit


def default(
    context: typer.Context,
    _version: Annotated[
        bool,
        Option("--version", "-V", help="Print the version.", callback=print_version, is_eager=True),
    ] = False,
) -> None:
    """FrostAgent: a QQ group bot on OneBot v11 and any OpenAI-compatible model. Without a command:
    run.
    """
    if context.invoked_subcommand is None:
        run()


def run() -> None:
    """The service; or the chat, where neither a model nor a OneBot server is configured."""
    if not is_configured(os.environ, ENV_FILE):
        chat()
        return
    settings = configure(service=True)
    run_until_stopped(lambda: serve(settings))


def chat() -> None:
    """A chat on standard input: the simulator instead of QQ, and a demo model where none is
    configured.
    """
    settings = configure(service=False)
    from bot.cli.chat import converse, print_line

    with log_to_file(settings):
        run_until_stopped(lambda: converse(settings, sys.stdin, print_line, tell))


def personas() -> None:
    """Who the bot is."""


def persona_try(file: Annotated[Path, Argument(help="A file as docs/personas.md says.")]) -> None:
    """Talk with a persona in a chat on standard input: it has the rules and tools of a group."""
    settings = configure(service=False)
    from bot.cli.chat import converse, print_line, speaking_as

    try:
        settings = speaking_as(settings, file)
    except ConfigError as error:
        exit_with(error)
    with log_to_file(settings):
        run_until_stopped(lambda: converse(settings, sys.stdin, print_line, tell))


def setup(
    base_url: Annotated[
        str, Option(help="The model service: its base url, or a name as deepseek, ollama.")
    ] = "",
    api_key: Annotated[str, Option(help="Its key; safer in the environment, as LLM_API_KEY.")] = "",
    model: Annotated[str, Option(help="The model, as the service spells it.")] = "",
    owner: Annotated[
        str, Option(help="QQ numbers with an owner's rights, separated by commas.")
    ] = "",
    groups: Annotated[str, Option(help="The groups it listens to; without, all.")] = "",
    account: Annotated[str, Option(help="The bot's own QQ number, for NapCat's quick login.")] = "",
    napcat_url: Annotated[str, Option(help="Where NapCat finds the bot.")] = "ws://bot:6199/",
    console_port: Annotated[str, Option(help="The port of the web console; without, none.")] = "",
    docker: Annotated[
        bool | None, Option(help="Whether it will run in Docker; without, you are asked.")
    ] = None,
    test: Annotated[bool, Option(help="Try the model before anything is written.")] = True,
    force: Annotated[bool, Option("--force", help="Overwrite files without asking.")] = False,
    non_interactive: Annotated[
        bool, Option("--non-interactive", help="Ask nothing, as without a terminal.")
    ] = False,
) -> None:
    """Ask for what the service needs, and write .env and NapCat's settings; a second time, offers
    what is there.
    """
    from bot.cli.doctor.models import check_endpoint, models_at
    from bot.cli.setup.answers import TyperTerminal
    from bot.cli.setup.wizard import SetupOptions, Wizard
    from frostagent.clock import SystemClock

    typed = {"LLM_BASE_URL": base_url, "LLM_API_KEY": api_key, "LLM_MODEL": model}
    typed |= {"BOT_OWNERS": owner, "BOT_GROUPS": groups, "NAPCAT_ACCOUNT": account}
    typed |= {"CONSOLE_PORT": console_port}
    wishes = SetupOptions(
        typed=typed,
        napcat_url=napcat_url,
        docker=docker,
        force=force,
        test=test,
        interactive=sys.stdin.isatty() and not non_interactive,
    )
    wizard = Wizard(
        folder=Path.cwd(),
        environ=os.environ,
        terminal=TyperTerminal(),
        check_endpoint=lambda endpoint: asyncio.run(check_endpoint(endpoint, clock=SystemClock())),
        list_models=lambda endpoint: asyncio.run(models_at(endpoint)),
        make_token=lambda: secrets.token_hex(TOKEN_BYTES),
    )
    try:
        written = wizard.run(wishes)
    except ConfigError as error:
        exit_with(error)
    except (typer.Abort, KeyboardInterrupt):
        tell("\n没有写入任何文件 Nothing was written.")
        raise SystemExit(INTERRUPTED) from None
    raise SystemExit(not written)


def doctor(
    as_json: Annotated[bool, Option("--json", help="Print a list of objects.")] = False,
    send_image: Annotated[
        bool,
        Option(
            "--send-image",
            help="Send a small picture on QQ too: to an owner, else to the account itself.",
        ),
    ] = False,
) -> None:
    """Look at everything the bot needs, and say what is wrong and how to mend it; exit code 1 with
    a problem.
    """
    from bot.cli.checks import exit_code, to_json, to_text
    from bot.cli.doctor.run import diagnose
    from frostagent.clock import RandomIds, SystemClock

    async def examine() -> int:
        checks = await diagnose(
            environ=os.environ,
            env_file=ENV_FILE,
            clock=SystemClock(),
            ids=RandomIds(),
            send_image=send_image,
        )
        print(to_json(checks) if as_json else to_text(checks, spoken), flush=True)
        code = exit_code(checks)
        # A disk or a look-up may hang a thread for ever.
        impatience = threading.Timer(LINGER, exit_process, [code])
        impatience.daemon = True
        impatience.start()
        return code

    spoken = language()
    logging.disable()  # the report says it all
    raise SystemExit(asyncio.run(examine()))


def init(
    server: Annotated[str, Option(help="napcat or llbot; else as COMPOSE_PROFILES says.")] = "",
    owner: Annotated[str, Option(help="Whose the data shall be, as 1000:1000.")] = "",
) -> None:
    """Make the tokens and the OneBot server's files that are missing, once, before both start with
    docker compose.
    """
    from bot.cli.setup.container import passed_on, prepare, read_owner, read_server

    folder = Path.cwd()
    try:
        environ = passed_on(folder, os.environ)
        prepare(
            folder=folder,
            environ=environ,
            server=read_server(server, environ),
            make_token=lambda: secrets.token_hex(TOKEN_BYTES),
            tell=tell,
            owner=read_owner(owner),
        )
    except ConfigError as error:
        exit_with(error)


def tools_list(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Every tool: what it is, who may call it, whether it can be used now, and why not."""
    if context.invoked_subcommand is None:
        from bot.cli.inspection import list_tools, tools_to_text
        from bot.cli.past_runs import to_json
        from bot.runtime.tool_discovery import report

        rows, problems = list_tools(configure(service=False))
        report(problems)
        print(to_json(rows) if as_json else tools_to_text(rows))


def tools_call(
    name: str,
    arguments: Annotated[
        str, Argument(help='As the model would write them: \'{"city": "北京"}\'.')
    ] = "{}",
    as_json: AsJson = False,
) -> None:
    """Run one tool as the engine would, on an owner's authority; exit code 1 where its result is an
    error.
    """
    from bot.cli.inspection import call_tool, result_to_json, result_to_text

    settings, ask = configure(service=False), input if sys.stdin.isatty() else None
    try:
        result = asyncio.run(call_tool(settings, name, arguments, ask=ask, tell=tell))
    except KeyboardInterrupt:
        exit_process(INTERRUPTED)  # a question that nobody answers holds its thread
    print(result_to_json(result) if as_json else result_to_text(result))
    raise SystemExit(result.is_error)


def mcp_list(context: typer.Context, *, as_json: AsJson = False) -> None:
    """The MCP servers of MCP_FILE: whether each can be reached, and what it offers. Connects to
    them for this.
    """
    if context.invoked_subcommand is None:
        _list_servers(as_json=as_json)


def mcp_list_named(as_json: AsJson = False) -> None:
    """The same as `mcp` alone."""
    _list_servers(as_json=as_json)


def _list_servers(*, as_json: bool) -> None:
    from bot.cli.mcp_commands import list_servers, servers_to_data, servers_to_text
    from bot.cli.past_runs import to_json

    settings = configure(service=False)
    logging.disable()
    try:
        statuses = list_servers(settings)
    except ConfigError as error:
        exit_with(error)
    print(to_json(servers_to_data(statuses)) if as_json else servers_to_text(statuses))


def mcp_try(
    server: Annotated[str, Argument(help="Its name in MCP_FILE.")],
    tool: Annotated[str, Argument(help="One of its tools, to call it.")] = "",
    arguments: Annotated[str, Argument(help="As the model would write them: '{\"a\": 1}'.")] = "{}",
    as_json: AsJson = False,
) -> None:
    """What one MCP server offers; with a tool, call it on an owner's authority; exit code 1 where
    its result is an error.
    """
    from bot.cli.inspection import result_to_json, result_to_text
    from bot.cli.mcp_commands import try_server

    settings, ask = configure(service=False), input if sys.stdin.isatty() else None
    logging.disable()
    try:
        result = asyncio.run(try_server(settings, server, tool, arguments, ask=ask))
    except ConfigError as error:
        exit_with(error)
    except KeyboardInterrupt:
        exit_process(INTERRUPTED)  # a question that nobody answers holds its thread
    if isinstance(result, str):
        print(result)
        return
    print(result_to_json(result) if as_json else result_to_text(result))
    raise SystemExit(result.is_error)


def version() -> None:
    """The version."""
    print_version(True)


# --- all of them ----------------------------------------------------------------------------------


def group(
    callback: Callable[..., None],
    commands: Mapping[str, Callable[..., None]],
    *,
    needs_command: bool = False,
) -> typer.Typer:
    """Commands under one name; the callback is what that name does alone, unless it needs one of
    them.
    """
    made = typer.Typer()
    made.callback(invoke_without_command=not needs_command)(callback)
    for name, command in commands.items():
        made.command(name)(command)
    return made


COMMANDS: Final[Mapping[str, Callable[..., None] | typer.Typer]] = {
    "run": run,
    "chat": chat,
    "setup": setup,
    "doctor": doctor,
    "init": init,
    "version": version,
    "tools": group(tools_list, {"call": tools_call}),
    "mcp": group(mcp_list, {"list": mcp_list_named, "try": mcp_try}),
    "persona": group(personas, {"try": persona_try}, needs_command=True),
    "export": export,
    "forget": forget,
    "backup": backup,
    "restore": restore,
    "runs": group(runs_list, {"show": runs_show}),
    "reload": reload,
    "stop": stop,
    "status": status,
    "console": console,
}
"""In the order of `--help`."""

HIDDEN: Final = {"init"}


def build_app() -> typer.Typer:
    """The program with all its commands."""
    made = typer.Typer(
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",  # the others keep the line breaks of docstrings
    )
    made.callback(invoke_without_command=True)(default)
    for name, command in COMMANDS.items():
        if isinstance(command, typer.Typer):
            made.add_typer(command, name=name)
        else:  # in an app of its own: else `--help` has all commands before the groups
            alone = typer.Typer()
            alone.command(name, hidden=name in HIDDEN)(command)
            made.add_typer(alone)
    return made


app = build_app()
