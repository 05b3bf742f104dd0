"""A OneBot server that refuses, numbers anew, goes deaf, lets an admin recall the bot's words, or confirms a forward
late; and what must hold then: every answer has an outcome, and nothing is said twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

from adapters.simulator.call import SentMessage
from adapters.simulator.faults import parse_fault
from adapters.simulator.world import Person
from bot.core.journal import MessageErased, SendState
from tests.torture.evidence import Evidence, Verdict
from tests.torture.model import Asked
from tests.torture.moments import Kind
from tests.torture.oracle import POLITE, judge
from tests.torture.stage import ONE, PATIENCE, TWO, Question, Stage

OWNER = 30009
SETTINGS: dict[str, Any] = {"bot_owners": [OWNER], "bot_new_group": "live"}
REFUSALS = (
    "refuse result -1 rich media transfer failed",
    "refuse result 34 msg is too frequent",
    "refuse result 299 富媒体消息发送失败",
    "refuse code 100",
    "refuse quote code 100 MSG_NOT_FOUND",
    "refuse quote code 200",
    "refuse quote code 1200 消息不存在",
    "refuse quote code 1400 消息不存在或已被撤回",
    "refuse mention",
)
"""What a group's answers are refused with; those that mean a mute or that the bot has left are another matter."""

LATE = (
    "lateforward 发送转发消息（res_id：7000000000000000000）失败",
    "lateforward 消息体无法解析, 请检查是否发送了不支持的消息类型",
)


@dataclass(frozen=True, slots=True)
class OwnRecall:
    """The bot's `words` were recalled in a life, once so many questions had been asked."""

    words: str
    where: str
    message_id: int
    life: int
    asked: int


class ServerStage(Stage):
    """What people do where the server is like that."""

    def __init__(self, *args: Any, kind: Kind, **more: Any) -> None:
        super().__init__(*args, kind=kind, **more)
        world = self.simulator.world
        world.add_friend(Person(OWNER, f"friend{OWNER}"))
        world.renumbers = kind is Kind.RENUMBERED
        self.own_recalls: list[OwnRecall] = []
        self._faults = cycle(LATE if kind is Kind.FORWARDED else REFUSALS)

    async def play(self) -> None:
        """The script of the first life: what is special first, then the usual."""
        await self.simulator.wait_connected(timeout=PATIENCE)
        await self._special(len(REFUSALS))
        await super().play()

    async def finish(self) -> None:
        await self.simulator.wait_connected(timeout=PATIENCE)
        await self._special(2)
        await super().finish()

    async def _special(self, times: int) -> None:
        match self._kind:
            case Kind.REFUSED:
                for group in (ONE, TWO):  # whom answers mention
                    await self._chat(group)
                for number in range(times):
                    question = await self._ask("refused", group=(ONE, TWO)[number % 2], bare=True)
                    await self._wait_sent(question)
                await self.lives[-1].settle()
                self.simulator.faults.disarm()
            case Kind.FORWARDED:
                for group in (ONE, TWO):
                    question = await self._ask("long", group=group, bare=True)
                    await self._wait_sent(question)
                await self.lives[-1].settle()
                self.simulator.faults.disarm()
            case Kind.RECALLED:
                question = await self._ask("plain", group=ONE, bare=True)
                await self._wait_answered([question])
                await self._recall_answer(question)
            case Kind.DEAF:
                await self._chat(TWO)  # else nobody knows the place
                await self._wait_answered([await self._ask("plain", group=ONE, bare=True)])
                await self._be_deaf()
            case _:
                pass

    async def _wait_answered(self, questions: Iterable[Question]) -> None:
        """But of those whose answers are refused: what becomes of these is for the oracle."""
        await super()._wait_answered(question for question in questions if question.kind != "refused")

    async def _wait_sent(self, question: Question) -> None:
        """Until the bot has tried to answer."""
        await self.simulator.wait_until(lambda: any(map(question.is_ended_by, self.simulator.sent)), timeout=PATIENCE)

    async def _recall_answer(self, question: Question) -> None:
        answer = next(one for one in self.simulator.delivered if question.is_ended_by(one))
        # Before: the service may die of the event.
        life, asked = len(self.lives) - 1, len(self.questions)
        self.own_recalls.append(OwnRecall(answer.text, question.where, answer.message_id, life, asked))
        self.taken_back.append(answer.text)
        await self.simulator.incidents.recall(answer.message_id, operator_id=20001)

    async def _be_deaf(self) -> None:
        """Somebody asks while no event comes; then the socket breaks, and the history tells it."""
        world, simulator = self.simulator.world, self.simulator
        world.is_deaf = True
        missed = [await self._ask("plain", group=ONE), await self._ask("plain", group=TWO, bare=True)]
        world.is_deaf = False
        await simulator.sockets.drop()
        await self.lives[-1].wait_alone()
        simulator.sockets.come_back()
        await simulator.wait_connected(timeout=PATIENCE)
        await self._wait_answered(missed)

    async def on_ask(self, asked: Asked) -> None:
        if asked.kind in ("refused", "long"):
            armed = replace(parse_fault(next(self._faults)), about=f"A:{asked.token}")
            self.simulator.faults.put(armed)  # what is said about it goes through
        await super().on_ask(asked)


def judge_server(evidence: Evidence, own_recalls: list[OwnRecall]) -> Verdict:
    """Everything that can be said about such a moment. What owners are told is no answer to anybody."""
    pairs = list(zip(evidence.delivered, evidence.delivered_in, strict=True))
    told = [message for message, _ in pairs if message.user_id == OWNER]
    # Of a send whose answer never came the bot does not know the id that such a notice names: that it was said, and
    # what, nobody can tell it any more.
    known = {str(row.get("message_id")) for row in evidence.journal.sends}
    unknown = {one.words for one in own_recalls if str(one.message_id) not in known}
    own_recalls = [one for one in own_recalls if one.words not in unknown]
    lost = {one for question in evidence.questions if f"A:{question.token}" in unknown for one in question.ids}

    def is_told_people(message: SentMessage) -> bool:
        return message.user_id != OWNER and not (message.text.startswith(POLITE) and _quoted(message) in lost)

    people = [(message, life) for message, life in pairs if is_told_people(message)]
    evidence = replace(
        evidence,
        sent=[message for message in evidence.sent if is_told_people(message)],
        delivered=[message for message, _ in people],
        delivered_in=[life for _, life in people],
        told=bool(told),
    )
    verdict = judge(evidence)
    verdict.complaints += _said_more_than_once(evidence)
    verdict.complaints += _confirmed_wrongly(evidence)
    verdict.complaints += _told_after_recall(evidence, own_recalls)
    return verdict


def _quoted(message: SentMessage) -> str:
    return next((str(one["data"].get("id")) for one in message.segments if one["type"] == "reply"), "")


def _said_more_than_once(evidence: Evidence) -> Iterator[str]:
    """No answer reaches people twice, in whichever form and with or without its quote."""
    for question in evidence.questions:
        answers = [message for message in evidence.delivered if question.token in _tokens(message)]
        if len(answers) > 1:
            yield f"the answer to {question} was delivered {len(answers)} times"


def _tokens(message: SentMessage) -> set[str]:
    """The question that a message answers, if any."""
    return {message.words.partition("\n")[0].removeprefix("A:")} if message.words.startswith("A:") else set()


def _confirmed_wrongly(evidence: Evidence) -> Iterator[str]:
    """What was refused is not told as confirmed."""
    said = {token for message in evidence.delivered for token in _tokens(message)}
    confirmed = [row["segments"] for row in evidence.journal.sends if row["state"] == SendState.CONFIRMED]
    for question in evidence.questions:
        its = re.compile(rf'"A:{question.token}(?![0-9])')
        if question.token not in said and any(map(its.search, confirmed)):
            yield f"the answer to {question} reached nobody, and is confirmed"


def _told_after_recall(evidence: Evidence, own_recalls: list[OwnRecall]) -> Iterator[str]:
    """The bot's words that were recalled are in no later request of that conversation: of a question asked after that
    in the same life, or in the lives after it was promised.
    """
    number = {question.token: at for at, question in enumerate(evidence.questions)}
    for recall in own_recalls:
        known = [
            life
            for life, promised in enumerate(evidence.promised)
            for entry in promised
            if isinstance(entry, MessageErased) and entry.message_id == str(recall.message_id)
        ]
        for asked, life in zip(evidence.asked, evidence.asked_in, strict=True):
            later = life == recall.life or any(life > one for one in known)
            if asked.conversation != recall.where or number.get(asked.token, -1) < recall.asked or not later:
                continue
            told = re.compile(rf"{re.escape(recall.words)}(?![0-9])")
            if any(told.search(str(message.get("content") or "")) for message in asked.messages):
                yield f"{recall.words} was recalled, and told to the model with {asked.kind}#{asked.token}"
