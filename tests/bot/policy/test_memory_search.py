from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.core.memories import StoredFact
from bot.policy.memory_rules import MOST, characters, rank_facts, terms
from frostagent.models.tokens import estimate_text
from tests.fakes import GROUP

MING, HONG = 777, 888
ROWS = 5  # as it is specified


def fact(text: str, subject: int = 0, used: float = 0.0) -> StoredFact:
    return StoredFact(memory_id=text, scope=GROUP, subject=subject, author=MING, text=text, used=used)


def test_chinese_is_found_by_pairs_of_characters_and_the_rest_by_words() -> None:
    assert terms("小明对花生过敏") == ("小明", "明对", "对花", "花生", "生过", "过敏")
    assert terms("Ming 养了 cats, ＧＰＴ-4!") == ("ming", "养了", "cats", "gpt", "4")
    assert terms("猫？") == ("猫",)
    assert terms("the what 什么") == ()
    assert characters("猫呢 还是 狗") == ("狗",)


@given(st.text())
def test_any_text_has_few_words_each_once(text: str) -> None:
    found = terms(text)
    assert len(found) == len(set(found)) <= MOST
    assert all(found)


def told(question: str, *facts: StoredFact, asker: int = MING) -> list[str]:
    return [one.text for one in rank_facts(facts, question, asker=asker)]


def test_what_has_more_of_the_question_is_told_first_and_what_has_none_of_it_not() -> None:
    facts = (fact("小红喜欢爬山"), fact("小明对花生过敏"), fact("花生是小红带来的"))
    assert told("小明吃花生吗", *facts) == ["小明对花生过敏", "花生是小红带来的"]


def test_of_equal_ones_the_askers_own_come_first_then_the_latest_used() -> None:
    facts = (fact("有猫一", HONG, used=3.0), fact("有猫二", HONG, used=9.0), fact("有猫三", MING, used=1.0))
    assert told("谁有猫", *facts) == ["有猫三", "有猫二", "有猫一"]


def test_a_single_character_finds_too() -> None:
    assert told("猫", fact("小明养了一只猫"), fact("小红养狗")) == ["小明养了一只猫"]


def test_few_are_told_each_once_and_within_their_tokens() -> None:
    assert len(told("花生", *(fact(f"花生 {number}") for number in range(20)))) == ROWS
    assert told("花生", fact("花生好吃"), fact("花生好吃", HONG)) == ["花生好吃"]
    assert len(told("花生", *(fact(f"花生{number}" * 40) for number in range(5)))) < ROWS
    long = [fact(f"花生{number}" + "好" * 148) for number in range(4)]
    weight = estimate_text(long[0].text)
    assert len(told("花生", *long)) == 300 // weight < 330 // weight  # tokens, as it is specified
    again = fact(long[0].text, HONG)
    assert len(told("花生", long[0], again, *long[1:])) == 300 // weight
