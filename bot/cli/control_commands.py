"""The commands that reach a running bot over its control socket: reload, stop, status and console;
and `forget` if a bot is running.
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
from bot.cli.layout import joined, pad
from bot.cli.process import GRACE, described, exit_with, fail, find_store_url, say, show, tell
from bot.core.language import CATALOGUE, Bilingual, Phrase
from frostagent.types.errors import ConfigError

if TYPE_CHECKING:
    from adapters.control.client import Answered

ENDED_WITHIN = GRACE + 20.0  # seconds, including a journal that hangs

FORGOTTEN_WITHIN = 120.0  # seconds, for a large journal

MAIN_OF_A_CONTAINER = 1  # outside a container, process 1 is the system's

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
    "机器人（pid {pid}）正在结束手头的事……", "The bot (pid {pid}) is finishing its work ..."
)
RESTARTED_BY_DOCKER: Final = Phrase(
    "Docker 会重新启动它。要一直停着：docker compose stop bot",
    "Docker will start it again. To stop it for good: docker compose stop bot",
)
STILL_THERE: Final = Phrase(
    "{seconds} 秒后还没有结束；它在等什么，日志里有。",
    "It has not stopped after {seconds} s; its log says what it is waiting for.",
)
STOPPED: Final = Phrase("已经停了。", "It has stopped.")
REFUSED: Final = Phrase("机器人说：{said}", "The bot says: {said}")
NOT_RUNNING: Final = Phrase(
    "这里没有机器人在运行{holder}（{path} 没有人应答）。",
    "No bot is running here{holder} (no process listens at {path}).",
)
NOT_ANSWERING: Final = Phrase(
    "机器人没有回答{holder}：{why}。", "The bot does not answer{holder}: {why}."
)
HELD: Final = Phrase(
    "，但有进程{holder} 占着数据库：它正在启动、正在退出，或者在别处运行",
    ", but a process{holder} has the journal open: it is starting, stopping, or running elsewhere",
)
REMEMBERED_ELSEWHERE: Final = Phrase(
    "这里没有机器人应答{holder}。在它重启之前，有些内容还在它的内存里：请在它运行的地方执行这条命令。",
    "No bot answers here{holder}. It keeps some of this in memory until it restarts: run this"
    " command where it runs.",
)
REMEMBERED: Final = Phrase(
    "机器人没有回答：{why}。在它重启之前，有些内容还在它的内存里：请再执行一次这条命令。",
    "The bot does not answer: {why}. It keeps some of this in memory until it restarts: run this"
    " command again.",
)


@described(
    "Make the running bot read its files (persona, games, subagents) and its journal again,"
    " as SIGHUP does.",
    "让正在运行的机器人重新读取文件（人设、游戏、子代理）和数据库，等同 SIGHUP。",
)
def reload() -> None:
    with answer_to("reload") as answered:
        for line in answered.answer["told"]:
            tell(line)
        raise SystemExit(not answered.answer["ok"])


@described(
    "Make the running bot finish its current work and stop. Docker or systemd may start it again.",
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
    "Show the status of the running bot. Exit code 1 if none is running.",
    "查看正在运行的机器人的状态；没有在运行时退出码为 1。",
)
def status(*, as_json: AsJson = False) -> None:
    with answer_to("status") as answered:
        answer = answered.answer
        show(json.dumps(answer, ensure_ascii=False) if as_json else status_to_text(answer))


@described(
    "Print a link to the console that works once, within five minutes. If only a chat is"
    " running here, the link opens its simulated group.",
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
    """Ask the bot of this folder; with `or_chat`, ask its chat if the bot does not answer or
    refuses. If there is no answer, report that and exit the process.
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
    """Ask the running bot to forget a `user` or a `group`. Returns the number of erased rows (None
    if no bot did it), and a warning if a bot may still have some of it in memory. Exits the process
    if the bot refuses.
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
    """The socket of this folder's bot. A bad STORE_URL exits the process."""
    from bot.cli.control import socket_of

    try:
        return socket_of(store_url)
    except ConfigError as error:
        exit_with(error)


def _chat_socket_of(store_url: str) -> Path:
    from bot.cli.control import chat_socket_of

    return chat_socket_of(store_url)


def _holder(store_url: str) -> str:
    """The process that has the journal open but does not answer, as part of a sentence; empty if
    there is none or it is unknown.
    """
    from adapters.storage.database import Database

    try:
        database = Database(store_url, migrate=lambda _: None)
        holder = database.holder()
        database.close()
    except Exception:  # noqa: BLE001  # an unreachable database: unknown
        return ""
    return "" if holder is None else HELD.fill(holder=holder)


# --- the status as text ---------------------------------------------------------------------------


MINUTE, HOUR, DAY = 60, 3600, 86_400

LINE: Final = Phrase("{name} {value}", "{name} {value}")
HEADS: Final[Mapping[str, Phrase]] = {
    "version": Phrase("版本", "version"),
    "state": Phrase("状态", "state"),
    "pid": Phrase("pid", "pid"),
    "since": Phrase("启动于", "since"),
    "onebot": Phrase("OneBot", "OneBot"),
    "accounts": Phrase("账号", "accounts"),
    "lanes": Phrase("正在做", "at work"),
    "journal": Phrase("数据库", "journal"),
    "model": Phrase("模型", "model"),
    "stalls": Phrase("卡顿", "stalls"),
    "events": Phrase("事件", "events"),
    "cluster": Phrase("集群", "cluster"),
    "broker": Phrase("队列", "broker"),
    "queue": Phrase("积压", "queue"),
    "worker": Phrase("worker", "worker"),
    "gateway": Phrase("gateway", "gateway"),
    "silent": Phrase("无应答", "silent"),
}
HEAD_WIDTH: Final = 9
RUNNING: Final = Phrase("运行中", "running")
IS_STOPPING: Final = Phrase("正在停止", "stopping")
IS_GATEWAY: Final = Phrase("gateway", "gateway")
STANDING_BY: Final = Phrase("待命，原因见它的日志", "standing by: its log says why")
IS_WRITTEN: Final = Phrase("正常写入", "written")
BY_OTHERS: Final = Phrase("由其他 worker 写入", "other workers write it")
NOT_WRITTEN: Final = Phrase(
    "写不进去，{count} 条记录在内存里等着", "CANNOT BE WRITTEN, {count} entries wait in memory"
)
WORKING: Final = Phrase(
    "{active} 个会话，{waiting} 个问题在等", "{active} conversations, {waiting} questions wait"
)
JOURNAL: Final = Phrase("{place}：{state}", "{place}: {state}")
THEN: Final = Phrase("，备用 ", ", then ")
STALLS: Final = Phrase("超过一秒的有 {count} 次", "{count} over one second")
SINCE: Final = Phrase("{moment}（{lasting}）", "{moment} ({lasting})")
ONLINE: Final = Phrase("{account} 在线 {server}", "{account} online {server}")
OFFLINE: Final = Phrase(
    "{account} 离线，请重新登录 {server}", "{account} OFFLINE: log it in again {server}"
)
UNCONNECTED: Final = Phrase("没有连上的", "none is connected")
FATES: Final = Phrase(
    "已转发 {published} 个，{waiting} 个在等，丢失 {lost} 个",
    "{published} published, {waiting} wait, {lost} are lost",
)
SECONDS: Final = Phrase("{seconds} 秒", "{seconds} s")
MINUTES: Final = Phrase("{minutes} 分钟", "{minutes} min")
HOURS: Final = Phrase("{hours} 小时 {minutes} 分钟", "{hours} h {minutes} min")
DAYS: Final = Phrase("{days} 天 {hours} 小时", "{days} d {hours} h")
UNASKED: Final = Phrase("问不到：{why}", "cannot be asked: {why}")
BROKER: Final = Phrase(
    "{name}：{waiting} 个事件在等，{aside}", "{name}: {waiting} events wait, {aside}"
)
ASIDE: Final = Phrase("{count} 个放进了 frost.dead", "{count} set aside in frost.dead")
NONE_ASIDE: Final = Phrase("没有搁置的", "none is set aside")
PARTITION: Final = Phrase(
    "{number} 号分区：{waiting} 个事件在等", "partition {number}: {waiting} events wait"
)
UNWORKED: Final = Phrase("，没有 worker 负责", ", no worker has it")
PART: Final = Phrase("{who}：{state}", "{who}: {state}")
STANDS_BY: Final = Phrase("待命", "stands by")
WORKER: Final = Phrase(
    "分区 {numbers}；{accounts}；{active} 个会话在进行，{waiting} 个问题在等{trouble}{stopping}",
    "partitions {numbers}; {accounts}; {active} conversations at work, {waiting} questions wait"
    "{trouble}{stopping}",
)
UNWRITTEN: Final = Phrase("，数据库写不进去", ", the journal CANNOT BE WRITTEN")
ALSO_STOPPING: Final = Phrase("，正在停止", ", stopping")
GATEWAY: Final = Phrase(
    "{accounts}；{waiting} 个事件在等，丢失 {lost} 个{away}",
    "{accounts}; {waiting} events wait, {lost} lost{away}",
)
BROKER_AWAY: Final = Phrase("，连不上消息队列", ", the BROKER IS AWAY")
IS_OFFLINE: Final = Phrase("{account} 离线", "{account} OFFLINE")
NO_ACCOUNT: Final = Phrase("没有账号", "no account")
CATALOGUE.register(__name__, globals())


def status_to_text(status: Mapping[str, Any]) -> Bilingual:
    """The status as text for one screen; that of a cluster shows all its parts."""
    if "events" in status and "lanes" not in status:
        return _with_cluster(_gateway_rows(status), status)
    journal, lanes = status["journal"], status["lanes"]
    written, state = IS_WRITTEN.fill(), RUNNING
    if journal["in_trouble"]:
        written = NOT_WRITTEN.fill(count=journal["waiting"])
    if status["stopping"]:
        state = IS_STOPPING
    if status["standing_by"]:
        written, state = BY_OTHERS.fill(), STANDING_BY
    then = THEN.fill()
    rows = {
        **_first_rows(status, state),
        "lanes": WORKING.fill(**lanes),
        "journal": JOURNAL.fill(place=journal["place"], state=written),
        "model": joined([status["model"], *status["fallbacks"]], then.en, then.zh),
        "stalls": STALLS.fill(count=status["stalls"]),
    }
    return _with_cluster(rows, status)


def _first_rows(status: Mapping[str, Any], state: Phrase) -> dict[str, str]:
    accounts = [
        (ONLINE if row["online"] else OFFLINE)
        .fill(account=row["account"], server=row["server"])
        .each(str.rstrip)
        for row in status["accounts"]
    ]
    moment = status["since"].replace("T", " ")
    return {
        "version": status["version"],
        "state": state.fill(),
        "pid": str(status["pid"]),
        "since": SINCE.fill(moment=moment, lasting=_for_people(status["seconds"])),
        "onebot": status["onebot"],
        "accounts": joined(accounts, ", ", "，") or UNCONNECTED.fill(),
    }


def _gateway_rows(status: Mapping[str, Any]) -> dict[str, str]:
    return {**_first_rows(status, IS_GATEWAY), "events": FATES.fill(**status["events"])}


def _with_cluster(rows: Mapping[str, str], status: Mapping[str, Any]) -> Bilingual:
    text = joined(_line(name, value) for name, value in rows.items())
    if "cluster" not in status:
        return text
    return joined((text, cluster_to_text(status["cluster"])), "\n\n")


def _line(name: str, value: str) -> Bilingual:
    head = HEADS[name].fill().each(lambda text: pad(text, HEAD_WIDTH))
    return LINE.fill(name=head, value=value)


def _for_people(seconds: float) -> Bilingual:
    whole = int(seconds)
    if whole < MINUTE:
        return SECONDS.fill(seconds=whole)
    if whole < HOUR:
        return MINUTES.fill(minutes=whole // MINUTE)
    if whole < DAY:
        return HOURS.fill(hours=whole // HOUR, minutes=whole % HOUR // MINUTE)
    return DAYS.fill(days=whole // DAY, hours=whole % DAY // HOUR)


def cluster_to_text(cluster: Mapping[str, Any]) -> Bilingual:
    """The state of a cluster as text: a line for each part and for each problem."""
    if "error" in cluster:
        return _line("cluster", UNASKED.fill(why=cluster["error"]))
    waiting = sum(one["waiting"] for one in cluster["partitions"])
    dead = cluster["set_aside"]
    aside = ASIDE.fill(count=dead) if dead else NONE_ASIDE.fill()
    broker = BROKER.fill(name=cluster["broker"], waiting=waiting, aside=aside)
    lines = [_line("broker", broker)]
    lines += [_line("queue", line) for line in _queues(cluster["partitions"])]
    lines += [_part("worker", one, _worker(one)) for one in cluster["workers"]]
    lines += [_part("gateway", one, _gateway(one)) for one in cluster["gateways"]]
    lines += [
        _line("silent", PART.fill(who=name, state=why)) for name, why in cluster["silent"].items()
    ]
    return joined(lines)


def _queues(partitions: Sequence[Mapping[str, Any]]) -> Iterator[Bilingual]:
    """A line for each partition that has a problem."""
    for number, one in enumerate(partitions):
        if one["waiting"] or not one["worked"]:
            line = PARTITION.fill(number=number, waiting=one["waiting"])
            yield line if one["worked"] else joined((line, UNWORKED.fill()), "")


def _part(name: str, part: Mapping[str, Any], state: Bilingual) -> Bilingual:
    who = f"{part['host']} {part['pid']}, {part['version']}"
    return _line(name, PART.fill(who=who, state=state))


def _worker(part: Mapping[str, Any]) -> Bilingual:
    if part["standing_by"]:
        return STANDS_BY.fill()
    return WORKER.fill(
        numbers=", ".join(map(str, part["partitions"])),
        accounts=_accounts(part),
        trouble=UNWRITTEN if part["journal"]["in_trouble"] else "",
        stopping=ALSO_STOPPING if part["stopping"] else "",
        **part["lanes"],
    )


def _gateway(part: Mapping[str, Any]) -> Bilingual:
    events = part["events"]
    away = "" if events["broker"] else BROKER_AWAY
    return GATEWAY.fill(
        accounts=_accounts(part), waiting=events["waiting"], lost=events["lost"], away=away
    )


def _accounts(part: Mapping[str, Any]) -> str:
    told = [
        str(one["account"]) if one["online"] else IS_OFFLINE.fill(account=one["account"])
        for one in part["accounts"]
    ]
    return joined(told, ", ") or NO_ACCOUNT.fill()
