from __future__ import annotations

import asyncio

from bot.core.actions import SendMessage
from bot.core.blocked_words import fold_text
from bot.core.conversation import Conversation
from bot.core.language import Language
from bot.outbox.outbox import TOLD, Screen
from bot.outbox.owner_alerts import Owner
from bot.policy.blocked_words import POLITE
from frostagent.types.speech import Text
from tests.bot.outbox.post import build_outbox
from tests.cases import each_case
from tests.fakes import BOT, GROUP, ManualClock, RecordingStore, RecordingTransport, until

OWNER = 8
MINE = Conversation(BOT, "private", OWNER)


class List:
    def stops(self, text: str) -> int:
        return 0

    def blocks_answer(self, text: str) -> int:
        return 3 if "坏" in text or "bad" in fold_text(text) else 0


def says(where: Conversation, text: str) -> SendMessage:
    return SendMessage(where, (Text(text),))


@each_case("language", Language)
async def test_whatever_is_said_is_looked_at_but_for_what_owners_read_and_they_hear(language: Language) -> None:
    clock, transport = ManualClock(), RecordingTransport()
    outbox, sender = build_outbox(transport, RecordingStore(), clock)
    owner = Owner(owners=frozenset({OWNER}), sender=sender, clock=clock, language=language)
    owner.connected(BOT)
    outbox.screen = screen = Screen(words=List(), owner=owner, owners={OWNER})
    async with asyncio.timeout(30), outbox.open():
        await outbox.send(says(GROUP, "坏的。好的"))
        outbox.post(says(GROUP, "坏"))
        outbox.post_with(action=says(GROUP, "很坏"))
        outbox.post(says(MINE, "A1：坏"))
        await outbox.wait_idle()
        await until(lambda: len(transport.sent) == 5)
    told = dict.fromkeys(transport.texts)
    line = f"发到 {GROUP} 的话里有词表（WORDS_FILE 第 3 行）不让说的，那一句没有发。"
    if language is Language.ENGLISH:
        line = f"A sentence to {GROUP} had words of line 3 of WORDS_FILE in it: it was not said."
    assert told == dict.fromkeys([f"{POLITE.zh}好的", POLITE.zh, "A1：坏", line])
    assert screen.withheld == 3


async def test_what_goes_on_from_what_was_said_is_looked_at_with_it_and_the_owner_hears() -> None:
    clock, transport = ManualClock(), RecordingTransport()
    outbox, sender = build_outbox(transport, RecordingStore(), clock)
    owner = Owner(owners=frozenset({OWNER}), sender=sender, clock=clock)
    owner.connected(BOT)
    screen = Screen(words=List(), owner=owner, owners={OWNER})
    async with asyncio.timeout(30), outbox.open():
        assert screen([says(GROUP, "d。好")], "好 b\u200ba") == (says(GROUP, f"{POLITE.zh}好"),)
        assert screen([says(GROUP, "好")], "好 ba") == (says(GROUP, "好"),)
        assert screen([says(MINE, "d。好")], "好 ba") == (says(MINE, "d。好"),)
        assert screen.withheld == 1
        await until(lambda: transport.texts == [TOLD.zh.format(where=GROUP, line=3)])


async def test_the_polite_line_is_in_the_language_of_the_message_and_the_owners_where_it_says_too_little() -> None:
    clock, transport = ManualClock(), RecordingTransport()
    outbox, sender = build_outbox(transport, RecordingStore(), clock)
    owner = Owner(owners=frozenset(), sender=sender, clock=clock)
    outbox.screen = Screen(words=List(), owner=owner, owners=())
    async with asyncio.timeout(30), outbox.open():
        for language in Language:
            owner.language = language
            for text in ("bad words of 小明 and nothing else", "坏话都在这里", "bad!"):
                await outbox.send(says(GROUP, text))
    zh, en = POLITE.zh, POLITE.en
    assert transport.texts == [en, zh, zh, en, zh, en]
