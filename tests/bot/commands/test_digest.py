from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from bot.commands.digest import LONGEST, NO_NUMBER, WAITS, YESTERDAY, Standing, digest_command, told_of
from bot.core.calendar_days import midnight
from bot.core.command import AWAY
from bot.core.journal import ENDINGS
from bot.core.language import Language
from bot.core.query_results import DaySum, Spender, UsageSum
from tests.bot.commands.books import PaperBooks
from tests.bot.commands.typed import NOW, lines
from tests.cases import each_case
from tests.fakes import GROUP, PRIVATE

TODAY = DaySum(
    turns=(("answered", 2), ("silent", 1)),
    dropped=(("nobody came to it in time", 1), ("rate", 4)),
    failed=(("auth", "t7"), ("bug", "t6"), ("auth", "t5")),
    people=(Spender(777, "名字长得一眼看不完的人", 900, 0.25), Spender(888, "", 10, 0.0)),
    groups=(Spender(4242, "", 1100, 0.5),),
    models=(("demo", UsageSum(3, 1000, 500, 200, 0.5)),),
    published=(("主人(999)", 2), ("", 1)),
)
BEFORE = DaySum(turns=(("answered", 9),), models=(("demo", UsageSum(1, 10, 0, 1, 0.25)),))


async def stands() -> Standing:
    return Standing(waiting={"call": 0, "friend": 1, "draft": 2}, free=3 * 2**29)


async def test_a_day_is_told_beside_the_one_before() -> None:
    books = PaperBooks(days=(TODAY, BEFORE))
    assert await lines(digest_command(books, stands), where=PRIVATE) == [
        "今天：8 个问题，答了 2 个（昨天 9），沉默 1 次，没有答 5 个",
        "等主人发话的：好友申请 1, 草稿 2",
        "磁盘还剩 1.5 GB",
        "demo：1.2k token（缓存 50%），$0.5000（昨天 11 token，$0.2500）",
        "草稿发了：主人(999) 2，主人 1",
        "没有答：rate 4, 轮到它时已经太久了 1",
        "出错 auth t7 t5",
        "出错 bug t6",
        "用得最多的群：4242 $0.50",
        "用得最多的人：名字长得一眼看不完的(777) $0.25, 888 10",
    ]
    assert books.asked == [(midnight(NOW), None, None), (midnight(NOW, later=-1), None, None)]


def test_answers_that_did_not_arrive_are_no_answers_of_a_day() -> None:
    day = DaySum(turns=(("answered", 4), ("not_delivered", 3), ("silent", 1), ("unconfirmed", 1)))
    told = [told_of(day, BEFORE, YESTERDAY, one).splitlines()[0] for one in Language]
    assert told == [
        "昨天：9 个问题，答了 4 个（前天 9），沉默 1 次，没送到 3 个，QQ 没确认 1 个",
        "Yesterday: 9 questions, 4 answered (the day before 9), silent 1, not delivered 3, not confirmed by QQ 1",
    ]


@each_case("chinese", [True, False])
def test_whatever_became_of_the_questions_of_a_day_adds_up_to_them(chinese: bool) -> None:
    counts = {str(ending): 3 + number for number, ending in enumerate(ENDINGS)} | {"of_tomorrow": 50}
    turns = (*counts.items(),)
    dropped = tuple((f"reason {number}", 40 + number) for number in range(7))
    day = DaySum(turns=turns, dropped=dropped)
    lines = told_of(day, DaySum(), YESTERDAY, Language.CHINESE if chinese else Language.ENGLISH).splitlines()
    first = re.sub(r"（.*?）|\(.*?\)", "", lines[0])
    whole, *parts = map(int, re.findall(r"\d+", first))
    assert whole == sum(parts) == sum(count for _, count in (*turns, *dropped))
    reasons = [int(number) for number in re.findall(r" (\d+)(?:,|$)", lines[1])]
    assert sum(reasons) == parts[-1] == day.unanswered


def test_of_each_model_tokens_and_cost_are_told_beside_those_of_before_also_where_nobody_knows_a_price() -> None:
    def of(model: str, *used: UsageSum) -> str:
        now, then = (DaySum(models=((model, one),)) if one != UsageSum() else DaySum() for one in used)
        return told_of(now, then, YESTERDAY, Language.ENGLISH).splitlines()[1]

    priced = UsageSum(requests=2, prompt=90, completion=10, cost=0.25)
    assert of("m", priced, priced) == "m: 100 tokens (0% cached), $0.2500 (the day before 100 tokens, $0.2500)"
    assert of("m", priced, UsageSum()) == "m: 100 tokens (0% cached), $0.2500 (the day before 0)"
    free = UsageSum(requests=2, prompt=90, completion=10, unpriced=2)
    assert of("m", free, free) == "m: 100 tokens (0% cached), $? (the day before 100 tokens, $?)"


def test_parts_of_a_cluster_that_said_nothing_are_told() -> None:
    def both(absent: int) -> list[str]:
        standing = Standing(waiting={"call": 1}, absent=absent)
        return [line for way in Language for line in told_of(TODAY, BEFORE, YESTERDAY, way, standing).splitlines()[1:3]]

    assert both(2) == [
        "等主人发话的：调用 1",
        "集群里有 2 个分区没有回答，那里等着的没算进来",
        "Waiting for an owner: calls 1",
        "Parts of the cluster that did not report what is waiting: 2",
    ]
    assert "集群" not in "".join(both(0))


async def test_only_in_private_and_only_what_can_be_read_is_told() -> None:
    assert await lines(digest_command(PaperBooks(), stands)) == ["这个请私聊问我。"]
    assert await lines(digest_command(PaperBooks(), stands), where=PRIVATE) == [AWAY.zh]
    assert await lines(digest_command(PaperBooks(), stands), "x", where=PRIVATE) == [NO_NUMBER.zh]
    books = PaperBooks(days=(TODAY, BEFORE))
    told = await lines(digest_command(books, stands), str(GROUP.session_id), where=PRIVATE)
    assert not any("磁盘" in line for line in told)
    assert [where for _, where, _ in books.asked] == [GROUP, GROUP]


words = st.text(max_size=300)
numbers = st.integers(0, 2**62)
takers = st.lists(st.builds(Spender, numbers, words, numbers, st.floats(0, 1e9)), max_size=5).map(tuple)
counted = st.lists(st.tuples(words, numbers), max_size=30).map(tuple)
sums = st.builds(UsageSum, numbers, numbers, numbers, numbers, st.floats(0, 1e9), numbers)
days = st.builds(
    DaySum,
    turns=st.lists(st.tuples(st.sampled_from(ENDINGS).map(str) | words, numbers), max_size=30).map(tuple),
    dropped=counted,
    failed=st.lists(st.tuples(words, words), max_size=5).map(tuple),
    models=st.lists(st.tuples(words, sums), max_size=9).map(tuple),
    people=takers,
    groups=takers,
    published=counted,
)


@given(days, days, st.booleans())
def test_a_digest_is_short_whatever_people_and_models_are_called(day: DaySum, before: DaySum, is_chinese: bool) -> None:
    language = Language.CHINESE if is_chinese else Language.ENGLISH
    told = told_of(day, before, YESTERDAY, language, Standing(dict.fromkeys(WAITS, day.questions), day.unanswered))
    assert len(told) < LONGEST
    assert told.startswith(("昨天：", "Yesterday: "))


def test_a_digest_of_any_length_stays_under_the_most_and_shows_where_it_was_cut() -> None:
    for length in range(800, 900):
        day = DaySum(models=(("m" * length, UsageSum(requests=1, prompt=1)),))
        told = told_of(day, DaySum(), YESTERDAY, Language.CHINESE)
        assert len(told) < LONGEST == 900
        assert told.endswith(("（前天 0）", "…"))
