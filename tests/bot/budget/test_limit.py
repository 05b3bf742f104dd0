from __future__ import annotations

from bot.budget.commands import EXEMPT, HOW, NOBODY, limit_command, parse_limit
from bot.budget.limits import NO_CAP, Cap, DayLimits
from bot.core.command import NOT_NOW, Command
from bot.memory.speakers import Speakers
from frostagent.types.traits import Audience
from tests.bot.budget.till import Till, till_of
from tests.bot.commands.typed import MING, OWNER, lines
from tests.cases import each_case
from tests.fakes import GROUP, PRIVATE

USUAL = DayLimits(Cap(1.0), Cap(tokens=5000), Cap(20.0))


async def desk(limits: DayLimits = USUAL) -> tuple[Till, Command]:
    till, speakers = await till_of(limits), Speakers(store=(await till_of(limits)).store)
    speakers.learn(GROUP, ())
    for user in (OWNER, MING):
        speakers.meet(GROUP, user, "小明")
    return till, limit_command(till.spending, speakers, frozenset({OWNER}))


async def test_an_owner_sets_and_lifts_a_limit_of_a_person_and_of_a_group() -> None:
    till, limit = await desk()
    assert limit.audience is Audience.OWNER
    till.takes(100, cost=0.5)
    assert await lines(limit, "#2") == ["#2每天最多 $1，今天用了 50%"]
    assert await lines(limit, "#2", "$5") == ["好：#2每天最多 $5，今天用了 10%"]
    assert await lines(limit, "#2", "200k") == ["好：#2每天最多 $1, 200.0k token，今天用了 50%"]
    assert await lines(limit, "@777", "off", chinese=False) == ["Fine: @777: no limit"]
    assert await lines(limit, "群", "5") == ["好：群 4242每天最多 $5, 5.0k token，今天用了 10%"]
    assert await lines(limit, "@777", "照旧", where=PRIVATE) == ["好：@777每天最多 $1，今天用了 50%"]
    assert await lines(limit, "group", "4242", "usual", where=PRIVATE) == [
        "好：群 4242每天最多 5.0k token，今天用了 2%"
    ]
    assert till.spending.own.all() == {}
    till.store.trouble = True
    assert await lines(limit, "#2", "off") == [NOT_NOW.zh]


async def test_a_limit_of_today_is_over_with_the_day_and_the_one_for_good_holds_again() -> None:
    till, limit = await desk(DayLimits())
    assert not till.spending.has_limits
    await lines(limit, "#2", "5")
    assert till.spending.has_limits
    assert await lines(limit, "#2", "今天") == ["好，只管今天：#2每天不限"]
    till.clock.time = till.spending.ends() - 1
    assert till.spending.cap(MING) == NO_CAP
    till.clock.time += 1
    assert till.spending.cap(MING) == Cap(5.0)


async def test_what_means_nobody_or_nothing_is_told_and_an_owner_has_none() -> None:
    till, limit = await desk()
    for nobody in ("#9", "#0", "#" + "9" * 19, "#" + "9" * 5000):
        assert await lines(limit, nobody, "5") == [NOBODY.zh]
    for no_account in ("@0", "@" + "9" * 20, "@" + "9" * 5000):
        assert await lines(limit, no_account, "5") == HOW.zh.splitlines()
    assert await lines(limit, "#1", "5") == [EXEMPT.zh]
    for words in (("5",), ("group", "5"), ("20002", "much"), ("20002", "0"), ("20002", "$5k"), ("20002", "0.5t")):
        assert await lines(limit, *words, where=PRIVATE) == HOW.zh.splitlines()
    assert till.spending.own.all() == {}


async def test_without_words_it_lists_them_in_a_group_only_what_is_its() -> None:
    _, limit = await desk()
    await lines(limit, "20002", "5")
    usual = ["每人每天：$1", "每群每天：5.0k token", "合计每天最多 $20，今天用了 0%"]
    assert await lines(limit) == [*usual, *HOW.zh.splitlines()]
    assert await lines(limit, where=PRIVATE) == [*usual, "20002每天最多 $5，今天用了 0%", *HOW.zh.splitlines()]


@each_case(
    ("words", "cost", "tokens"),
    [("0.25", 0.25, None), ("3 万", None, 30_000), ("1.5M tokens", None, 1_500_000), ("900t", None, 900)],
)
def test_an_amount_is_of_dollars_or_of_tokens(words: str, cost: float | None, tokens: int | None) -> None:
    wanted = parse_limit(tuple(words.split()))
    assert wanted is not None
    assert wanted.cap is not None
    assert (wanted.cap.cost, wanted.cap.tokens, wanted.today) == (cost, tokens, False)
