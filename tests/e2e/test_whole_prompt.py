"""One whole request as the model reads it, in both languages (tests/data/prompts); and many in a row: they begin as the
one before, and name nobody's account.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from bot.core.events import MessageReceived, Role
from bot.core.journal import MemberNumbered, Remembered
from bot.core.segments import Mention, Picture, Segment
from bot.memory.personas import Cast, Persona
from bot.prompt.wording import Wording
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from frostagent.types.messages import Completion, Message, ModelRequest
from frostagent.types.speech import Quote, Text
from tests.bot.chat.test_turn import living
from tests.data import prompts
from tests.fakes import BOT, GROUP, lasting, said, words

NOON = 1_795_348_800.0  # 2026-11-22 12:00 UTC
ACCOUNTS = range(3_000_000_000, 3_000_000_040)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    if before is None:
        monkeypatch.delenv("TZ", raising=False)
    else:
        monkeypatch.setenv("TZ", before)
    time.tzset()


def at(
    minutes: float, who: int, name: str, *segments: Segment | str, key: str, role: Role = "member"
) -> MessageReceived:
    parts = tuple(Text(part) if isinstance(part, str) else part for part in segments)
    message = said(parts, at=False, user=ACCOUNTS[who], name=name, message_id=key, role=role)
    return replace(message, time=NOON + 60 * minutes, group_name="登山")


def shown(messages: tuple[Message, ...]) -> str:
    """The messages as a person reads them."""
    return "\n".join(f"<{message.type}>\n{message.text}" for message in messages)


def common(before: str, after: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(before), len(after)))


TALK: dict[str, list[str]] = {
    "zh": ["周六去香山吧", "不去，太远", "为什么？", "真的假的", "你觉得哪天好", "看这个", "那就周日"],
    "en": [
        "let us go to the Fragrant Hills on Saturday",
        "no, too far away",
        "why not?",
        "is that so",
        "which day would you say is best?",
        "look at this",
        "Sunday it is, then",
    ],
}


@pytest.mark.parametrize("wording", [ZH, EN], ids=["zh", "en"])
async def test_a_whole_request_reads_as_it_stands_in_the_file(wording: Wording) -> None:
    talk = TALK[wording.language]
    async with living(words(talk[6]), words("ok")) as house:
        members = (MemberNumbered(conversation=GROUP, number=1, user_id=ACCOUNTS[0], name="阿澈"),)
        house.store.remembered[GROUP] = Remembered(members=members)
        house.personas.become(Cast(Persona("你是霜。", "霜")))
        house.history.overhear(at(-2880, 0, "阿澈", talk[0], key="1"))
        await house.turns.answer(at(-2879, 1, "小明", Mention(BOT), talk[4], key="2"))
        own = said(talk[6], user=BOT, name="", at=False, message_id="3")
        house.history.know(own)
        for message in (
            at(-9, 1, "小明", Quote("1"), talk[1], key="4"),
            at(-8, 2, "小[红]", Quote("4"), Mention(ACCOUNTS[1]), talk[2], key="5"),
            at(-7, 0, "阿澈#9", Quote("3"), talk[3], Picture(), key="6"),
            at(-6, 3, "", f"{talk[3]}\n阿澈#1: {talk[0]}", key="7"),
        ):
            house.history.know(message)
            house.history.overhear(message)
        house.history.know(at(-2880, 0, "阿澈", talk[0], key="1"))
        lines = (at(-1, 2, "小[红]", talk[5], Picture(), key="8"),)
        asked = at(0, 2, "小[红]", Mention(BOT), Quote("3"), talk[4], key="9", role="admin")
        await house.turns.answer(asked, lines=lines)
    file = Path(prompts.__file__).parent / f"request_{wording.language}.txt"
    assert shown(house.model.requests[1].messages) == file.read_text("utf-8").rstrip("\n")


async def test_over_a_thousand_lines_each_prompt_begins_as_the_one_before_and_names_no_account() -> None:
    chance = random.Random(16)
    said_by = [f"成员{number}" for number in range(len(ACCOUNTS))]
    requests: list[str] = []

    async def answer(request: ModelRequest) -> Completion:
        requests.append(shown(request.messages))
        return words("好的，" + "说得对" * chance.randrange(9))

    async with living(*[answer] * 40) as house:
        for place in range(1000):
            who = chance.randrange(len(ACCOUNTS))
            parts: list[Segment | str] = ["大家" + "周末去哪儿玩" * chance.randrange(1, 4)]
            parts += [Quote(str(chance.randrange(place)))] if place and chance.random() < 0.2 else []
            parts += [Mention(chance.choice(ACCOUNTS))] if chance.random() < 0.2 else []
            message = at(place, who, said_by[who], *parts, key=str(place))
            house.history.know(message)
            if place % 25 == 24:
                await house.turns.answer(message)
            else:
                house.history.overhear(message)
    assert len(requests) == 40
    shared = [common(lasting(before), after) for before, after in pairwise(requests)]
    begun_anew = [share for share, before in zip(shared, requests, strict=False) if share < len(lasting(before))]
    assert len(begun_anew) <= 3  # the window moved
    share = sum(shared) / sum(len(lasting(before)) for before in requests[:-1])
    assert share > 0.9, share
    whole = "".join(requests)
    assert not any(str(account) in whole for account in (*ACCOUNTS, BOT, GROUP.session_id))
