"""The commands that reach the running bot over its control socket: reload, stop, status, console;
and forgetting, where one runs.
"""

from __future__ import annotations

import json
from base64 import b32encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Option

from adapters.control.client import NoAnswer, NotRunning, ask_bot
from bot.cli.process import GRACE, described, exit_with, fail, find_store_url, say, tell
from bot.core.language import CATALOGUE, Bilingual, Phrase
from frostagent.types.errors import ConfigError

if TYPE_CHECKING:
    from adapters.control.client import Answered

ENDED_WITHIN = GRACE + 20.0  # seconds; a journal that hangs is waited for, too

FORGOTTEN_WITHIN = 120.0  # seconds; a large journal is looked through

MAIN_OF_A_CONTAINER = 1  # anywhere else the process of this number is the system's own

TOTP_BYTES = 20  # as authenticator apps expect it

AsJson = Annotated[bool, Option("--json", help=Bilingual("Print JSON.", "输出 JSON。"))]

NewTotp = Annotated[
    bool,
    Option(
        "--totp",
        help=Bilingual(
            "Print a new CONSOLE_TOTP for an authenticator app instead.",
            "改为显示一个新的 CONSOLE_TOTP，给验证器用。",
        ),
    ),
]

STOPPING: Final = Phrase(
    "机器人（pid {pid}）正在结束手头的事……", "The bot (pid {pid}) ends what it is doing ..."
)
RESTARTED_BY_DOCKER: Final = Phrase(
    "Docker 会重新启动它。要一直停着：docker compose stop bot",
    "Docker starts it again. A stop that lasts: docker compose stop bot",
)
STILL_THERE: Final = Phrase(
    "{seconds} 秒后还没有结束；它在等什么，日志里有。",
    "It has not ended after {seconds} s; its log says what it waits for.",
)
STOPPED: Final = Phrase("已经停了。", "It has stopped.")
REFUSED: Final = Phrase("机器人说：{said}", "The bot says: {said}")
NOT_RUNNING: Final = Phrase(
    "这里没有机器人在运行{holder}（{path} 没有人应答）。",
    "No bot runs here{holder} (nobody listens at {path}).",
)
NOT_ANSWERING: Final = Phrase(
    "机器人没有回答{holder}：{why}。", "The bot does not answer{holder}: {why}."
)
HELD: Final = Phrase(
    "，但有进程{holder} 占着数据库：它正在启动、正在退出，或者在别处运行",
    ", but a process{holder} has the journal: it starts, ends, or runs elsewhere",
)
REMEMBERED_ELSEWHERE: Final = Phrase(
    "这里没有机器人应答{holder}。在它重启之前，有些内容还在它的内存里：请在它运行的地方执行这条命令。",
    "No bot answers here{holder}. It has some of it in memory until a restart: give this"
    " command where it runs.",
)
REMEMBERED: Final = Phrase(
    "机器人没有回答：{why}。在它重启之前，有些内容还在它的内存里：请再执行一次这条命令。",
    "The bot does not answer: {why}. It has some of it in memory until a restart: give this"
    " command once more.",
)
CATALOGUE.register(__name__, globals())


@described(
    "Let the running bot read its files (persona, games, subagents) and its journal again, as "
    "SIGHUP does.",
    "让正在运行的机器人重新读取文件（人设、游戏、子代理）和数据库，等同 SIGHUP。",
)
def reload() -> None:
    with answer_to("reload") as answered:
        for line in answered.answer["told"]:
            tell(line)
        raise SystemExit(not answered.answer["ok"])


@described(
    "Let the running bot finish its current work and stop. Docker or systemd may start it again.",
    "让正在运行的机器人做完手头的事后停止。Docker 或 systemd 可能会再把它启动。",
)
def stop() -> None:
    with answer_to("stop") as answered:
        pid = answered.answer["pid"]
        say(STOPPING, pid=pid)
        if pid == MAIN_OF_A_CONTAINER:
            say(RESTARTED_BY_DOCKER)
        if not answered.wait_for_end(ENDED_WITHIN):
            fail(STILL_THERE, seconds=f"{ENDED_WITHIN:g}")
        say(STOPPED)


@described(
    "Show how the running bot is; exit code 1 if none runs.",
    "查看正在运行的机器人的状态；没有在运行时退出码为 1。",
)
def status(*, as_json: AsJson = False) -> None:
    with answer_to("status") as answered:
        print(
            json.dumps(answered.answer, ensure_ascii=False)
            if as_json
            else status_to_text(answered.answer)
        )


@described(
    "Print a link to the console that works once, within five minutes. If only a chat runs here, "
    "the link opens its simulated group.",
    "显示打开控制台的链接，五分钟内有效，只能用一次；这里只有终端聊天时，打开的是它的模拟群。",
)
def console(*, totp: NewTotp = False) -> None:
    if totp:
        secret = b32encode(token_bytes(TOTP_BYTES)).decode()
        print(f"CONSOLE_TOTP={secret}")
        print(f"otpauth://totp/FrostAgent:console?secret={secret}&issuer=FrostAgent")
        return
    with answer_to("console", or_chat=True) as answered:
        print(answered.answer["link"])


@contextmanager
def answer_to(command: str, *, or_chat: bool = False) -> Iterator[Answered]:
    """Ask the bot of this folder, or the chat if there is one and the bot cannot do it; if neither
    answers, say so and end the process.
    """
    store_url = find_store_url()
    path = _socket_of(store_url)
    answered: Answered | None = None
    trouble: Bilingual | None
    with ExitStack() as stack:
        try:
            answered = stack.enter_context(ask_bot(path, command))
            trouble = _error_in(answered)
        except NotRunning:
            trouble = NOT_RUNNING.fill(holder=_holder(store_url), path=path)
        except NoAnswer as error:
            trouble = NOT_ANSWERING.fill(holder=_holder(store_url), why=error)
        if trouble and or_chat:
            with suppress(NotRunning, NoAnswer):
                answered = stack.enter_context(ask_bot(_chat_socket_of(store_url), command))
                trouble = _error_in(answered)
        if trouble:
            fail(trouble)
        assert answered is not None  # noqa: S101  # else there is a trouble
        yield answered


def _error_in(answered: Answered) -> Bilingual | None:
    said = answered.answer.get("error", "")
    return REFUSED.fill(said=said) if said else None


def forget_running(store_url: str, **whom: int) -> tuple[int | None, Bilingual | None]:
    """Let the bot that runs here forget a `user` or a `group`: how many rows went, None if it did
    nothing; and a line if a bot may still have some of it in memory. Ends the process if a bot says
    that it cannot.
    """
    try:
        seconds, path = FORGOTTEN_WITHIN, _socket_of(store_url)
        with ask_bot(path, "forget", seconds=seconds, **whom) as answered:
            if trouble := _error_in(answered):
                fail(trouble)
            return answered.answer["rows"], None
    except NotRunning:
        holder = _holder(store_url)
        return None, REMEMBERED_ELSEWHERE.fill(holder=holder) if holder else None
    except NoAnswer as error:
        return None, REMEMBERED.fill(why=error)


def _socket_of(store_url: str) -> Path:
    """Where the bot of this folder listens; a bad STORE_URL ends the process."""
    from bot.cli.control import socket_of

    try:
        return socket_of(store_url)
    except ConfigError as error:
        exit_with(error)


def _chat_socket_of(store_url: str) -> Path:
    from bot.cli.control import chat_socket_of

    return chat_socket_of(store_url)


def _holder(store_url: str) -> str:
    """Which process has the journal, though it cannot be asked."""
    from adapters.storage.database import Database

    try:
        database = Database(store_url, migrate=lambda _: None)
        holder = database.holder()
        database.close()
    except Exception:  # noqa: BLE001  # a database that is away: then nobody knows
        return ""
    return "" if holder is None else HELD.fill(holder=holder)


# --- the status as text ---------------------------------------------------------------------------


MINUTE, HOUR, DAY = 60, 3600, 86_400


def status_to_text(status: Mapping[str, Any]) -> str:
    """The status as people read it, on one screen; of a cluster, of all its parts."""
    if "events" in status and "lanes" not in status:
        return _with_cluster(_gateway_rows(status), status)
    journal, lanes = status["journal"], status["lanes"]
    trouble, state = "written", "running"
    if journal["in_trouble"]:
        trouble = f"CANNOT BE WRITTEN, {journal['waiting']} entries wait in memory"
    if status["stopping"]:
        state = "stopping"
    if status["standing_by"]:
        trouble, state = "other workers write it", "standing by: its log says why"
    rows = {
        **_first_rows(status, state),
        "at work": f"{lanes['active']} conversations, {lanes['waiting']} questions wait",
        "journal": f"{journal['place']}: {trouble}",
        "model": ", then ".join([status["model"], *status["fallbacks"]]),
        "stalls": f"{status['stalls']} of over a second",
    }
    return _with_cluster(rows, status)


def _first_rows(status: Mapping[str, Any], state: str) -> dict[str, Any]:
    states = {True: "online", False: "OFFLINE: log it in again"}
    accounts = [
        f"{row['account']} {states[bool(row['online'])]} {row['server']}".rstrip()
        for row in status["accounts"]
    ]
    return {
        "version": status["version"],
        "state": state,
        "pid": status["pid"],
        "since": f"{status['since'].replace('T', ' ')} ({_for_people(status['seconds'])})",
        "OneBot": status["onebot"],
        "accounts": ", ".join(accounts) or "none is connected",
    }


def _gateway_rows(status: Mapping[str, Any]) -> dict[str, Any]:
    events = status["events"]
    waiting = (
        f"{events['published']} published, {events['waiting']} wait, {events['lost']} are lost"
    )
    return {**_first_rows(status, "gateway"), "events": waiting}


def _with_cluster(rows: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    text = "\n".join(f"{name:<9} {value}" for name, value in rows.items())
    if "cluster" not in status:
        return text
    return f"{text}\n\n{cluster_to_text(status['cluster'])}"


def _for_people(seconds: float) -> str:
    whole = int(seconds)
    if whole < HOUR:
        return f"{whole // MINUTE} min" if whole >= MINUTE else f"{whole} s"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


def cluster_to_text(cluster: Mapping[str, Any]) -> str:
    """The state of a cluster for people: a line for each part, and what is wrong with the rest."""
    if "error" in cluster:
        return f"cluster   cannot be asked: {cluster['error']}"
    waiting = sum(one["waiting"] for one in cluster["partitions"])
    rows = [
        ("broker", f"{cluster['broker']}: {waiting} events wait, {_aside(cluster['set_aside'])}")
    ]
    rows += [("queue", line) for line in _queues(cluster["partitions"])]
    rows += [("worker", f"{_who(one)}: {_worker(one)}") for one in cluster["workers"]]
    rows += [("gateway", f"{_who(one)}: {_gateway(one)}") for one in cluster["gateways"]]
    rows += [("silent", f"{name}: {why}") for name, why in cluster["silent"].items()]
    return "\n".join(f"{name:<9} {value}" for name, value in rows)


def _aside(number: int) -> str:
    return f"{number} set aside in frost.dead" if number else "none is set aside"


def _queues(partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each partition that has a problem."""
    lines = []
    for number, one in enumerate(partitions):
        nobody = "" if one["worked"] else ", no worker has it"
        if one["waiting"] or nobody:
            lines.append(f"partition {number}: {one['waiting']} events wait{nobody}")
    return lines


def _who(part: Mapping[str, Any]) -> str:
    return f"{part['host']} {part['pid']}, {part['version']}"


def _worker(part: Mapping[str, Any]) -> str:
    if part["standing_by"]:
        return "stands by"
    numbers, lanes = ", ".join(map(str, part["partitions"])), part["lanes"]
    trouble = ", the journal CANNOT BE WRITTEN" if part["journal"]["in_trouble"] else ""
    return (
        f"partitions {numbers}; {_accounts(part)}; {lanes['active']} conversations at work,"
        f" {lanes['waiting']} questions wait{trouble}{', stopping' if part['stopping'] else ''}"
    )


def _gateway(part: Mapping[str, Any]) -> str:
    events = part["events"]
    away = "" if events["broker"] else ", the BROKER IS AWAY"
    return f"{_accounts(part)}; {events['waiting']} events wait, {events['lost']} lost{away}"


def _accounts(part: Mapping[str, Any]) -> str:
    told = [f"{one['account']}{'' if one['online'] else ' OFFLINE'}" for one in part["accounts"]]
    return ", ".join(told) or "no account"
