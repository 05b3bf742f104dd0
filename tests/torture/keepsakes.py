"""The traffic of what is kept for long: facts, summaries, personas, wishes, resets, people who want to be forgotten.

Each group has one thing that happens to it, so that what a later life shows there says what came of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.offline.brain import DemoCall, Thought
from adapters.simulator.call import SentMessage
from tests.torture.model import Asked, think
from tests.torture.stage import ACCOUNT, ANN, EVE, ONE, PATIENCE, PEOPLE, TWO, Question, Stage

THREE, FOUR = 4444, 4545
ADMIN, TELLER, GOER = 20001, 20002, 20003
PADDING = (
    "这件事要从头说起，先看它从哪里来，再看它往哪里去，最后看手上有什么能用，人手和时间够不够，大家高兴不高兴。" * 2
)
TOKEN = re.compile(r"(?<![A-Za-z0-9])q[0-9]+")

MARKS = {f"{ACCOUNT}:group:{FOUR}": "暗号乌鸦", f"{ACCOUNT}:private:{EVE}": "暗号麻雀"}
"""What stands in all that whoever is forgotten there said."""
SEAL = "你是火星上的守门人"  # the prompt of the persona that is chosen
WRITTEN, MENDED = "每个夏天都喜欢吃冰镇过的荔枝和芒果", "每个夏天都喜欢吃冰镇过的荔枝和木瓜"
DROPPED, TAKEN = "骑一辆红色的旧自行车", "养了两只灰色的鹦鹉"
SETTINGS: dict[str, Any] = {
    "bot_memory": True,
    "bot_history_tokens": 1000,
    "bot_owners": [ADMIN],
    "bot_new_group": "live",
    "bot_send_rate": 0.0,
}

SUMMED = "SUM:"


@dataclass(slots=True)
class Deed:
    """A command that was typed in the `life`-th life, and how its answer begins; `before` are the questions of then,
    `asked` how many requests the model had had.
    """

    name: str
    where: str
    life: int
    message_id: int
    answer: str
    before: tuple[str, ...]
    asked: int

    def is_done(self, delivered: Sequence[SentMessage]) -> bool:
        """Whether somebody was told so."""
        return any(message.text.startswith(self.answer) and _place(message) == self.where for message in delivered)


def _place(message: SentMessage) -> str:
    kind, number = ("group", message.group_id) if message.group_id else ("private", message.user_id)
    return f"{ACCOUNT}:{kind}:{number}"


QUIET = "安静 2小时"
DONE = {"人设 mars": "好，从下一句起", QUIET: "好，安静到", "重来": "好，从这里重新开始", "忘记 我": "删好了"}


def write_personas(folder: Path) -> dict[str, Any]:
    """The settings of these moments, and the files they name."""
    folder.mkdir()
    (folder / "mars.md").write_text(f'+++\nname = "火星"\n+++\n{SEAL}。\n', "utf-8")
    return {**SETTINGS, "personas_dir": str(folder)}


class KeepingStage(Stage):
    """What people do who want something kept, or gone."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for group in (THREE, FOUR):
            self.simulator.world.add_group(group, f"group {group}", PEOPLE)
        self.deeds: list[Deed] = []

    async def play(self) -> None:
        """The script of the first life."""
        await self._connected()
        await self._all(
            self._ask("note", group=ONE, bare=True), self._ask("plain", friend=ANN, bare=True, more=PADDING)
        )
        told = await self._tell_of(TWO)
        await self._all(self._ask("drop", group=ONE, bare=True), self._ask("plain", group=TWO, bare=True))
        await self._all(self._ask("mend", group=ONE, bare=True), self._ask("plain", group=TWO, bare=True))
        await self._all(
            self._asks_and_goes(FOUR),
            self._ask("secret", friend=EVE, bare=True, more=MARKS[f"{ACCOUNT}:private:{EVE}"]),
        )
        await self._do("人设 mars", group=ONE)
        await self._do(QUIET, group=THREE)
        await self._all(*(self._ask("plain", group=THREE, bare=True) for _ in range(2)))
        await self.lives[-1].settle()
        await self._take_back(told)
        for _ in range(6):
            await self._all(
                self._ask("plain", group=ONE, bare=True, more=f"荔枝{PADDING}"),
                self._ask("plain", friend=ANN, bare=True, more=PADDING),
            )
        await self._do("重来", group=THREE)
        await self._do("忘记 我", group=FOUR, user=GOER)
        await self._do("忘记 我", friend=EVE)
        self._ago = 1.0  # of what is said in the same second nobody knows whether it was before
        await self._ask_all()

    async def while_dead(self) -> None:
        """Somebody chats; then the way is free."""
        simulator = self.simulator
        await simulator.wait_until(lambda: not simulator.connected, timeout=PATIENCE)
        self._ago = min(self._ago, 1.0)
        await self._chat(ONE)
        simulator.sockets.come_back()
        self._ago = -1.0

    async def play_again(self, mend: Callable[[], None]) -> None:
        """A life between the first and the last one."""
        await self._connected()
        await self._ask_all()
        await self._do("人设 mars", group=ONE)
        await self._do("重来", group=THREE)
        mend()
        await self._ask_all()

    async def finish(self) -> None:
        """A question everywhere, twice: an answer may be what is asked about next, and a command that was found in a
        history is done by then.
        """
        await self._connected()
        await self._ask_all("last")
        await self.lives[-1].settle()
        await self._ask_all("last")

    async def _connected(self) -> None:
        await self.simulator.wait_connected(timeout=PATIENCE)

    async def _ask_all(self, kind: str = "plain") -> None:
        await self._all(
            *(self._ask(kind, group=group, bare=True, more="荔枝") for group in (ONE, TWO, THREE, FOUR)),
            *(self._ask(kind, friend=friend, bare=True, more="荔枝") for friend in (ANN, EVE)),
        )

    async def _all(self, *asking: Any) -> None:
        await self._wait_answered([await one for one in asking])

    async def _tell_of(self, group: int) -> int:
        """A few lines with a fact in one; its id."""
        told = await self.simulator.say(f"我{TAKEN}。", group_id=group, user_id=TELLER)
        await self._chat(group)
        await self._chat(group)
        return told

    async def _asks_and_goes(self, group: int) -> Question:
        mark = MARKS[f"{ACCOUNT}:group:{group}"]
        await self.simulator.say(f"我说一句{mark}。", group_id=group, user_id=GOER)
        return await self._ask("secret", group=group, bare=True, asker=GOER, more=mark)

    async def _do(self, command: str, *, group: int = 0, friend: int = 0, user: int = ADMIN) -> None:
        """Type a command and wait for its answer."""
        where = f"{ACCOUNT}:group:{group}" if group else f"{ACCOUNT}:private:{friend}"
        before = tuple(one.token for one in self.questions.values() if one.where == where)
        deed = Deed(command, where, len(self.lives) - 1, 0, DONE[command], before, len(self.asked_in))
        self.deeds.append(deed)
        if friend:
            deed.message_id = await self.simulator.say_private(f"/{command}", user_id=friend)
        else:
            deed.message_id = await self.simulator.say(f"@bot /{command}", group_id=group, user_id=user)
        await self.simulator.wait_until(lambda: deed.is_done(self.simulator.delivered), timeout=PATIENCE)


# --- the model ------------------------------------------------------------------------------------


def recollect(asked: Asked) -> Thought:
    """The answers of a model that is also asked for summaries and facts."""
    if asked.conversation:
        return _remember(asked)
    if "JSON" in asked.messages[0]["content"]:
        return Thought(json.dumps(_facts(asked.messages[-1]["content"]), ensure_ascii=False))
    told = "\n".join(message["content"] for message in asked.messages[1:])  # in both forms of the request
    return Thought(f"{SUMMED} {' '.join(sorted(set(TOKEN.findall(told))))}")


def _facts(told: str) -> list[dict[str, Any]]:
    lines = re.findall(rf"^(\d+)\. #(\d+): 我{TAKEN}", told, re.MULTILINE)
    return [{"about": f"#{number}", "fact": TAKEN, "lines": [int(line)]} for line, number in lines]


def _remember(asked: Asked) -> Thought:
    match asked.kind, asked.step:
        case "note", 0:
            return _write(WRITTEN)
        case "mend", (0 | 1 as step):
            return _write((WRITTEN, MENDED)[step])
        case "secret", 0:
            return _write(f"小名叫{MARKS[asked.conversation]}")
        case "drop", 0:
            return _write(DROPPED)
        case "drop", 1:
            (memory_id,) = re.findall(r"\[([^\[\]]+)\]$", asked.messages[-1]["content"])
            return Thought(calls=(DemoCall("memory", {"action": "forget", "text": memory_id}),))
        case _:
            return think(asked)


def _write(text: str) -> Thought:
    return Thought(calls=(DemoCall("memory", {"action": "write", "text": text}),))
