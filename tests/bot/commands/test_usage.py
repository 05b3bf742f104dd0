from __future__ import annotations

from bot.commands.usage import DAY, usage_command
from tests.bot.commands.books import PaperBooks
from tests.bot.commands.typed import MING, NOW, OWNER, lines
from tests.fakes import GROUP

LINE = "3 次请求，1.2k token（缓存 75%），$0.0021"


async def test_what_a_chat_took_is_told_for_today_a_week_and_a_month() -> None:
    books = PaperBooks()
    assert await lines(usage_command(books)) == [
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
    assert (await lines(usage_command(books), "我"))[0] == "你问的问题用了："
    assert {(where, asker) for _, where, asker in books.asked} == {(None, MING)}
    assert await lines(usage_command(books), "all") == ["全部的账只给主人看。"]
    books.asked.clear()
    assert (await lines(usage_command(books), "all", user=OWNER, chinese=False))[:2] == [
        "In all:",
        "today: 3 requests, 1.2k tokens (75% cached), $0.0021",
    ]
    assert {(where, asker) for _, where, asker in books.asked} == {(None, None)}


async def test_books_that_cannot_be_read_are_told_in_one_line() -> None:
    assert await lines(usage_command(PaperBooks(away=True))) == ["现在读不到账。"]
