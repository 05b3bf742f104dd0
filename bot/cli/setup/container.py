"""`init`, which docker compose runs once before the bot, in the folder that the OneBot server has a
part of mounted.

NapCat's settings know no environment, and what compose passes on was read before anything ran; so
the tokens that `.env` leaves out are made here and kept in `data/tokens.env`, where the bot finds
them, and the OneBot server's files are written with them, never over old ones. That server waits
for the last of them instead of depending on `init`, which each change of `.env` makes anew.
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
from bot.core.language import Bilingual
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
"""The file beside a server's settings that says which account it logs in, read at each of its
starts. In an environment variable a change would throw the server's container away.
"""

PROFILES = "COMPOSE_PROFILES"
CLUSTER_PASSWORD = "CLUSTER_PASSWORD"  # noqa: S105  # a name
REPLICAS = "FROSTAGENT_REPLICAS"
NAPCAT_REPLICAS = "NAPCAT_REPLICAS"

HEAD = (
    "# Made by `init` because .env leaves them out. What .env says wins; keep this file with your "
    "backups.\n"
)


@dataclass(frozen=True, slots=True)
class FileOwner:
    """The account the bot runs as inside its container."""

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
            raise ConfigError(Problem("--owner", "is not two numbers", "Write it as 1000:1000"))


def read_server(text: str, environ: Mapping[str, str]) -> Server:
    """The OneBot server of this name; for no name, that of the profiles. Raises ConfigError."""
    match text:
        case "":
            return "llbot" if "llbot" in _profiles(environ) else "napcat"
        case "napcat" | "llbot":
            return text
        case _:
            raise ConfigError(Problem("--server", f"{text} is not known", "Write napcat or llbot"))


def passed_on(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with what compose would add: the lines of `.env`, which no container sees.

    The environment wins. Raises ConfigError.
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
    """Make what is missing; the settings the bot will find. `owner` is given everything in `data`.

    Raises ConfigError with every problem there is, before anything is written.
    """
    given = {name: text for name in _tokens_of(server) if (text := environ.get(name, "").strip())}
    made = _make_tokens(folder, given, server, make_token)
    settings = _check(folder, {**environ, **made}, server, given)
    files = list(_files_of(folder, environ, server, settings, {**made, **given}))
    new = [file for file in files if _is_to_be_written(file)]
    write_files([NewFile(folder / MADE, fill_env(HEAD, made)), *new])
    _hand_over(folder / MADE.parent, owner)
    for name in made:
        tell(f"{name}: .env leaves it out; it stands in {MADE}")
    for file in files:
        path = file.path.relative_to(folder)
        if file in new:
            tell(f"{path}: written")
        elif file.path.name.startswith("webui") and webui_token(
            read_text(file.path) or ""
        ) != webui_token(file.text):
            tell(
                f"{path}: has another password than {_tokens_of(server)[1]}, and that of the file "
                "counts"
            )
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
    """The tokens that `.env` leaves out: those made before (the other server's too), and new ones
    for the rest.
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
    """The files that the OneBot server reads at its start; it waits for the last of them."""
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
        raise ConfigError(Problem(LLBOT_ACCOUNT, wrong.what, wrong.mend)) from None
    if len(numbers) != 1:
        mend = "Set the QQ number of the bot's account in .env"
        raise ConfigError(Problem(LLBOT_ACCOUNT, "is not one QQ number", mend))
    return next(iter(numbers))


def _hand_over(folder: Path, owner: FileOwner | None) -> None:
    """Give the bot its folder: docker makes a missing one for root."""
    try:
        (folder / "media").mkdir(parents=True, exist_ok=True)
        if owner is not None:
            for path in (folder, *folder.rglob("*")):
                _give(path, owner)
    except OSError as error:
        what = f"cannot be given to the bot ({error.strerror})"
        raise ConfigError(Problem(str(folder), what, "See who may write in it")) from None


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
    """The settings of this environment, if nothing at all is wrong."""
    problems = [
        Problem(
            name,
            Bilingual("still has the text of an example", "还是示例里的文字"),
            Bilingual(
                "Put your own in its place, or nothing: then one is made",
                "换成你自己的，或者留空：会自动生成",
            ),
        )
        for name, text in given.items()
        if name != ONEBOT and PLACEHOLDER.fullmatch(text)
    ]
    # Nobody but .env and the compose file sets anything here: a name that we do not know is
    # misspelt.
    strangers = sources.strange_in_environment(environ, KNOWN)
    problems += [
        replace(stranger, what="is set, but there is no such variable") for stranger in strangers
    ]
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
    """Profiles of docker-compose.yml without the lines of `.env` that belong to them."""
    profiles = _profiles(environ)
    is_alone = environ.get(REPLICAS, "1") != "0"
    if "cluster" in profiles and is_alone:
        what = f"is not 0, though {PROFILES} has cluster: a bot of its own would run beside it"
        yield Problem(REPLICAS, what, f"Write {REPLICAS}=0 into .env")
    if "cluster" in profiles and not environ.get(CLUSTER_PASSWORD, "").strip():
        what = Bilingual("is not set", "没有设置")
        yield Problem(
            CLUSTER_PASSWORD,
            what,
            Bilingual("Make one with: openssl rand -hex 16", "用 openssl rand -hex 16 生成一个"),
        )
    if "cluster" not in profiles and not is_alone:
        what = f"is 0, though {PROFILES} has no cluster: no bot would run"
        yield Problem(REPLICAS, what, f"Remove it, or add cluster to {PROFILES} (docs/cluster.md)")
    if "llbot" in profiles and environ.get(NAPCAT_REPLICAS, "1") != "0":
        what = f"is not 0, though {PROFILES} has llbot: NapCat would run beside LLBot"
        yield Problem(NAPCAT_REPLICAS, what, f"Write {NAPCAT_REPLICAS}=0 into .env")


def _stale(folder: Path, server: Server, settings: Settings) -> Iterator[Problem]:
    """The old files with which their server and the bot would never find together, without saying
    why.
    """
    link = link_of(settings)
    # A server elsewhere reads none of these files.
    dialled = link.mode == "forward" and link.place[0] == server
    pattern = NAPCAT / "onebot11*.json" if server == "napcat" else LLBOT / "config_*.json"
    for path in sorted(folder.glob(str(pattern))):
        name, tokens = str(path.relative_to(folder)), tokens_for(read_text(path) or "", link)
        if tokens - link.accepted and (dialled or link.mode == "reverse"):
            mend = (
                f"Put the token of this file into .env as {ONEBOT}, or remove the file to have it "
                "made anew"
            )
            yield Problem(name, f"has another token for {link.url} than .env", mend)
        elif dialled and not tokens:
            mend = (
                "Switch one on there, with the token of .env, or remove the file to have it made "
                "anew"
            )
            yield Problem(
                name,
                f"has no websocket server at {link.url}, which ONEBOT_MODE=forward dials",
                mend,
            )


def _driver(settings: Settings) -> Iterable[Problem]:
    """A database whose driver is not in this image: the bot would not start either."""
    try:
        read_url(settings.store_url.get_secret_value())
    except ConfigError as error:
        return error.problems
    return ()


def _loopback(server: Server, settings: Settings) -> Iterable[Problem]:
    """Addresses that lead back into the container."""
    model = "A model server on the same computer is http://host.docker.internal:PORT/v1 from here"
    addresses = [
        ("LLM_BASE_URL", settings.llm_base_url, model),
        ("CODER_BASE_URL", settings.coder_base_url, model),
    ]
    if settings.onebot_mode == "forward":
        addresses.append(
            (
                "ONEBOT_URL",
                settings.onebot_url,
                f"From here the OneBot server is ws://{server}:3001",
            )
        )
    for name, url, mend in addresses:
        if url and values.is_loopback(urlsplit(url).hostname or ""):
            yield Problem(name, "leads into the bot's own container", mend)
