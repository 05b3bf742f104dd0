from __future__ import annotations

from bot.commands.digest import LONGEST, NO_NUMBER, digest_command
from bot.commands.phrases import AWAY
from bot.domain.books import DaySum, UsageSum
from bot.policy.days import midnight
from tests.bot.commands.books import PaperBooks
from tests.bot.commands.typed import NOW, lines
from tests.fakes import GROUP, PRIVATE

TODAY = DaySum(
    questions=3,
    answered=2,
    dropped=(("nobody came to it in time", 1), ("rate", 4)),
    failed=(("auth", "t7"),),
    models=(("demo", UsageSum(3, 1000, 500, 200, 0.5)),),
)
BEFORE = DaySum(answered=9, models=(("demo", UsageSum(1, 10, 0, 1, 0.25)),))


async def test_a_day_is_told_beside_the_one_before() -> None:
    books = PaperBooks(days=(TODAY, BEFORE))
    assert await lines(digest_command(books), where=PRIVATE) == [
        "今天：3 个问题，答了 2 个（昨天 9）",
        "demo：1.2k token（缓存 50%），$0.5000（昨天 $0.2500）",
        "没有答：rate 4, 轮到它时已经太久了 1",
        "出错 auth t7",
    ]
    assert books.asked == [(midnight(NOW), None, None), (midnight(NOW, later=-1), None, None)]


async def test_only_in_private_and_only_what_can_be_read_is_told() -> None:
    assert await lines(digest_command(PaperBooks())) == ["这个请私聊问我。"]
    assert await lines(digest_command(PaperBooks()), where=PRIVATE) == [AWAY[0]]
    assert await lines(digest_command(PaperBooks()), "x", where=PRIVATE) == [NO_NUMBER[0]]
    books = PaperBooks(days=(TODAY, BEFORE))
    await lines(digest_command(books), str(GROUP.session_id), where=PRIVATE)
    assert [where for _, where, _ in books.asked] == [GROUP, GROUP]


async def test_a_digest_is_short() -> None:
    many = DaySum(dropped=tuple((f"reason {number}", 1) for number in range(200)))
    told = await lines(digest_command(PaperBooks(days=(many, BEFORE))), where=PRIVATE)
    assert len("\n".join(told)) < LONGEST
