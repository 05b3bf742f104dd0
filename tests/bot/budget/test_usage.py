from __future__ import annotations

from bot.budget.commands import DAY, usage_command, used_words
from bot.budget.limits import Amount, Cap, DayLimits
from tests.bot.budget.till import Till, till_of
from tests.bot.commands.books import PaperBooks
from tests.bot.commands.typed import MING, NOW, OWNER, asked, lines
from tests.fakes import GROUP

SPENDING = Till(DayLimits()).spending
LINE = "3 次请求，1.2k token（缓存 75%），$0.0021"


async def test_what_a_chat_took_is_told_for_today_a_week_and_a_month() -> None:
    books = PaperBooks()
    assert await lines(usage_command(books, SPENDING)) == [
        "这里用了：",
        f"今天：{LINE}",
        f"7 天：{LINE}",
        f"30 天：{LINE}",
    ]
    today, week, month = (since for since, *_ in books.asked)
    assert (NOW - week, NOW - month) == (7 * DAY, 30 * DAY)
    assert 0 <= NOW - today < DAY
    assert {(where, asker) for _, where, asker in books.asked} == {(GROUP, None)}


async def test_one_can_ask_for_oneself_and_the_owner_for_all() -> None:
    books = PaperBooks()
    assert (await lines(usage_command(books, SPENDING), "我"))[0] == "你问的问题用了："
    assert {(where, asker) for _, where, asker in books.asked} == {(None, MING)}
    assert await lines(usage_command(books, SPENDING), "all") == ["全部的账只给主人看。"]
    books.asked.clear()
    assert (await lines(usage_command(books, SPENDING), "all", user=OWNER, chinese=False))[:2] == [
        "In all:",
        "today: 3 requests, 1.2k tokens (75% cached), $0.0021",
    ]
    assert {(where, asker) for _, where, asker in books.asked} == {(None, None)}


async def test_books_that_cannot_be_read_are_told_in_one_line() -> None:
    assert await lines(usage_command(PaperBooks(away=True), SPENDING)) == ["现在读不到账。"]


async def test_the_limits_that_count_are_told_with_how_far_they_are_used() -> None:
    till = await till_of(DayLimits(Cap(tokens=1000), Cap(2.0, 4000), Cap(20.0)))
    till.takes(500, cost=0.5)
    usage = usage_command(PaperBooks(), till.spending)
    group, mine = "本群每天最多 $2, 4.0k token，今天用了 25%", "你每天最多 1.0k token，今天用了 50%"
    assert (await lines(usage))[4:] == [group, mine]
    assert (await lines(usage, "me"))[4:] == [mine]
    assert (await lines(usage, user=OWNER))[4:] == [group]
    assert (await lines(usage, "all", user=OWNER, chinese=False))[4:] == ["all: at most $20 a day, 2% used today"]


def test_of_a_limit_that_is_not_all_used_it_is_never_said_that_it_is() -> None:
    told = [used_words(asked(), "#1", Cap(tokens=1000), Amount(taken)) for taken in (0, 996, 999, 1000, 1007)]
    assert [line.rpartition("用了 ")[2] for line in told] == ["0%", "99%", "99%", "100%", "100%"]
