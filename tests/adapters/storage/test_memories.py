from __future__ import annotations

import pytest
from sqlalchemy import func, select

from adapters.storage.batches import EntryBatches
from adapters.storage.database import Database
from adapters.storage.queries.memories import listed, recall
from adapters.storage.tables import memories, memory_terms
from bot.core.conversation import Conversation
from bot.core.journal import MessageErased
from bot.core.memories import MemoriesForgotten, MemoriesUsed, Visibility
from bot.policy.memory_rules import terms
from frostagent.clock import SystemClock
from tests.adapters.storage.conftest import opened
from tests.adapters.storage.entries import NOW, fact, put, read
from tests.fakes import BOT, GROUP, PRIVATE

MING, HONG = 777, 888
IN_SCOPE = 500  # as it is specified
ELSEWHERE = Conversation(BOT, "group", 4343)


def found(database: Database, question: str, *, where: Conversation = GROUP, asker: int = HONG) -> list[str]:
    """The texts that a question finds."""
    return [one.text for one in read(database, recall, where, asker, terms(question), NOW)]


def rows(database: Database) -> tuple[int, int]:
    with database.reading() as connection:
        facts, words = (connection.scalar(select(func.count()).select_from(t)) for t in (memories, memory_terms))
    return facts or 0, words or 0


def test_chinese_words_of_two_characters_and_of_one_are_found(batches: EntryBatches, database: Database) -> None:
    batches.write(put(fact("1", "小明对花生过敏"), fact("2", "小红养了一只猫"), fact("3", "Ming plays Genshin")))
    assert found(database, "谁不能吃花生") == ["小明对花生过敏"]
    assert found(database, "猫") == ["小红养了一只猫"]
    assert found(database, "花？花生") == ["小明对花生过敏"]
    batches.write(put(fact("4", "17点下班")))
    assert (found(database, "17"), found(database, "7")) == (["17点下班"], [])
    assert found(database, "genshin?") == ["Ming plays Genshin"]
    assert found(database, "100%_") == []


def test_what_has_more_of_the_words_comes_first_then_what_was_used_last(
    batches: EntryBatches, database: Database
) -> None:
    batches.write(put(fact("1", "花生一", used=1.0), fact("2", "花生二", used=2.0), fact("3", "花生过敏", used=0.0)))
    assert found(database, "花生过敏") == ["花生过敏", "花生二", "花生一"]
    batches.write(put(MemoriesUsed(("1",), NOW, NOW + 9)))
    assert found(database, "花生") == ["花生一", "花生二", "花生过敏"]


@pytest.mark.parametrize("word", ["花生", "花"])
def test_a_fact_is_found_where_it_may_be_told_and_nothing_private_in_a_group(
    batches: EntryBatches, database: Database, word: str
) -> None:
    """By a word of two characters, and by one."""
    batches.write(
        put(
            fact("1", "花生 here"),
            fact("2", "花生 person", visibility=Visibility.PERSON),
            fact("3", "花生 everywhere", visibility=Visibility.EVERYWHERE),
            fact("4", "花生 private", where=PRIVATE, visibility=Visibility.EVERYWHERE),
            fact("5", "花生 own", where=PRIVATE, visibility=Visibility.PERSON),
        )
    )
    assert sorted(found(database, word)) == ["花生 everywhere", "花生 here", "花生 person"]
    assert sorted(found(database, word, where=ELSEWHERE)) == ["花生 everywhere"]
    assert sorted(found(database, word, where=ELSEWHERE, asker=MING)) == ["花生 everywhere", "花生 person"]
    assert "花生 private" in found(database, word, where=PRIVATE, asker=MING)
    assert "花生 here" not in found(database, word, where=PRIVATE, asker=MING)


def test_a_fact_of_the_same_id_is_written_over_with_its_words(batches: EntryBatches, database: Database) -> None:
    batches.write(put(fact("1", "小明对花生过敏")))
    batches.write(put(fact("1", "小明对芒果过敏")))
    assert found(database, "花生") == []
    assert found(database, "芒果") == ["小明对芒果过敏"]
    assert rows(database)[0] == 1


def test_what_is_forgotten_or_expired_is_not_found_and_leaves_no_words(
    batches: EntryBatches, database: Database
) -> None:
    batches.write(put(fact("1", "花生一"), fact("2", "花生二", expires=NOW), fact("3", "花生三")))
    for word in ("花生", "花"):
        assert sorted(found(database, word)) == ["花生一", "花生三"]
    batches.write(put(MemoriesForgotten(("1", "2", "3"))))
    assert rows(database) == (0, 0)


def test_what_was_taken_from_a_recalled_message_goes_with_it(batches: EntryBatches, database: Database) -> None:
    batches.write(put(fact("1", "对花生过敏", sources=("4", "5")), fact("2", "养了一只猫", sources=("50",))))
    batches.write(put(fact("3", "花生"), fact("4", "会弹琴", where=ELSEWHERE, sources=("5",))))
    batches.write(put(fact("5", "会画画", where=ELSEWHERE, sources=("a_b", "!c", "d%"))))
    batches.write(put(MessageErased(GROUP, "5"), MessageErased(GROUP, "%")))
    batches.write(put(*(MessageErased(ELSEWHERE, named) for named in ("a%b", "_c", "!", "d_", "axb", "a_"))))
    assert [one.text for one in read(database, listed, ELSEWHERE, None, NOW)] == ["会画画", "会弹琴"]
    batches.write(put(MessageErased(ELSEWHERE, "!c")))
    assert [one.text for one in read(database, listed, GROUP, None, NOW)] == ["花生", "养了一只猫"]
    assert [one.text for one in read(database, listed, ELSEWHERE, None, NOW)] == ["会弹琴"]
    assert found(database, "过敏") == []
    assert rows(database)[1] == sum(len(terms(text)) for text in ("花生", "养了一只猫", "会弹琴"))


def test_a_conversation_has_so_many_and_the_least_used_go_with_their_words(
    batches: EntryBatches, database: Database
) -> None:
    batches.write(put(fact("elsewhere", "花生", where=ELSEWHERE, used=0.0)))
    batches.write(put(*(fact(str(n), f"花生 {n:04}", used=float(n)) for n in range(IN_SCOPE + 3))))
    assert rows(database) == (IN_SCOPE + 1, 2 * IN_SCOPE + 1)
    assert found(database, "0002") == []
    assert found(database, "0003") == ["花生 0003"]


def test_those_about_somebody_and_those_of_a_conversation_are_listed_the_latest_first(
    batches: EntryBatches, database: Database
) -> None:
    batches.write(put(fact("1", "一"), fact("2", "二", subject=HONG), fact("3", "三", where=ELSEWHERE)))
    assert [one.text for one in read(database, listed, GROUP, None, NOW)] == ["二", "一"]
    assert [one.text for one in read(database, listed, None, MING, NOW)] == ["三", "一"]
    assert [one.text for one in read(database, listed, GROUP, MING, NOW)] == ["一"]


async def test_a_store_gives_back_what_was_put_just_now(url: str) -> None:
    now = SystemClock().now()
    entry = fact("1", "小明对花生过敏", expires=now + 1e6)
    async with opened(url) as place:
        place.store.put(entry)
        await place.store.commit()
        assert await place.store.memories.recall(GROUP, HONG, terms("花生")) == (entry.memory,)
        assert await place.store.memories.listed(subject=MING) == (entry.memory,)
        assert await place.store.memories.recall(GROUP, HONG, ()) == ()


async def test_what_cannot_be_read_is_not_nothing(sqlite: str) -> None:
    async with opened(sqlite) as place:
        place.database.ready = False
        assert await place.store.memories.listed(subject=MING) is None


async def test_where_nothing_is_remembered_that_is_known_without_a_read_also_after_a_restart(url: str) -> None:
    async with opened(url) as place:
        assert not await place.store.memories.has_any(GROUP, HONG)
        place.store.put(fact("1", "小明对花生过敏", visibility=Visibility.PERSON))
        assert await place.store.memories.has_any(GROUP, HONG)
        assert await place.store.memories.has_any(ELSEWHERE, MING)
        assert not await place.store.memories.has_any(ELSEWHERE, HONG)
    async with opened(url) as place:
        assert await place.store.memories.has_any(GROUP, HONG)
        assert not await place.store.memories.has_any(ELSEWHERE, HONG)
