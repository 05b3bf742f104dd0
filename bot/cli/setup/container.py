"""`init`, which docker compose runs once before the bot, in the folder of which the OneBot server
mounts a part.

NapCat does not read its settings from the environment, and compose reads `.env` before anything
runs. So the tokens that `.env` lacks are made here and kept in `data/tokens.env`, where the bot
finds them, and the OneBot server's files are written with them, never over existing ones. That
server waits for the last of these files instead of depending on `init`, whose container is
recreated by each change of `.env`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never
from urllib.parse import urlsplit

from msgspec.structs import replace

from adapters.storage.url import read_url
from bot.cli.setup.answers import ACCOUNT, CONSOLE, ONEBOT, WEBUI
from bot.cli.setup.files import (
    NewFile,
    Server,
    account_in,
    fill_env,
    link_of,
    read_text,
    tokens_for,
    webui_token,
    write_files,
    write_llbot,
    write_onebot,
    write_webui,
)
from bot.core.language import CATALOGUE, Phrase
from config import sources, values
from config.checks import PLACEHOLDER
from config.loading import load_settings
from config.settings import KNOWN, Settings
from config.sources import MADE
from frostagent.types.errors import ConfigError, Problem

NAPCAT = Path("napcat", "config")
LLBOT = Path("llbot")
LLBOT_ACCOUNT = "LLBOT_ACCOUNT"
LLBOT_WEBUI = "LLBOT_WEBUI_TOKEN"
LLBOT_AUTH = "LLBOT_AUTH_TOKEN"

NAME = "account"
"""The file next to a server's settings with the account it logs in, read at each of its starts. If
this were an environment variable, a change would recreate the server's container.
"""

PROFILES = "COMPOSE_PROFILES"
CLUSTER_PASSWORD = "CLUSTER_PASSWORD"  # noqa: S105  # a name
REPLICAS = "FROSTAGENT_REPLICAS"
NAPCAT_REPLICAS = "NAPCAT_REPLICAS"

HEAD = (
    "# Made by `init` because .env leaves them out. What .env says wins; keep this file with your "
    "backups.\n"
)


NOT_AN_OWNER = Phrase("不是两个数字", "is not two numbers")
AS_AN_OWNER = Phrase("写成 1000:1000", "Write it as 1000:1000")
NO_SUCH_SERVER = Phrase("没有 {name} 这种服务", "{name} is not a known server")
SERVERS = Phrase("写 napcat 或 llbot", "Write napcat or llbot")
MADE_TOKEN = Phrase(
    "{name}：.env 里没写，已经生成，存在 {file}",
    "{name}: not set in .env, so it was made; see {file}",
)
WRITTEN = Phrase("{file}：已写入", "{file}: written")
OTHER_PASSWORD = Phrase(
    "{file}：里面的密码和 {name} 不同，以文件里的为准",
    "{file}: has another password than {name}; the one in the file counts",
)
NOT_ONE_NUMBER = Phrase("不是一个 QQ 号", "is not one QQ number")
SET_LLBOT = Phrase("在 .env 里写机器人的 QQ 号", "Set the QQ number of the bot's account in .env")
NOT_GIVEN = Phrase("不能交给机器人（{why}）", "cannot be given to the bot ({why})")
WHO_WRITES = Phrase("看看谁能写这个目录", "Check who may write in this folder")
PLACEHOLDER_LEFT = Phrase("还是示例里的文字", "still has the text of an example")
OWN_OR_EMPTY = Phrase(
    "换成你自己的，或者留空：会自动生成", "Write your own, or leave it empty to have one made"
)
NO_SUCH_VARIABLE = Phrase("设置了，但没有这个变量", "is set, but there is no such variable")
NOT_ZERO_IN_CLUSTER = Phrase(
    "不是 0，而 {profiles} 里有 cluster：旁边会多运行一个机器人",
    "is not 0, although {profiles} has cluster: another bot would run beside it",
)
WRITE_ZERO = Phrase("在 .env 里写 {name}=0", "Write {name}=0 into .env")
NOT_SET = Phrase("没有设置", "is not set")
MAKE_PASSWORD = Phrase("用 openssl rand -hex 16 生成一个", "Make one with: openssl rand -hex 16")
ZERO_ALONE = Phrase(
    "是 0，而 {profiles} 里没有 cluster：不会有机器人运行",
    "is 0, although {profiles} has no cluster: no bot would run",
)
REMOVE_ZERO = Phrase(
    "删掉它，或者在 {profiles} 里加上 cluster（docs/zh/cluster.md）",
    "Remove it, or add cluster to {profiles} (docs/cluster.md)",
)
NOT_ZERO_WITH_LLBOT = Phrase(
    "不是 0，而 {profiles} 里有 llbot：NapCat 会和 LLBot 同时运行",
    "is not 0, although {profiles} has llbot: NapCat would run beside LLBot",
)
OTHER_TOKEN = Phrase("连 {url} 的令牌和 .env 不同", "has another token for {url} than .env")
SAME_TOKEN = Phrase(
    "把文件里的令牌写进 .env 的 {name}，或者删掉文件，会重新生成",
    "Put its token into .env as {name}, or delete the file to have it made again",
)
NO_LISTENER = Phrase(
    "没有在 {url} 监听的 WebSocket 服务，而 ONEBOT_MODE=forward 要连它",
    "has no websocket server at {url}, which ONEBOT_MODE=forward dials",
)
SWITCH_ON = Phrase(
    "在那里启用一个，令牌用 .env 里的；或者删掉文件，会重新生成",
    "Enable one there with the token from .env, or delete the file to have it made again",
)
MODEL_OUTSIDE = Phrase(
    "从容器里连本机的模型服务，地址是 http://host.docker.internal:端口/v1",
    "From a container, a model on this computer is http://host.docker.internal:PORT/v1",
)
SERVER_OUTSIDE = Phrase(
    "从容器里连 OneBot 服务，地址是 ws://{server}:3001",
    "From a container, the OneBot server is ws://{server}:3001",
)
OWN_CONTAINER = Phrase("指向机器人自己的容器", "points to the bot's own container")
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class FileOwner:
    """The user and group of the bot inside its container."""

    uid: int
    gid: int


def read_owner(text: str) -> FileOwner | None:
    """`uid:gid`; None for nothing. Raises ConfigError."""
    if not text:
        return None
    match [int(part) for part in text.split(":") if part.isascii() and part.isdigit()]:
        case [uid, gid]:
            return FileOwner(uid, gid)
        case _:
            raise ConfigError(Problem("--owner", NOT_AN_OWNER.fill(), AS_AN_OWNER.fill()))


def read_server(text: str, environ: Mapping[str, str]) -> Server:
    """The OneBot server of this name; if empty, that of the profiles. Raises ConfigError."""
    match text:
        case "":
            return "llbot" if "llbot" in _profiles(environ) else "napcat"
        case "napcat" | "llbot":
            return text
        case _:
            raise ConfigError(Problem("--server", NO_SUCH_SERVER.fill(name=text), SERVERS.fill()))


def passed_on(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with the lines of `.env`, which no container sees. The environment wins.
    Raises ConfigError.
    """
    lines = {
        line.name: sources.meant(line.value, of_file=True)
        for line in sources.read_env_file(folder / ".env")
    }
    return lines | {name: sources.meant(text) for name, text in environ.items() if text.strip()}


def prepare(
    *,
    folder: Path,
    environ: Mapping[str, str],
    server: Server,
    make_token: Callable[[], str],
    tell: Callable[[str], None],
    owner: FileOwner | None = None,
) -> Settings:
    """Make what is missing; returns the settings the bot will have. `owner` becomes the owner of
    everything in `data`.

    Raises ConfigError with every problem, before anything is written.
    """
    given = {name: text for name in _tokens_of(server) if (text := environ.get(name, "").strip())}
    made = _make_tokens(folder, given, server, make_token)
    settings = _check(folder, {**environ, **made}, server, given)
    files = list(_files_of(folder, environ, server, settings, {**made, **given}))
    new = [file for file in files if _is_to_be_written(file)]
    write_files([NewFile(folder / MADE, fill_env(HEAD, made)), *new])
    _hand_over(folder / MADE.parent, owner)
    for name in made:
        tell(MADE_TOKEN.fill(name=name, file=MADE))
    for file in files:
        path = file.path.relative_to(folder)
        if file in new:
            tell(WRITTEN.fill(file=path))
        elif file.path.name.startswith("webui") and webui_token(
            read_text(file.path) or ""
        ) != webui_token(file.text):
            tell(OTHER_PASSWORD.fill(file=path, name=_tokens_of(server)[1]))
    return settings


def _is_to_be_written(file: NewFile) -> bool:
    old = read_text(file.path)
    return old is None or (file.path.name == NAME and old != file.text)


# --- tokens ---------------------------------------------------------------------------------------


def _tokens_of(server: Server) -> tuple[str, ...]:
    match server:
        case "napcat":
            return (ONEBOT, WEBUI, CONSOLE)
        case "llbot":
            return (ONEBOT, LLBOT_WEBUI, CONSOLE)
        case _:
            assert_never(server)


def _make_tokens(
    folder: Path, given: Mapping[str, str], server: Server, make_token: Callable[[], str]
) -> dict[str, str]:
    """The tokens that `.env` lacks: those made earlier (also the other server's), and new ones for
    the rest.
    """
    before = {
        line.name: line.value
        for line in sources.read_env_file(folder / MADE)
        if line.name not in given
    }
    return {**{name: make_token() for name in _tokens_of(server) if name not in given}, **before}


# --- files ----------------------------------------------------------------------------------------


def _files_of(
    folder: Path,
    environ: Mapping[str, str],
    server: Server,
    settings: Settings,
    tokens: Mapping[str, str],
) -> Iterator[NewFile]:
    """The files that the OneBot server reads at its start; it waits for the last one."""
    match server:
        case "napcat":
            account = account_in(environ.get(ACCOUNT, ""))
            yield NewFile(folder / NAPCAT / "webui.json", write_webui(token=tokens[WEBUI]))
            yield NewFile(folder / NAPCAT / NAME, f"{account or ''}\n")
            yield NewFile(
                folder / NAPCAT / "onebot11.json",
                write_onebot(link_of(settings, account=account)),
            )
        case "llbot":
            account = _llbot_account(environ)
            yield NewFile(folder / LLBOT / "webui_token.txt", tokens[LLBOT_WEBUI] + "\n")
            if auth := environ.get(LLBOT_AUTH, "").strip():
                yield NewFile(folder / LLBOT / "auth_token.txt", auth + "\n")
            yield NewFile(folder / LLBOT / NAME, f"{account}\n")
            link = link_of(settings, account=account)
            yield NewFile(folder / LLBOT / f"config_{account}.json", write_llbot(link))
        case _:
            assert_never(server)


def _llbot_account(environ: Mapping[str, str]) -> int:
    """LLBot's settings are named after the account, so it must be known before the first login."""
    try:
        numbers = values.qq_numbers(environ.get(LLBOT_ACCOUNT, ""))
    except values.Wrong as wrong:
        raise ConfigError(Problem(LLBOT_ACCOUNT, wrong.what, wrong.fix)) from None
    if len(numbers) != 1:
        raise ConfigError(Problem(LLBOT_ACCOUNT, NOT_ONE_NUMBER.fill(), SET_LLBOT.fill()))
    return next(iter(numbers))


def _hand_over(folder: Path, owner: FileOwner | None) -> None:
    """Make the bot the owner of its folder: docker creates a missing one as root."""
    try:
        (folder / "media").mkdir(parents=True, exist_ok=True)
        if owner is not None:
            for path in (folder, *folder.rglob("*")):
                _give(path, owner)
    except OSError as error:
        what = NOT_GIVEN.fill(why=values.why_of(error))
        raise ConfigError(Problem(str(folder), what, WHO_WRITES.fill())) from None


def _give(path: Path, owner: FileOwner) -> None:
    if sys.platform == "win32":  # files have no such owners there
        return
    # The bot may be running, and removing what it no longer needs.
    with suppress(FileNotFoundError):
        status = path.lstat()
        if (status.st_uid, status.st_gid) != (owner.uid, owner.gid):
            os.chown(path, owner.uid, owner.gid, follow_symlinks=False)


# --- what cannot work -----------------------------------------------------------------------------


def _check(
    folder: Path, environ: Mapping[str, str], server: Server, given: Mapping[str, str]
) -> Settings:
    """The settings of this environment. Raises ConfigError with every problem."""
    problems = [
        Problem(name, PLACEHOLDER_LEFT.fill(), OWN_OR_EMPTY.fill())
        for name, text in given.items()
        if name != ONEBOT and PLACEHOLDER.fullmatch(text)
    ]
    # Only .env and the compose file set anything here: an unknown name is misspelt.
    strangers = sources.strange_in_environment(environ, KNOWN)
    problems += [replace(stranger, what=NO_SUCH_VARIABLE.fill()) for stranger in strangers]
    try:
        settings, _ = load_settings(environ=environ, env_file=None)
    except ConfigError as error:
        told = {problem.name for problem in problems}
        raise ConfigError(
            *(one for one in error.problems if one.name not in told), *problems
        ) from None
    problems += [
        *_of_profiles(environ),
        *_stale(folder, server, settings),
        *_loopback(server, settings),
        *_driver(settings),
    ]
    if problems:
        raise ConfigError(*problems)
    return settings


def _profiles(environ: Mapping[str, str]) -> set[str]:
    return {word.strip() for word in environ.get(PROFILES, "").split(",")}


def _of_profiles(environ: Mapping[str, str]) -> Iterator[Problem]:
    """Profiles of docker-compose.yml without the settings that they need in `.env`."""
    profiles = _profiles(environ)
    is_alone = environ.get(REPLICAS, "1") != "0"
    if "cluster" in profiles and is_alone:
        what = NOT_ZERO_IN_CLUSTER.fill(profiles=PROFILES)
        yield Problem(REPLICAS, what, WRITE_ZERO.fill(name=REPLICAS))
    if "cluster" in profiles and not environ.get(CLUSTER_PASSWORD, "").strip():
        yield Problem(CLUSTER_PASSWORD, NOT_SET.fill(), MAKE_PASSWORD.fill())
    if "cluster" not in profiles and not is_alone:
        what = ZERO_ALONE.fill(profiles=PROFILES)
        yield Problem(REPLICAS, what, REMOVE_ZERO.fill(profiles=PROFILES))
    if "llbot" in profiles and environ.get(NAPCAT_REPLICAS, "1") != "0":
        what = NOT_ZERO_WITH_LLBOT.fill(profiles=PROFILES)
        yield Problem(NAPCAT_REPLICAS, what, WRITE_ZERO.fill(name=NAPCAT_REPLICAS))


def _stale(folder: Path, server: Server, settings: Settings) -> Iterator[Problem]:
    """Existing files with which the server and the bot would never connect, without any error."""
    link = link_of(settings)
    # A server on another host reads none of these files.
    dialled = link.mode == "forward" and link.place[0] == server
    pattern = NAPCAT / "onebot11*.json" if server == "napcat" else LLBOT / "config_*.json"
    for path in sorted(folder.glob(str(pattern))):
        name, tokens = str(path.relative_to(folder)), tokens_for(read_text(path) or "", link)
        if tokens - link.accepted and (dialled or link.mode == "reverse"):
            yield Problem(name, OTHER_TOKEN.fill(url=link.url), SAME_TOKEN.fill(name=ONEBOT))
        elif dialled and not tokens:
            yield Problem(name, NO_LISTENER.fill(url=link.url), SWITCH_ON.fill())


def _driver(settings: Settings) -> Iterable[Problem]:
    """A database whose driver is not in this image, so that the bot would not start."""
    try:
        read_url(settings.store_url.get_secret_value())
    except ConfigError as error:
        return error.problems
    return ()


def _loopback(server: Server, settings: Settings) -> Iterable[Problem]:
    """Addresses that point back into the container."""
    model = MODEL_OUTSIDE.fill()
    addresses = [
        ("LLM_BASE_URL", settings.llm_base_url, model),
        ("CODER_BASE_URL", settings.coder_base_url, model),
    ]
    if settings.onebot_mode == "forward":
        addresses.append(
            (
                "ONEBOT_URL",
                settings.onebot_url,
                SERVER_OUTSIDE.fill(server=server),
            )
        )
    for name, url, fix in addresses:
        if url and values.is_loopback(urlsplit(url).hostname or ""):
            yield Problem(name, OWN_CONTAINER.fill(), fix)
