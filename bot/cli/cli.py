"""The command line: `python -m bot [command]`, installed as `frostagent`."""

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
from bot.cli.help import Command, Group, usage_error
from bot.cli.journal_commands import backup, export, forget, restore, runs_list, runs_show
from bot.cli.process import (
    ENV_FILE,
    INTERRUPTED,
    LINGER,
    ask_line,
    configure,
    described,
    exit_with,
    fail,
    language,
    log_to_file,
    run_until_stopped,
    say,
    serve,
    show,
    tell,
)
from bot.core.engine_words import ENGINE_WORDS
from bot.core.language import CATALOGUE, Bilingual, Phrase
from bot.runtime.loop import exit_process
from config.loading import is_configured
from frostagent.types.errors import ConfigError
from frostagent.words import use_words

TOKEN_BYTES = 16
STOPPED: Final = Phrase("已中止。", "Stopped.")
CATALOGUE.register(__name__, globals())


def main() -> None:
    """The entry point of `frostagent`."""
    use_words(ENGINE_WORDS)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # Windows' code pages lack many characters
            stream.reconfigure(errors="replace")
    try:
        code = app(standalone_mode=False)
    except typer.Abort:
        fail(STOPPED)
    except typer.TyperException as error:
        tell(usage_error(error, language()))
        raise SystemExit(error.exit_code) from None
    raise SystemExit(code)


def print_version(wanted: bool) -> None:
    """Print the version and exit, if wanted."""
    if wanted:
        from bot.runtime.version import version as installed

        print(installed())
        raise typer.Exit


@described(
    "FrostAgent: a QQ group bot for OneBot v11 and any OpenAI-compatible model. Without a"
    " command: run.",
    "FrostAgent：用任何兼容 OpenAI 的模型回答的 QQ 群机器人（OneBot v11）。不带命令时等于 run。",
)
def default(
    context: typer.Context,
    _version: Annotated[
        bool,
        Option(
            "--version",
            "-V",
            help=Bilingual("Print the version.", "显示版本。"),
            callback=print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        run()


@described(
    "Start the service; if no setting of a model or of QQ is set, start the chat.",
    "启动服务；模型和 QQ 的设置一项都没有时，启动终端聊天。",
)
def run() -> None:
    if not is_configured(os.environ, ENV_FILE):
        chat()
        return
    settings = configure(service=True)
    run_until_stopped(lambda: serve(settings))


@described(
    "Chat in the terminal, with a simulator instead of QQ, and a demo model if none is configured.",
    "在终端里聊天：用模拟器代替 QQ；没有配置模型时用演示模型。",
)
def chat() -> None:
    settings = configure(service=False)
    from bot.cli.chat import converse, print_line

    with log_to_file(settings):
        run_until_stopped(lambda: converse(settings, sys.stdin, print_line, tell))


@described(
    "Try personas.",
    "试用人设。",
)
def personas() -> None:
    pass


@described(
    "Chat with a persona in the terminal, with the rules and tools of a group.",
    "在终端里和一个人设聊天，规则和工具与群里相同。",
)
def persona_try(
    file: Annotated[
        Path,
        Argument(
            help=Bilingual(
                "A persona file (docs/personas.md).", "人设文件（docs/zh/personas.md）。"
            )
        ),
    ],
) -> None:
    settings = configure(service=False)
    from bot.cli.chat import converse, print_line, speaking_as

    try:
        settings = speaking_as(settings, file)
    except ConfigError as error:
        exit_with(error)
    with log_to_file(settings):
        run_until_stopped(lambda: converse(settings, sys.stdin, print_line, tell))


@described(
    "Ask for what the service needs, and write .env and NapCat's settings. Run again, it"
    " offers the present values.",
    "逐项询问服务需要什么，写好 .env 和 NapCat 的配置；再次运行时以现有的值为默认。",
)
def setup(
    base_url: Annotated[
        str,
        Option(
            help=Bilingual(
                "The model service: its base URL, or a name such as deepseek or ollama.",
                "模型服务：接口地址，或 deepseek、ollama 这样的名字。",
            )
        ),
    ] = "",
    api_key: Annotated[
        str,
        Option(
            help=Bilingual(
                "API key; safer in the environment, as LLM_API_KEY.",
                "密钥；放在环境变量 LLM_API_KEY 里更安全。",
            )
        ),
    ] = "",
    model: Annotated[
        str,
        Option(
            help=Bilingual(
                "Name of the model, as the service spells it.", "模型名称，按服务商的写法。"
            )
        ),
    ] = "",
    owner: Annotated[
        str,
        Option(
            help=Bilingual(
                "QQ numbers with an owner's rights, separated by commas.",
                "有主人权限的 QQ 号，用逗号隔开。",
            )
        ),
    ] = "",
    groups: Annotated[
        str,
        Option(help=Bilingual("Groups to listen to; all by default.", "允许的群号，不写为全部。")),
    ] = "",
    account: Annotated[
        str,
        Option(
            help=Bilingual(
                "The bot's own QQ number, for NapCat's quick login.",
                "机器人的 QQ 号，用于 NapCat 快速登录。",
            )
        ),
    ] = "",
    napcat_url: Annotated[
        str, Option(help=Bilingual("Where NapCat finds the bot.", "NapCat 用哪个地址找到机器人。"))
    ] = "ws://bot:6199/",
    console_port: Annotated[
        str,
        Option(
            help=Bilingual("Port of the console; off by default.", "控制台的端口，不写就不开。")
        ),
    ] = "",
    docker: Annotated[
        bool | None,
        Option(
            help=Bilingual(
                "Whether the bot will run in Docker; asks by default.",
                "是否用 Docker 运行；不写会问你。",
            )
        ),
    ] = None,
    test: Annotated[
        bool,
        Option(help=Bilingual("Test the model before writing anything.", "写入之前先试一次模型。")),
    ] = True,
    force: Annotated[
        bool,
        Option(
            "--force", help=Bilingual("Overwrite files without asking.", "不询问，直接覆盖文件。")
        ),
    ] = False,
    non_interactive: Annotated[
        bool,
        Option(
            "--non-interactive",
            help=Bilingual(
                "Ask nothing, as if there were no terminal.", "什么都不问，如同没有终端。"
            ),
        ),
    ] = False,
) -> None:
    from bot.cli.doctor.models import check_endpoint, models_at
    from bot.cli.setup.answers import TyperTerminal
    from bot.cli.setup.wizard import NOTHING_WRITTEN, SetupOptions, Wizard
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
        terminal=TyperTerminal(language()),
        check_endpoint=lambda endpoint: asyncio.run(check_endpoint(endpoint, clock=SystemClock())),
        list_models=lambda endpoint: asyncio.run(models_at(endpoint)),
        make_token=lambda: secrets.token_hex(TOKEN_BYTES),
    )
    try:
        written = wizard.run(wishes)
    except ConfigError as error:
        exit_with(error)
    except (typer.Abort, KeyboardInterrupt):
        tell("")
        say(NOTHING_WRITTEN)
        raise SystemExit(INTERRUPTED) from None
    raise SystemExit(not written)


@described(
    "Check everything that the bot needs, and say how to fix each problem. Exit code 1 if"
    " there is one.",
    "逐项检查机器人需要的一切，并说明每个问题怎么解决；有问题时退出码为 1。",
)
def doctor(
    as_json: Annotated[
        bool, Option("--json", help=Bilingual("Print a JSON list.", "输出 JSON 列表。"))
    ] = False,
    send_image: Annotated[
        bool,
        Option(
            "--send-image",
            help=Bilingual(
                "Also send a small picture on QQ: to an owner, or to the account itself if there "
                "is none.",
                "再在 QQ 上发一张小图：发给主人，没有主人就发给账号自己。",
            ),
        ),
    ] = False,
) -> None:
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
        show(to_json(checks) if as_json else to_text(checks))
        code = exit_code(checks)
        # A thread may hang for ever on a disk or a DNS look-up.
        impatience = threading.Timer(LINGER, exit_process, [code])
        impatience.daemon = True
        impatience.start()
        return code

    logging.disable()  # the report says it all
    raise SystemExit(asyncio.run(examine()))


@described(
    "Make missing tokens and files of the OneBot server, once, before Docker Compose starts both.",
    "在 Docker Compose 启动之前运行一次，生成缺少的令牌和 OneBot 端的文件。",
)
def init(
    server: Annotated[
        str,
        Option(
            help=Bilingual(
                "napcat or llbot; by default COMPOSE_PROFILES decides.",
                "napcat 或 llbot；不写则看 COMPOSE_PROFILES。",
            )
        ),
    ] = "",
    owner: Annotated[
        str,
        Option(
            help=Bilingual(
                "Owner of the data files, e.g. 1000:1000.", "数据文件的属主，如 1000:1000。"
            )
        ),
    ] = "",
) -> None:
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


@described(
    "List every tool: what it is, who may call it, and whether it can be used now.",
    "列出每个工具：做什么、谁能用、现在能不能用以及为什么。",
)
def tools_list(context: typer.Context, *, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is None:
        from bot.cli.inspection import list_tools, tools_to_text
        from bot.cli.past_runs import to_json
        from bot.runtime.tool_discovery import report

        rows, problems = list_tools(configure(service=False))
        report(problems)
        show(to_json(rows) if as_json else tools_to_text(rows))


@described(
    "Run one tool as the engine would, with an owner's rights. Exit code 1 if its result is"
    " an error.",
    "像引擎那样执行一个工具，权限等同主人；结果是错误时退出码为 1。",
)
def tools_call(
    name: Annotated[str, Argument(help=Bilingual("Name of the tool.", "工具的名字。"))],
    arguments: Annotated[
        str,
        Argument(
            help=Bilingual(
                'JSON, as the model would write it: \'{"city": "北京"}\'.',
                'JSON，与模型的写法相同：\'{"city": "北京"}\'。',
            )
        ),
    ] = "{}",
    as_json: AsJson = False,
) -> None:
    from bot.cli.inspection import call_tool, result_to_json, result_to_text

    settings, ask = configure(service=False), ask_line if sys.stdin.isatty() else None
    try:
        result = asyncio.run(call_tool(settings, name, arguments, ask=ask, tell=tell))
    except KeyboardInterrupt:
        exit_process(INTERRUPTED)  # an unanswered question blocks its thread
    show(result_to_json(result) if as_json else result_to_text(result))
    raise SystemExit(result.is_error)


@described(
    "Connect to the MCP servers in MCP_FILE, and list whether each answers and what it offers.",
    "连接 MCP_FILE 里的 MCP 服务器，列出各自能否连上、提供什么。",
)
def mcp_list(context: typer.Context, *, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is None:
        _list_servers(as_json=as_json)


@described(
    "The same as `mcp` alone.",
    "与单独的 `mcp` 相同。",
)
def mcp_list_named(as_json: AsJson = False) -> None:
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
    show(to_json(servers_to_data(statuses)) if as_json else servers_to_text(statuses))


@described(
    "Show what one MCP server offers, or call one of its tools with an owner's rights. Exit"
    " code 1 if the result is an error.",
    "查看一个 MCP 服务器提供什么，或以主人的权限调用它的一个工具；结果是错误时退出码为 1。",
)
def mcp_try(
    server: Annotated[
        str,
        Argument(help=Bilingual("Name of the server in MCP_FILE.", "服务器在 MCP_FILE 里的名字。")),
    ],
    tool: Annotated[str, Argument(help=Bilingual("The tool to call.", "要调用的工具。"))] = "",
    arguments: Annotated[
        str,
        Argument(
            help=Bilingual(
                "JSON, as the model would write it: '{\"a\": 1}'.",
                "JSON，与模型的写法相同：'{\"a\": 1}'。",
            )
        ),
    ] = "{}",
    as_json: AsJson = False,
) -> None:
    from bot.cli.inspection import result_to_json, result_to_text
    from bot.cli.mcp_commands import try_server

    settings, ask = configure(service=False), ask_line if sys.stdin.isatty() else None
    logging.disable()
    try:
        result = asyncio.run(try_server(settings, server, tool, arguments, ask=ask))
    except ConfigError as error:
        exit_with(error)
    except KeyboardInterrupt:
        exit_process(INTERRUPTED)  # an unanswered question blocks its thread
    if isinstance(result, Bilingual):
        show(result)
        return
    show(result_to_json(result) if as_json else result_to_text(result))
    raise SystemExit(result.is_error)


@described(
    "Print the version.",
    "显示版本。",
)
def version() -> None:
    print_version(True)


# --- all commands -------------------------------------------------------------------------------


def group(
    callback: Callable[..., None],
    commands: Mapping[str, Callable[..., None]],
    *,
    needs_command: bool = False,
) -> typer.Typer:
    """Commands under a common name. That name without a command runs the callback, unless
    `needs_command`.
    """
    made = typer.Typer(cls=Group)
    made.callback(invoke_without_command=not needs_command)(callback)
    for name, command in commands.items():
        made.command(name, cls=Command)(command)
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
        cls=Group,
    )
    made.callback(invoke_without_command=True)(default)
    for name, command in COMMANDS.items():
        if isinstance(command, typer.Typer):
            made.add_typer(command, name=name)
        else:  # in its own app, or `--help` would list all commands before the groups
            alone = typer.Typer()
            alone.command(name, cls=Command, hidden=name in HIDDEN)(command)
            made.add_typer(alone)
    return made


app = build_app()
