"""Checks of the settings in combination: errors, and what works but is probably unintended."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import assert_never
from urllib.parse import urlsplit

from msgspec.structs import replace

from bot.core.language import Bilingual, Language, text_in
from config import sources, values
from config.mcp_servers import read_servers
from config.persona_files import read_personas
from config.settings import DIALECTS, Settings, read_persona
from config.tables import read_groups, read_subagents
from config.tokens import parts_of
from frostagent.types.errors import ConfigError, Problem

WEAK_TOKEN = 16  # characters
SHORTEST_TOKEN = 8  # of one that other machines can try
CONTAINERS = Path("/.dockerenv"), Path("/run/.containerenv")

PLACEHOLDER = re.compile(
    r"(sk-)?(x{3,}|\.{3,}|…+|your[-_ ].*|change[-_ ]?(me|this)|replace[-_ ]?(me|this|with).*"
    r"|.*[-_]here|你的.*)|<.*>",
    re.IGNORECASE,
)
"""Placeholders of examples and guides."""

EXAMPLE_HOST = re.compile(r"[/.]example(\.(com|org|net))?(?=[:/]|$)", re.IGNORECASE)

HOW_TO_MAKE_ONE = Bilingual(
    "Make one with `openssl rand -hex 16` or "
    "`python3 -c 'import secrets; print(secrets.token_hex(16))'`, "
    "set it here and as the token in your OneBot server (NapCat, LLBot)",
    "用 `openssl rand -hex 16` 生成一个，填在这里，也填到 OneBot 服务（NapCat、LLBot）的令牌里",
)


def cross_check(
    settings: Settings, given: Mapping[str, sources.Typed], *, wrong: frozenset[str], service: bool
) -> Iterator[Problem]:
    """Yield the problems of settings in combination; `wrong` variables are known already."""
    yield from _check_placeholders(given)
    yield from _check_model(settings, service=service and not _is_gateway(settings))
    if service and wrong.isdisjoint({"BOT_ROLE", "BROKER_URL", "STORE_URL"}):
        yield from _check_cluster(settings)
    yield from _check_fallbacks(settings)
    if service and _has_sockets(settings) and wrong.isdisjoint({"ONEBOT_MODE", "ONEBOT_HOST"}):
        yield from _check_onebot(settings)
    if service and wrong.isdisjoint({"BOT_OWNERS", "BOT_NEW_GROUP"}):
        yield from _check_owners(settings)
    if wrong.isdisjoint({"BOT_LINKS", "BOT_LINKS_SITES"}):
        yield from _check_links(settings, service=service and not _is_gateway(settings))
    yield from _check_persona(settings)
    yield from _check_media(settings)
    yield from _check_folder("TOOLS_DIR", settings.tools_dir, "docs/tools.md")
    yield from _check_tools(settings.tools_dir)
    if settings.log_runs is not None and settings.log_runs.is_dir():
        yield Problem(
            "LOG_RUNS",
            Bilingual(f"{settings.log_runs} is a folder", f"{settings.log_runs} 是目录"),
            Bilingual(
                "Name a file in it, e.g. data/runs.jsonl", "写一个其中的文件，比如 data/runs.jsonl"
            ),
        )
    yield from _check_file("GAMES_FILE", settings.games_file, "docs/games.md")
    yield from _check_file("WORDS_FILE", settings.words_file, "docs/safety.md")
    yield from _check_subagents(settings)
    yield from _check_servers(settings)
    yield from _check_file("LLM_PRICES", settings.llm_prices, "docs/models.md")
    yield from _check_qweather(settings)


def _check_placeholders(given: Mapping[str, sources.Typed]) -> Iterator[Problem]:
    for field in (
        "LLM_API_KEY",
        "LLM_MODEL",
        "ONEBOT_ACCESS_TOKEN",
        "CODER_API_KEY",
        "CODER_MODEL",
    ):
        written = given[field].text if field in given else ""
        texts = (
            [token for _, token in parts_of(written)]
            if field == "ONEBOT_ACCESS_TOKEN"
            else [written]
        )
        if any(PLACEHOLDER.fullmatch(text) for text in texts):
            yield Problem(
                field,
                Bilingual("still has the text of an example", "还是示例里的文字"),
                Bilingual("Write your own instead", "换成你自己的"),
            )
    for field in ("LLM_BASE_URL", "CODER_BASE_URL", "STT_BASE_URL"):
        if field in given and EXAMPLE_HOST.search(given[field].text):
            yield Problem(
                field,
                Bilingual("still has the host of an example", "还是示例里的域名"),
                Bilingual(
                    "Write the base URL of your model service instead",
                    "换成你的模型服务的接口地址",
                ),
            )


def _check_model(settings: Settings, *, service: bool) -> Iterator[Problem]:
    begun = service or settings.llm_model or settings.llm_api_key.get_secret_value()
    if begun and not settings.llm_base_url:
        yield Problem(
            "LLM_BASE_URL",
            Bilingual("is not set", "没有设置"),
            Bilingual(
                "Set the base URL of an OpenAI-compatible API, e.g. https://api.deepseek.com/v1",
                "设成兼容 OpenAI 的接口地址，比如 https://api.deepseek.com/v1",
            ),
        )
    if (begun or settings.llm_base_url) and not settings.llm_model:
        yield Problem(
            "LLM_MODEL",
            Bilingual("is not set", "没有设置"),
            Bilingual("Set the model's name as the service spells it", "设成模型服务里写的模型名"),
        )


def _is_gateway(settings: Settings) -> bool:
    return settings.bot_role == "gateway"


def _has_sockets(settings: Settings) -> bool:
    return settings.bot_role != "worker"


def _check_cluster(settings: Settings) -> Iterator[Problem]:
    if not settings.has_broker:
        if settings.bot_role != "all":
            what = Bilingual(
                f"is not set, but BOT_ROLE={settings.bot_role} is a part of a cluster",
                f"没有设置，但 BOT_ROLE={settings.bot_role} 是集群的一部分",
            )
            yield Problem(
                "BROKER_URL",
                what,
                Bilingual(
                    "Set the URL of a RabbitMQ, or remove BOT_ROLE",
                    "设成 RabbitMQ 的地址，或者不要设 BOT_ROLE",
                ),
            )
        return
    if find_spec("aio_pika") is None:
        what = Bilingual("needs a library that is not installed", "需要的库没有安装")
        fix = Bilingual(
            "Install it: .venv/bin/pip install -r requirements-broker.txt; without a"
            " checkout: pip install aio-pika",
            "安装它：.venv/bin/pip install -r requirements-broker.txt，没有源码目录时用"
            " pip install aio-pika",
        )
        yield Problem("BROKER_URL", what, fix)
    store = settings.store_url.get_secret_value()
    if not _is_gateway(settings) and not store.startswith("postgres"):
        yield Problem(
            "STORE_URL",
            Bilingual(
                "is a file, but with BROKER_URL another worker must be able to take over",
                "是文件，但有 BROKER_URL 时要能由另一个 worker 接手",
            ),
            Bilingual(
                "Name a PostgreSQL database, e.g. postgresql://user:password@host/database",
                "写一个 PostgreSQL 的地址，比如 postgresql://user:password@host/database",
            ),
        )


def _check_onebot(settings: Settings) -> Iterator[Problem]:
    match settings.onebot_mode:
        case "forward":
            if not settings.onebot_url:
                fix = Bilingual(
                    "Set the address of your OneBot server's websocket, e.g. ws://127.0.0.1:3001",
                    "设成 OneBot 服务的 WebSocket 地址，比如 ws://127.0.0.1:3001",
                )
                yield Problem(
                    "ONEBOT_URL",
                    Bilingual(
                        "is not set, but ONEBOT_MODE=forward needs it",
                        "没有设置，但 ONEBOT_MODE=forward 需要它",
                    ),
                    fix,
                )
            try:
                _ = settings.access_tokens.only
            except values.Wrong as wrong:
                yield Problem(
                    "ONEBOT_ACCESS_TOKEN",
                    Bilingual(
                        f"{wrong.what}, but ONEBOT_MODE=forward dials one server",
                        f"{text_in(Language.CHINESE, wrong.what)}，"
                        "但 ONEBOT_MODE=forward 只连一台服务",
                    ),
                    wrong.fix,
                )
        case "reverse":
            open_to_all = not values.is_loopback(settings.onebot_host)
            if open_to_all and not settings.onebot_access_token.get_secret_value():
                what = Bilingual(
                    f"is not set, but other machines can reach {settings.onebot_host}",
                    f"没有设置，但别的机器也能连到 {settings.onebot_host}",
                )
                yield Problem("ONEBOT_ACCESS_TOKEN", what, HOW_TO_MAKE_ONE)
        case _:
            assert_never(settings.onebot_mode)
    if settings.access_tokens.all and _is_weakly_guarded(settings, than=SHORTEST_TOKEN):
        what = Bilingual(
            f"has fewer than {SHORTEST_TOKEN} characters, but other machines can try it",
            f"不到 {SHORTEST_TOKEN} 位，但别的机器也能来试",
        )
        yield Problem("ONEBOT_ACCESS_TOKEN", what, HOW_TO_MAKE_ONE)


def _check_owners(settings: Settings) -> Iterator[Problem]:
    if settings.bot_new_group == "shadow" and not settings.bot_owners:
        yield Problem(
            "BOT_OWNERS",
            Bilingual(
                "is empty, but with BOT_NEW_GROUP=shadow an owner reads every answer first",
                "是空的，但 BOT_NEW_GROUP=shadow 时每条回答都要主人先看",
            ),
            Bilingual(
                "Set your own QQ number, or BOT_NEW_GROUP=live",
                "设成你自己的 QQ 号，或者 BOT_NEW_GROUP=live",
            ),
        )


def _check_links(settings: Settings, *, service: bool) -> Iterator[Problem]:
    """The chat in the terminal has a web of its own."""
    if settings.bot_links == "auto" and not settings.bot_links_sites:
        yield Problem(
            "BOT_LINKS_SITES",
            Bilingual(
                "is empty, but BOT_LINKS=auto sums up only links to its sites",
                "是空的，但 BOT_LINKS=auto 只概括其中网站的链接",
            ),
            Bilingual(
                "List hosts, e.g. bilibili.com,github.com, or set BOT_LINKS=ask",
                "写上域名，比如 bilibili.com,github.com，或者设 BOT_LINKS=ask",
            ),
        )
    if settings.bot_links != "off" and service and not settings.has_web:
        yield Problem(
            "BOT_LINKS",
            Bilingual(
                f"is {settings.bot_links}, but reading pages is off",
                f"是 {settings.bot_links}，但没有打开读网页",
            ),
            Bilingual(
                "Set SEARCH_KEY or SEARCH_URL, or SEARCH_KIND=none to read without searching",
                "设 SEARCH_KEY 或 SEARCH_URL，只读网页不搜索时设 SEARCH_KIND=none",
            ),
        )


def _check_persona(settings: Settings) -> Iterator[Problem]:
    if settings.system_prompt and settings.bot_persona:
        yield Problem(
            "SYSTEM_PROMPT",
            Bilingual("and BOT_PERSONA both say who the bot is", "和 BOT_PERSONA 都在写机器人是谁"),
            Bilingual("Keep one of them", "只留一个"),
        )
        return
    try:
        read_persona(settings)
    except ConfigError as error:
        yield from error.problems
    personas, problems = read_personas(settings.personas_dir)
    _, more = read_groups(settings.groups_file, personas)
    for wrong in (problems, more):
        if wrong:
            yield _in_one(wrong)


def _check_media(settings: Settings) -> Iterator[Problem]:
    """Only whether it is a folder: the doctor checks that all folders are writable."""
    folder = settings.media_dir.absolute()
    while not os.access(folder, os.F_OK) and folder != folder.parent:
        folder = folder.parent
    fix = Bilingual(
        "Name a folder that the bot may read and write, or create",
        "写一个机器人能读写、或者能新建的目录",
    )
    if not folder.is_dir():
        yield Problem("MEDIA_DIR", Bilingual(f"{folder} is a file", f"{folder} 是文件"), fix)
    if settings.media_url and not settings.web_port and not _is_gateway(settings):
        what = Bilingual(
            "is set, but nothing listens there with WEB_PORT=0", "设置了，但 WEB_PORT=0 时不监听"
        )
        yield Problem(
            "MEDIA_URL",
            what,
            Bilingual(
                "Set WEB_PORT=8080, or leave MEDIA_URL out",
                "设 WEB_PORT=8080，或者不要设 MEDIA_URL",
            ),
        )


def _check_file(name: str, file: Path | None, description: str) -> Iterator[Problem]:
    """Only whether it is readable: its reader checks the rows."""
    if file is not None and not (file.is_file() and os.access(file, os.R_OK)):
        shown, is_there = values.shown_path(file), file.exists()
        what = Bilingual(
            f"{shown} {'cannot be read' if is_there else 'is not there'}",
            f"{shown} {'读不了' if is_there else '不存在'}",
        )
        fix = Bilingual(
            f"Name a text file with rows as {description} describes them",
            f"写一个文本文件，格式见 {_in_zh(description)}",
        )
        yield Problem(name, what, fix)


def _in_zh(page: str) -> str:
    return page.replace("docs/", "docs/zh/")


def _check_subagents(settings: Settings) -> Iterator[Problem]:
    _, problems = read_subagents(settings.subagents_file, settings.subagent_keys)
    if problems:
        yield _in_one(problems)


def _check_servers(settings: Settings) -> Iterator[Problem]:
    _, problems = read_servers(settings.mcp_file, settings.mcp_keys)
    if problems:
        yield _in_one(problems)


def _in_one(problems: Sequence[Problem]) -> Problem:
    """All problems of one file, under the name and remedy of the first."""
    what = Bilingual(
        "; ".join(problem.what for problem in problems),
        "；".join(text_in(Language.CHINESE, problem.what) for problem in problems),
    )
    return replace(problems[0], what=what)


def _check_folder(name: str, folder: Path | None, description: str) -> Iterator[Problem]:
    """Only whether it is readable: a problem inside costs one tool, not the start."""
    if folder is not None and not (folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)):
        shown, is_there = values.shown_path(folder), folder.exists()
        what = Bilingual(
            f"{shown} {'cannot be read as a folder' if is_there else 'is not there'}",
            f"{shown} {'不能当目录读' if is_there else '不存在'}",
        )
        fix = Bilingual(
            f"Name a folder with files as {description} describes them",
            f"写一个目录，里面的文件见 {_in_zh(description)}",
        )
        yield Problem(name, what, fix)


def _check_tools(folder: Path | None) -> Iterator[Problem]:
    """Write access to a tool is control of the bot, so only its account and root may have it.

    On a read-only mount, as in docker-compose.yml, no account here has it; its owner outside is the
    operator's choice.
    """
    if (
        folder is None
        or sys.platform == "win32"
        or not folder.is_dir()
        or os.statvfs(folder).f_flag & os.ST_RDONLY
    ):
        return
    writable = next(
        (path for path in (folder, *sorted(folder.rglob("*"))) if writers_of(path)), None
    )
    if writable is not None:
        shown, writers = values.shown_path(writable), writers_of(writable)
        what = Bilingual(
            f"{shown} can be written by {writers}, and anyone who can write there controls the bot",
            f"{shown} 别人也能写入（{writers.zh}），能写这里的人就等于机器人自己",
        )
        yield Problem(
            "TOOLS_DIR",
            what,
            Bilingual(
                f"See that it is the bot's own: chown it, and chmod -R go-w {folder}",
                f"让它归机器人自己：先 chown，再 chmod -R go-w {folder}",
            ),
        )


def writers_of(path: Path) -> Bilingual:
    """Who besides this account and root can write there, for people; empty if no one can, or if it
    is missing. Always empty on Windows.
    """
    nobody = Bilingual("", "")
    if sys.platform == "win32":
        return nobody
    try:
        status = path.stat()
    except OSError:
        return nobody
    if status.st_uid not in {0, os.geteuid()}:
        return Bilingual(f"the account {status.st_uid}", f"用户 {status.st_uid}")
    if status.st_mode & stat.S_IWOTH:
        return Bilingual("everyone", "所有人")
    # A group of our own has our number (useradd); any other may have members.
    if status.st_mode & stat.S_IWGRP and status.st_gid and status.st_gid != os.geteuid():
        return Bilingual(f"the group {status.st_gid}", f"用户组 {status.st_gid}")
    return nobody


def is_contained() -> bool:
    """Whether this is a container, whose reachable ports are configured outside."""
    return any(file.exists() for file in CONTAINERS)


def _check_qweather(settings: Settings) -> Iterator[Problem]:
    """A host and one way to authenticate; the three parts of a token only together."""
    parts = {
        "QWEATHER_JWT_PROJECT": settings.qweather_jwt_project,
        "QWEATHER_JWT_KEY_ID": settings.qweather_jwt_key_id,
        "QWEATHER_JWT_PRIVATE_KEY": settings.qweather_jwt_private_key.get_secret_value(),
    }
    if any(parts.values()):
        for name in (name for name, value in parts.items() if not value):
            yield Problem(
                name,
                Bilingual(
                    "is not set, but the others of a token are", "没有设置，但令牌的另外几项设置了"
                ),
                Bilingual(
                    "Set all three as docs/weather.md says", "按 docs/zh/weather.md 把三项都设上"
                ),
            )
    credential = settings.qweather_key.get_secret_value() or all(parts.values())
    if credential and not settings.qweather_host:
        fix = Bilingual(
            "Set your account's API host, e.g. abc1234xyz.def.qweatherapi.com (console, settings)",
            "设成你账号的 API Host，比如 abc1234xyz.def.qweatherapi.com（控制台，设置）",
        )
        yield Problem(
            "QWEATHER_HOST",
            Bilingual(
                "is not set, but a credential of QWeather is", "没有设置，但和风天气的密钥设置了"
            ),
            fix,
        )


def _check_fallbacks(settings: Settings) -> Iterator[Problem]:
    for number, endpoint in enumerate(settings.llm_fallbacks, 1):
        if endpoint.dialect not in {"", *DIALECTS}:
            fix = Bilingual(
                f"Write one of: {', '.join(DIALECTS)}", f"写其中一个：{', '.join(DIALECTS)}"
            )
            yield Problem(
                "LLM_FALLBACKS",
                Bilingual(
                    f"entry {number} has an unknown dialect", f"第 {number} 项的 dialect 不存在"
                ),
                fix,
            )
        texts = (endpoint.model, *endpoint.keys)
        if any(map(PLACEHOLDER.fullmatch, texts)) or EXAMPLE_HOST.search(endpoint.base_url):
            yield Problem(
                "LLM_FALLBACKS",
                Bilingual(
                    f"entry {number} still has the text of an example",
                    f"第 {number} 项还是示例里的文字",
                ),
                Bilingual("Write your own instead", "换成你自己的"),
            )


def _is_weakly_guarded(settings: Settings, *, than: int = WEAK_TOKEN) -> bool:
    """Whether other machines could guess a OneBot token because it is shorter than `than`."""
    reverse = settings.onebot_mode == "reverse"
    onebot = (
        settings.onebot_host if reverse else urlsplit(settings.onebot_url).hostname or "localhost"
    )
    shortest = min(map(len, settings.access_tokens.all), default=0)
    return not values.is_loopback(onebot) and shortest < than


def _doubts_of_listeners(settings: Settings) -> Iterator[Problem]:
    web_is_local = values.is_loopback(settings.web_host)
    # in a container 0.0.0.0 is intended: the published ports are the protection
    if settings.web_port and not web_is_local and not is_contained():
        what = Bilingual(
            f"is {settings.web_host}: other machines can read /metrics, which has no password",
            f"是 {settings.web_host}：别的机器也能看 /metrics，它没有密码",
        )
        yield Problem(
            "WEB_HOST",
            what,
            Bilingual(
                "Set 127.0.0.1, or keep others out with a firewall",
                "设成 127.0.0.1，或者用防火墙挡住外人",
            ),
        )
    fetched_from = urlsplit(settings.media_url).hostname
    if (
        fetched_from
        and web_is_local
        and not (values.is_loopback(fetched_from) or _is_gateway(settings))
    ):
        what = Bilingual(
            f"is {settings.web_host}: only this machine can fetch what MEDIA_URL leads to",
            f"是 {settings.web_host}：MEDIA_URL 指向的文件只有本机能取",
        )
        fix = Bilingual(
            "Set 0.0.0.0 and keep others out with a firewall, or put a proxy in front of it",
            "设成 0.0.0.0 并用防火墙挡住外人，或者让代理转发到这里",
        )
        yield Problem("WEB_HOST", what, fix)
    if (
        settings.console_port
        and not values.is_loopback(settings.console_host)
        and not settings.console_origin.startswith("https://")
        and not is_contained()
    ):
        what = Bilingual(
            f"is {settings.console_host}: the token and all it shows go over the network in plain",
            f"是 {settings.console_host}：令牌和页面内容会在网络上明文传输",
        )
        fix = Bilingual(
            "Set 127.0.0.1 and use an ssh tunnel, or a proxy with https (docs/console.md)",
            "设成 127.0.0.1 并用 ssh 隧道，或者用 https 的代理（docs/zh/console.md）",
        )
        yield Problem("CONSOLE_HOST", what, fix)


def find_doubts(settings: Settings, *, service: bool) -> Iterator[Problem]:
    """A problem for each thing that works but is probably unintended."""
    if service and _has_sockets(settings) and _is_weakly_guarded(settings):
        yield Problem(
            "ONEBOT_ACCESS_TOKEN",
            Bilingual(
                f"is shorter than {WEAK_TOKEN} characters: easy to guess",
                f"不到 {WEAK_TOKEN} 位，容易猜到",
            ),
            HOW_TO_MAKE_ONE,
        )
    if service:
        yield from _doubts_of_listeners(settings)
    if settings.qweather_host and not (
        settings.qweather_key.get_secret_value()
        or settings.qweather_jwt_private_key.get_secret_value()
    ):
        yield Problem(
            "QWEATHER_HOST",
            Bilingual("is set but not used", "设置了，但没有用到"),
            Bilingual(
                "Set QWEATHER_KEY, or the three of QWEATHER_JWT_",
                "设置 QWEATHER_KEY，或 QWEATHER_JWT_ 的三项",
            ),
        )
    if settings.tz and sys.platform == "win32":
        yield Problem(
            "TZ",
            Bilingual("does nothing on Windows", "在 Windows 上不起作用"),
            Bilingual(
                "Set the time zone of Windows instead, and remove this line",
                "请改 Windows 的时区，并删掉这一行",
            ),
        )
    if settings.onebot_mode == "reverse" and settings.onebot_url:
        yield Problem(
            "ONEBOT_URL",
            Bilingual("is set but not used", "设置了，但没有用到"),
            Bilingual(
                "Set ONEBOT_MODE=forward to connect to it, or remove it",
                "要连过去就设 ONEBOT_MODE=forward，否则删掉它",
            ),
        )
