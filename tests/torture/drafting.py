"""The traffic of a group in which the bot is a shadow: drafts, an owner who publishes them, a friend request, an
invite; and what must hold of them in the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from adapters.simulator.call import SentMessage
from adapters.simulator.world import Person
from bot.core.drafts import published_id
from bot.core.journal import SendState
from tests.torture.evidence import Evidence, Verdict
from tests.torture.oracle import unsound
from tests.torture.stage import ONE, PATIENCE, Stage

OWNER, ASKER, INVITER = 30009, 30010, 30011
ELSEWHERE = 4545  # the group of the invite
PETITIONS = ("1", "2")  # their numbers, in the order in which they come
SETTINGS: dict[str, Any] = {"bot_owners": [OWNER], "bot_new_group": "live", "bot_send_rate": 0.0}
SHOWN = re.compile(r"\[草稿 D(\d+) .*?\n  A:(q\d+)\n", re.DOTALL)
SAID = re.compile(r"[AB]:(q\d+)")
DONE = ("发出去了", "改好发出去了")


class Requests(dict[str, Any]):
    """The friend requests and invites of the server; how often each was answered."""

    def __init__(self) -> None:
        super().__init__()
        self.answered: Counter[str] = Counter()

    def get(self, key: str, default: Any = None) -> Any:
        self.answered[key] += 1
        return super().get(key, default)


@dataclass(slots=True)
class Wishes:
    """The questions whose drafts an owner wanted published, in which words."""

    wanted: dict[str, str] = field(default_factory=dict)
    requests: Requests = field(default_factory=Requests)


class DraftingStage(Stage):
    """What people do where the bot is a shadow."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.wishes = Wishes()
        world = self.simulator.world
        world.add_friend(Person(OWNER, f"friend{OWNER}"))
        world.petitions = self.wishes.requests

    async def play(self) -> None:
        """The script of the first life."""
        await self.simulator.wait_connected(timeout=PATIENCE)
        await self._say("/影子 4242", "好，群 4242 里我的回答")
        await self._publish(await self._drafted("plain"))
        await self._publish(await self._drafted("plain"), changed=True)
        await self._drafted("plain")  # left for a later life
        await self.simulator.incidents.befriend(Person(ASKER, "asker"), "hi")
        await self._wait(lambda texts: any(text.startswith("#R1 ") for text in texts))
        await self._say("同意 R1", "R1 ")
        await self.simulator.incidents.invite(Person(INVITER, "inviter"), ELSEWHERE)
        await self._wait(lambda texts: any(text.startswith("#R2 ") for text in texts))
        await self._say("同意 R2", "R2 ")
        await self._publish(await self._drafted("plain"))

    async def while_dead(self) -> None:
        """Nobody says anything; the way is free.

        Nobody repeats a line within two seconds of having said it, as equal lines of a history and of
        events would be one (`policy/message_aliases`); the lives of the bot take less than that.
        """
        await self.simulator.wait_until(lambda: not self.simulator.connected, timeout=PATIENCE)
        self._ago = min(self._ago, 1.0)
        self.simulator.sockets.come_back()
        self._ago -= 3.0

    async def play_again(self, mend: Callable[[], None]) -> None:
        """A life between the first and the last one."""
        mend()
        await self.finish()

    async def finish(self) -> None:
        """What was drafted is published, and somebody asks once more."""
        await self.simulator.wait_connected(timeout=PATIENCE)
        if not self._told("好，群 4242 里我的回答"):
            await self._say("/影子 4242", "好，群 4242 里我的回答")
        await self.lives[-1].settle()
        for token in [token for token in self._shown() if not self._is_said(token)]:
            await self._publish(token, changed=self.wishes.wanted.get(token) == f"B:{token}")
        for number in PETITIONS:
            if self._told(f"#R{number} ") and not self._told(f"R{number} "):
                await self._say(f"同意 R{number}", f"R{number} ", f"没有编号为 R{number}")
        await self._drafted("last")

    async def _drafted(self, kind: str) -> str:
        """Somebody asks in the group; an owner has read the draft. The question's token."""
        question = await self._ask(kind, group=ONE, bare=True)
        await self.simulator.wait_until(lambda: question.token in self._shown(), timeout=PATIENCE)
        return question.token

    async def _publish(self, token: str, *, changed: bool = False) -> None:
        number, words = self._shown()[token], f"{'B' if changed else 'A'}:{token}"
        self.wishes.wanted[token] = words
        line = f"改 D{number} {words}" if changed else f"发 D{number}"
        await self._say(line, f"D{number} ", f"没有编号为 D{number}")

    async def _say(self, words: str, *answers: str) -> None:
        """The owner says something, and is answered."""
        before = len(self._lines())
        await self.simulator.say_private(words, user_id=OWNER)
        await self._wait(lambda texts: any(text.startswith(answers) for text in texts[before:]))

    async def _wait(self, happened: Callable[[list[str]], bool]) -> None:
        await self.simulator.wait_until(lambda: happened(self._lines()), timeout=PATIENCE)

    def _told(self, words: str) -> bool:
        return any(text.startswith(words) for text in self._lines())

    def _lines(self) -> list[str]:
        return [one.text for one in self.simulator.delivered if not one.group_id and one.user_id == OWNER]

    def _shown(self) -> dict[str, int]:
        return shown(self.simulator.delivered)

    def _is_said(self, token: str) -> bool:
        return any(one.group_id and token in SAID.findall(one.text) for one in self.simulator.delivered)


def shown(delivered: list[SentMessage]) -> dict[str, int]:
    """The drafts that an owner has read: their numbers, by the token of the question."""
    found = (SHOWN.match(one.text) for one in delivered if not one.group_id)
    return {match[2]: int(match[1]) for match in found if match}


def judge_drafts(evidence: Evidence, wishes: Wishes) -> Verdict:
    """Everything that can be said about such a moment."""
    verdict = Verdict()
    verdict.complaints += [*evidence.errors, *evidence.invalid]
    verdict.complaints += evidence.journal.broken(evidence.kept)
    verdict.complaints += unsound(evidence)
    verdict.complaints += _said_wrongly(evidence, wishes)
    verdict.complaints += _lost(evidence, wishes)
    verdict.complaints += _told_wrongly(evidence)
    verdict.complaints += (
        f"the request {flag} was answered {times} times"
        for flag, times in wishes.requests.answered.items()
        if times > 1
    )
    granted = {number for number in PETITIONS for one in evidence.delivered if one.text.startswith(f"R{number} 已同意")}
    if len(granted) > len(wishes.requests.answered):
        verdict.complaints.append("a request that was granted was never answered")
    return verdict


def _said_wrongly(evidence: Evidence, wishes: Wishes) -> Iterator[str]:
    """Nothing but what an owner wants published appears in the group, in his words, and once."""
    said = [one.text for one in evidence.delivered if one.group_id == ONE]
    for text, times in Counter(said).items():
        if text not in wishes.wanted.values():
            yield f"nobody published {text!r}"
        if times > 1:
            yield f"{text!r} was published {times} times"


def _lost(evidence: Evidence, wishes: Wishes) -> Iterator[str]:
    """What an owner wants published is, unless nobody knows whether it is."""
    said = {one.text for one in evidence.delivered if one.group_id == ONE}
    numbers = shown(evidence.delivered)
    for token, text in wishes.wanted.items():
        name = published_id(numbers[token])
        states = {row["state"] for row in evidence.journal.sends if row["send_id"].startswith(name)}
        if text not in said and SendState.UNKNOWN not in states:
            yield f"{text!r} of D{numbers[token]} was never published: {states}"
    for one in evidence.delivered:
        if one.text.startswith("D") and any(done in one.text for done in DONE):
            number = int(one.text[1:].split()[0])
            texts = {wishes.wanted[token] for token in numbers if numbers[token] == number}
            if not texts & said:
                yield f"{one.text} was told, and it is not there"


def _told_wrongly(evidence: Evidence) -> Iterator[str]:
    """The last prompt tells as said what stood in the group before, once; and nothing else."""
    last = next((one for one in reversed(evidence.asked) if one.conversation and one.step == 0), None)
    if last is None:
        return
    prompt = "\n".join(str(message["content"]) for message in last.messages)
    told, said = Counter(re.findall(r"[AB]:q\d+", prompt)), {one.text for one in evidence.delivered if one.group_id}
    unknown = any(
        row["state"] == SendState.UNKNOWN and row["send_id"].startswith("published-") for row in evidence.journal.sends
    )
    for text in said - told.keys():
        yield f"{text!r} was published, and is not told as said"
    for text, times in told.items():
        if times > 1 or (text not in said and not unknown):
            yield f"{text!r} is told {times} times as said (published: {text in said})"
