from __future__ import annotations

from msgspec.structs import replace

from bot.domain.segments import Picture, Quote, Text
from bot.wiring.background import background
from tests.bot.studio import OWNER, studio
from tests.cases import each_case
from tests.fakes import BOT, GROUP, said, until


@each_case(
    ("text", "user", "where", "is_taken"),
    [
        ("发 D1", 999, OWNER, True),
        ("edit d1 周日", 999, OWNER, True),
        ("发", 999, OWNER, False),
        ("发 D1", 777, OWNER, False),
        ("发 D1", 999, GROUP, False),
    ],
)
async def test_only_an_owner_in_private_is_heard_on_drafts(text: str, user: int, where: object, is_taken: bool) -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        here = OWNER if where == OWNER else GROUP
        message = said(text, user=user, where=here, message_id="m")
        assert made.desks.take(message) is is_taken
        assert await made.desks.take_later(message) is is_taken


async def test_a_word_that_quotes_a_draft_needs_no_number_and_nothing_but_words_is_one() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        shown = said("[草稿 D1 群]\n…", user=BOT, where=OWNER, message_id="shown")
        made.history.know(shown)
        quoting = (Quote("shown"), Text("发"))
        assert not made.desks.take(said((*quoting, Picture("a.png")), user=999, where=OWNER))
        assert made.desks.take(said(quoting, user=999, where=OWNER, message_id="m"))
        async with background(made.desk.run()):
            await until(lambda: len(made.shown) == 2)
        assert made.shown[-1] == "D1 发出去了。"


async def test_a_word_from_before_a_draft_means_another_of_that_number() -> None:
    async with studio() as made:
        made.clock.time += 3600
        made.desks.take(replace(said("hi", where=OWNER), time=made.clock.time))  # the server's clock is ours
        await made.would_say(Text("周六"))
        assert not made.desks.take(said("发 D1", user=999, where=OWNER, message_id="m"))
