"""Makes the pages of docs/ that are lists of what the code declares: `make docs` writes them, a test compares them.

What stands before the mark in a page is written by hand.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from pydantic import SecretStr
from typer.core import TyperGroup

from bot.cli.cli import app
from bot.cli.help import ASKS, NONE, OFF, REQUIRED, CommandHelp, OptionHelp, describe
from bot.core.language import Bilingual, Language
from config import tokens, values
from config.described import About
from config.endpoints import fallbacks
from config.settings import KNOWN, SUBJECTS, Settings

ROOT = Path(__file__).parents[1]
MARK = "<!-- What follows is made by `make docs`. -->\n"
FOLDERS = {Language.ENGLISH: "docs", Language.CHINESE: "docs/zh"}

COMPOSE: Mapping[str, About] = {
    "NAPCAT_ACCOUNT": About(
        "The bot's QQ number: from its next start on, NapCat logs in without a QR code.",
        "机器人的 QQ 号：NapCat 下次启动起不用再扫码。",
        unit=Bilingual("QQ number", "QQ 号"),
        example="10000",
        see="install.md",
    ),
    "NAPCAT_WEBUI_TOKEN": About(
        "Password of NapCat's WebUI; without one, Docker makes one and keeps it in `data/tokens.env`.",
        "NapCat 网页界面的密码；留空则自动生成，存在 `data/tokens.env`。",
        see="deploy.md",
    ),
    "NAPCAT_WEBUI_PORT": About(
        "Port of NapCat's WebUI on this computer; a change recreates NapCat.",
        "NapCat 网页界面在本机的端口；修改会重建 NapCat。",
    ),
    "NAPCAT_UID": About(
        "Owner of NapCat's files; a change recreates NapCat.", "NapCat 文件的属主；修改会重建 NapCat。"
    ),
    "NAPCAT_GID": About(
        "Group of NapCat's files; a change recreates NapCat.", "NapCat 文件的属组；修改会重建 NapCat。"
    ),
    "NAPCAT_REPLICAS": About(
        "`0`: no NapCat, if you use LLBot.", "`0`：不运行 NapCat，用 LLBot 时填。", see="llbot.md"
    ),
    "LLBOT_ACCOUNT": About(
        "LLBot: the bot's QQ number.",
        "LLBot：机器人的 QQ 号。",
        unit=Bilingual("QQ number", "QQ 号"),
        example="10000",
        see="llbot.md",
    ),
    "LLBOT_WEBUI_TOKEN": About("LLBot: password of its WebUI.", "LLBot：网页界面的密码。", see="llbot.md"),
    "LLBOT_WEBUI_PORT": About(
        "LLBot: port of its WebUI on this computer; a change recreates LLBot.",
        "LLBot：网页界面在本机的端口；修改会重建 LLBot。",
    ),
    "LLBOT_AUTH_TOKEN": About("LLBot: its own licence key.", "LLBot：它自己的授权码。", see="llbot.md"),
    "COMPOSE_PROFILES": About(
        "What runs besides: `llbot`, `cluster`, `monitoring`.",
        "另外运行什么：`llbot`、`cluster`、`monitoring`。",
        unit=Bilingual("list", "列表"),
        example="monitoring",
        see="deploy.md",
    ),
    "COMPOSE_PROJECT_NAME": About(
        "Name of containers, network and image; two folders of one name need two.",
        "容器、网络和镜像的名称前缀；两个同名目录并存时须分别设置。",
        unset=Bilingual("the folder's", "目录名"),
        example="frostagent",
    ),
    "EXTRAS": About(
        "Parts built into the image: `postgres`, `broker`, `mcp`, `web`, `otel`; then `docker compose up -d --build`.",
        "镜像里额外安装的组件：`postgres`、`broker`、`mcp`、`web`、`otel`；改后执行 `docker compose up -d --build`。",
        unit=Bilingual("list", "列表"),
        unset=Bilingual("none; in a cluster `broker,postgres`", "无；集群中为 `broker,postgres`"),
        example="postgres",
    ),
    "FROSTAGENT_MEMORY": About(
        "Memory limit of the bot's container; less than `256m` ends the bot when a command runs.",
        "机器人容器的内存上限；低于 `256m` 时，旁边运行一条命令就可能把机器人一起撑爆。",
        unit=Bilingual("size", "大小"),
    ),
    "GRAFANA_PASSWORD": About(
        "Password of Grafana's user `admin`; without one Grafana does not start.",
        "Grafana 管理员（`admin`）的密码，不设则不启动。",
        see="deploy.md",
    ),
    "GRAFANA_PORT": About("Port of Grafana on this computer.", "Grafana 在本机的端口。"),
    "FROSTAGENT_REPLICAS": About(
        "`0`: no bot in one process, in a cluster.", "`0`：集群中不运行单独的机器人。", see="cluster.md"
    ),
    "CLUSTER_PASSWORD": About(
        "Password of RabbitMQ and PostgreSQL in a cluster: letters and digits only.",
        "集群里 RabbitMQ 和 PostgreSQL 的密码，只用字母和数字。",
        see="cluster.md",
    ),
    "GATEWAY_REPLICAS": About("Gateways in a cluster.", "集群里有几个网关。", see="cluster.md"),
    "WORKER_REPLICAS": About("Workers in a cluster.", "集群里有几个 worker。", see="cluster.md"),
}
"""What stands in `.env` for docker-compose.yml and `init` alone."""

NAMES = (*KNOWN, *COMPOSE)
"""Every name that `.env` may have."""

TEXT = Bilingual("text", "文字")
NUMBER = Bilingual("number", "数字")
FILE = Bilingual("file", "文件")
URL = Bilingual("URL", "网址")
TOKEN = Bilingual("token", "令牌")
ADDRESS = Bilingual("IP address or host name", "IP 地址或主机名")
JSON = Bilingual("JSON object", "JSON 对象")
KINDS: Mapping[object, Bilingual] = {
    fallbacks: Bilingual("JSON list", "JSON 列表"),
    values.owners: Bilingual("QQ numbers", "QQ 号"),
    tokens.console_token: TOKEN,
    tokens.console_totp: Bilingual("base32", "base32"),
    tokens.tokens: Bilingual("token, or `account:token` list", "令牌，或 `账号:令牌` 列表"),
    values.api_host: Bilingual("host name", "域名"),
    values.audiences: JSON,
    values.base_url: URL,
    values.broker_url: URL,
    values.contact: Bilingual("ASCII text", "ASCII 文字"),
    values.database: URL,
    values.ed25519_key: Bilingual("key", "密钥"),
    values.host: ADDRESS,
    values.clock_time: Bilingual("time of day, or `0`", "时刻，或 `0`"),
    values.hours: Bilingual("list of times", "时间段列表"),
    values.keys: Bilingual("key, or list of keys", "密钥，可写多个"),
    values.media_url: URL,
    values.mirrors: JSON,
    values.names: Bilingual("list", "列表"),
    values.origin: URL,
    values.path: FILE,
    values.proxy_address: Bilingual("IP address", "IP 地址"),
    values.qq_numbers: Bilingual("QQ numbers", "QQ 号"),
    values.rate: Bilingual("number/seconds", "次数/秒数"),
    values.secret: Bilingual("key", "密钥"),
    values.socket_url: URL,
    values.switch: Bilingual("`0` or `1`", "`0` 或 `1`"),
    values.time_of_day: Bilingual("time of day", "时刻"),
    values.zone: Bilingual("time zone", "时区"),
}
"""What a text must be, by the function that reads it."""


def about(name: str) -> About:
    """The sentences of a setting."""
    if name in COMPOSE:
        return COMPOSE[name]
    (found,) = [one for one in Settings.model_fields[name.lower()].metadata if isinstance(one, About)]
    return found


# --- settings -----------------------------------------------------------------------------------------


HEAD = {
    Language.ENGLISH: "| setting | default | value | what it does |",
    Language.CHINESE: "| 设置 | 默认值 | 取值 | 作用 |",
}
DOCKER = Bilingual("Docker Compose only", "仅用于 Docker Compose")


def settings_in(language: Language) -> str:
    """The tables of docs/settings.md, one for each subject."""
    parts = [f"\n## {_in(language, title)}\n\n{_table(names, language)}" for title, names in _subjects()]
    return "".join(parts)


def _subjects() -> Iterator[tuple[Bilingual, list[str]]]:
    names: list[str] = []
    title = next(iter(SUBJECTS.values()))
    for name in KNOWN:
        if names and name.lower() in SUBJECTS:
            yield title, names
            title, names = SUBJECTS[name.lower()], []
        names.append(name)
    yield title, names
    yield DOCKER, list(COMPOSE)


def _table(names: Iterable[str], language: Language) -> str:
    rows = [HEAD[language], "|---|---|---|---|"]
    for name in names:
        told = about(name)
        sentence = language.either(told.zh, told.en)
        if told.see:
            word = told.see.removesuffix(".md").replace("-", " ")
            sentence = language.either(
                f"{sentence.removesuffix('。')}（[详见](./{told.see})）。",
                f"{sentence.removesuffix('.')} ([{word}]({told.see})).",
            ).replace("(./", "(")
        cells = (f"`{name}`", _default(name, language), _value(name, language), sentence)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows) + "\n"


def _in(language: Language, text: Bilingual) -> str:
    return language.either(text.zh, text.en)


def _default(name: str, language: Language) -> str:
    told = about(name)
    if told.unset is not None:
        return _in(language, told.unset)
    shown = _of_compose(name) if name in COMPOSE else _shown(name)
    return f"`{shown}`" if shown else _in(language, NONE)


def _of_compose(name: str) -> str:
    found = re.search(rf"\$\{{{name}:-([^}}$]*)\}}", (ROOT / "docker-compose.yml").read_text("utf-8"))
    return found[1] if found else ""


def _shown(name: str) -> str:
    """The default as a person would type it; empty if there is none."""
    match getattr(Settings(), name.lower()):
        case bool(value):
            return str(int(value))
        case float(seconds) if _reader(name) is values.time_of_day:
            return f"{seconds // 3600:02.0f}:{seconds % 3600 / 60:02.0f}"
        case int(value) | float(value):
            return f"{value:.12g}"
        case (int(count), float(span)):
            return f"{count}/{span:.12g}"
        case SecretStr() as secret:
            return secret.get_secret_value()
        case value:
            return str(value) if value else ""


def _reader(name: str) -> object:
    """The function that reads the text of a setting; None if any text will do."""
    field = Settings.model_fields[name.lower()]
    return next(_readers((*field.metadata, field.annotation)), None)


def _readers(parts: Iterable[Any]) -> Iterator[Callable[..., object]]:
    for part in parts:
        if hasattr(part, "func"):
            yield part.func
        yield from _readers((*getattr(part, "__metadata__", ()), *typing.get_args(part)))


def _value(name: str, language: Language) -> str:
    """What may be written there: a range with its unit, a choice, a kind; and an example."""
    told = about(name)
    unit = _in(language, told.unit) if told.unit else ""
    match _kind(name):
        case values.Whole(low, high) | values.Number(low, high):
            if high > 10**5:  # as good as any
                span = language.either(f"{low} 以上", f"{low} or more")
            else:
                span = language.either(f"{low} 到 {high}", f"{low} to {high}")
            shown = language.either(f"{span}（{unit}）", f"{span} {unit}") if unit else span
        case values.OneOf() as one:
            shown = language.either("、", ", ").join(f"`{choice}`" for choice in one.choices)
        case kind:
            assert isinstance(kind, Bilingual)
            shown = unit or _in(language, kind)
    if told.example:
        shown += language.either(f"，如 `{told.example}`", f", e.g. `{told.example}`")
    return shown


def _kind(name: str) -> object:
    if name in COMPOSE:
        if _of_compose(name).isdecimal():
            return NUMBER
        return TOKEN if name.endswith(("_TOKEN", "_PASSWORD")) else TEXT
    reader = _reader(name)
    if isinstance(reader, values.Whole | values.Number | values.OneOf):
        return reader
    return TEXT if reader is None else KINDS[reader]


# --- commands -----------------------------------------------------------------------------------------


OPTIONS = {
    Language.ENGLISH: "| option | default | what it does |",
    Language.CHINESE: "| 选项 | 默认值 | 作用 |",
}


def commands() -> Iterator[CommandHelp]:
    """Every command, those of a group after it, in the order of `--help`."""
    program = typer.main.get_command(app)
    assert isinstance(program, TyperGroup)
    yield describe("", program)
    for name, command in program.commands.items():
        yield describe(name, command)
        if isinstance(command, TyperGroup):
            yield from (describe(f"{name} {inner}", one) for inner, one in command.commands.items())


def commands_in(language: Language) -> str:
    """The sections of docs/cli.md, one for each command."""
    return "".join(_section(command, language) for command in commands())


def _section(command: CommandHelp, language: Language) -> str:
    hashes = "###" if " " in command.name else "##"
    title = command.name or language.either("frostagent 本身", "frostagent itself")
    parts = [
        f"\n{hashes} {title}\n\n{_in(language, command.help)}\n",
        f"\n```\n{' '.join(filter(None, ('.venv/bin/frostagent', _in(language, command.usage))))}\n```\n",
    ]
    if command.options:
        rows = [
            f"| `{option.shown}` | {_default_of(option, language)} | {_in(language, option.help)} |"
            for option in command.options
        ]
        parts.append("\n" + "\n".join([OPTIONS[language], "|---|---|---|", *rows]) + "\n")
    return "".join(parts)


def _default_of(option: OptionHelp, language: Language) -> str:
    word = _in(language, option.default)
    return word if option.default in {NONE, OFF, ASKS, REQUIRED} else f"`{word}`"


# --- all pages ----------------------------------------------------------------------------------------

PAGES: Mapping[str, Callable[[Language], str]] = {"settings.md": settings_in, "cli.md": commands_in}


def made(name: str, language: Language) -> str:
    """The whole text that a page should have."""
    by_hand, mark, _ = (ROOT / FOLDERS[language] / name).read_text("utf-8").partition(MARK)
    assert mark, f"{name} has no mark"
    return by_hand + mark + PAGES[name](language)


def main() -> None:
    """Write every page."""
    for name in PAGES:
        for language, folder in FOLDERS.items():
            (ROOT / folder / name).write_text(made(name, language), "utf-8")


if __name__ == "__main__":
    main()
