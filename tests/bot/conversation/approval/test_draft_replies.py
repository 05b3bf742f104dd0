from __future__ import annotations

from msgspec.structs import replace

from bot.core.segments import Picture
from frostagent.cancellation import background
from frostagent.types.speech import Quote, Text
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
        assert made.owner_replies.take(message) is is_taken
        assert await made.owner_replies.take_later(message) is is_taken


async def test_a_word_that_quotes_a_draft_needs_no_number_and_nothing_but_words_is_one() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        shown = said("[草稿 D1 群]\n…", user=BOT, where=OWNER, message_id="shown")
        made.history.know(shown)
        quoting = (Quote("shown"), Text("发"))
        assert not made.owner_replies.take(said((*quoting, Picture("a.png")), user=999, where=OWNER))
        assert made.owner_replies.take(said(quoting, user=999, where=OWNER, message_id="m"))
        async with background(made.desk.run()):
            await until(lambda: len(made.shown) == 2)
        assert made.shown[-1] == "D1 发出去了。"


async def test_a_word_whose_quote_nobody_can_read_means_the_only_draft_that_waits() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        publish = said((Quote("gone"), Text("发")), user=999, where=OWNER, message_id="m")
        assert not made.owner_replies.take(publish)
        assert not await made.owner_replies.take_later(said("发", user=999, where=OWNER))  # alone it is talk
        assert await made.owner_replies.take_later(publish)
        async with background(made.desk.run()):
            await until(lambda: len(made.shown) == 2)
        assert made.shown[-1] == "D1 发出去了。"
        for words in ("周日", "周一"):
            await made.would_say(Text(words))
        change = said((Quote("gone"), Text("改 周二")), user=999, where=OWNER, message_id="m")
        assert await made.owner_replies.take_later(change)
        assert await made.owner_replies.take_later(said("发 D0", user=999, where=OWNER))
        async with background(made.desk.run()):
            await until(lambda: len(made.shown) == 6)
        assert "可能指 D2、D3" in made.shown[4]
        assert "比如「改 D2」" in made.shown[4]
        assert made.shown[5].startswith("没有编号为 D0 的草稿")


async def test_a_word_that_was_missed_decides_nothing_and_is_asked_for_again() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        for text, number in (("发 D1", 2), ("发 D9", 2)):
            missed = said(text, user=999, where=OWNER, message_id=text)
            made.desk._server_clock.add_missed(missed)
            assert made.owner_replies.take(missed)
            await made.outbox.wait_idle()
            assert len(made.shown) == number
        assert made.shown[-1] == "这条回复是断线时发的，没有算数；D1 还在等，要发请再回复一次。"
        assert made.heard == []


async def test_a_word_from_before_a_draft_means_another_of_that_number() -> None:
    async with studio() as made:
        made.clock.time += 3600
        made.owner_replies.take(replace(said("hi", where=OWNER), time=made.clock.time))  # the server's clock is ours
        await made.would_say(Text("周六"))
        assert not made.owner_replies.take(said("发 D1", user=999, where=OWNER, message_id="m"))
