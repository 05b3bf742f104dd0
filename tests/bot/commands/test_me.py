from __future__ import annotations

from collections.abc import Collection

from bot.commands.me import ELSEWHERE, LAST, NOTHING, SHOWN, me_command
from bot.core.command import AWAY
from bot.core.conversation import Conversation
from bot.core.memories import Kind, MemoryKept, StoredFact
from tests.bot.commands.typed import HONG, MING, lines
from tests.bot.memory.facts import KeptFacts
from tests.fakes import GROUP, PRIVATE, RecordingStore


async def test_everybody_sees_his_own_facts_and_in_a_group_none_that_he_told_in_private() -> None:
    store = RecordingStore()
    for number, (where, user, text) in enumerate(
        [(GROUP, MING, "对花生过敏"), (PRIVATE, MING, "喜欢小红"), (GROUP, HONG, "养猫")]
    ):
        store.put(
            MemoryKept(
                StoredFact(memory_id=str(number), scope=where, subject=user, author=user, text=text, kind=Kind.TASTE),
                (),
            )
        )
    me = me_command(KeptFacts(store))
    assert await lines(me) == ["· 对花生过敏 (口味)", ELSEWHERE.zh, LAST.zh]
    assert await lines(me, where=PRIVATE) == ["· 对花生过敏 (口味, 群 4242)", "· 喜欢小红 (口味)", LAST.zh]
    assert await lines(me, user=1, chinese=False) == [NOTHING.en, ELSEWHERE.en, LAST.en]


async def test_many_facts_are_counted() -> None:
    store = RecordingStore()
    for number in range(SHOWN + 3):
        memory = StoredFact(memory_id=str(number), scope=GROUP, subject=MING, author=MING, text=f"事{number}")
        store.put(MemoryKept(memory, ()))
    told = await lines(me_command(KeptFacts(store)))
    assert told[-3:-1] == ["（另有 3 条）", ELSEWHERE.zh]
    assert sum(line.startswith("· ") for line in told) == 15  # an answer fits a phone


class AwayFacts:
    """Fits `Memories`, and cannot be read."""

    async def has_any(self, _where: Conversation, _asker: int) -> bool:
        return True

    async def recall(self, _where: Conversation, _asker: int, _terms: Collection[str]) -> tuple[StoredFact, ...]:
        return ()

    async def listed(self, *, scope: Conversation | None = None, subject: int | None = None) -> None:
        return None


async def test_what_cannot_be_read_is_not_said_to_be_nothing() -> None:
    assert await lines(me_command(AwayFacts())) == [AWAY.zh]
