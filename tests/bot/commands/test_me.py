from __future__ import annotations

from bot.commands.me import LAST, SHOWN, me_command
from bot.domain.memories import MemoryKept, StoredFact
from tests.bot.commands.typed import HONG, MING, lines
from tests.bot.memory.facts import KeptFacts
from tests.fakes import GROUP, PRIVATE, RecordingStore


async def test_everybody_sees_his_own_facts_and_in_a_group_none_that_he_told_in_private() -> None:
    store = RecordingStore()
    for number, (where, user, text) in enumerate(
        [(GROUP, MING, "对花生过敏"), (PRIVATE, MING, "喜欢小红"), (GROUP, HONG, "养猫")]
    ):
        store.put(MemoryKept(StoredFact(memory_id=str(number), scope=where, subject=user, author=user, text=text), ()))
    me = me_command(KeptFacts(store))
    assert await lines(me) == ["· 对花生过敏", LAST[0]]
    assert await lines(me, where=PRIVATE) == ["· 喜欢小红", LAST[0]]
    assert await lines(me, user=1, chinese=False) == ["I have no facts written down about you.", LAST[1]]


async def test_many_facts_are_counted() -> None:
    store = RecordingStore()
    for number in range(SHOWN + 3):
        memory = StoredFact(memory_id=str(number), scope=GROUP, subject=MING, author=MING, text=f"事{number}")
        store.put(MemoryKept(memory, ()))
    assert (await lines(me_command(KeptFacts(store))))[-2:] == ["（另有 3 条）", LAST[0]]
