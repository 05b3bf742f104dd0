from __future__ import annotations

from msgspec.structs import replace

from bot.approvals.decision import Reply
from bot.approvals.drafts import read_draft_reply
from bot.core.segments import Picture
from frostagent.cancellation import background
from frostagent.types.speech import Quote, Text
from tests.bot.approvals.studio import OWNER, studio
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
        assert made.decisions.take_reply(message) is is_taken
        assert await made.decisions.take_reply_later(message) is is_taken


async def test_a_word_that_quotes_a_draft_needs_no_number_and_nothing_but_words_is_one() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        shown = said("[草稿 D1 群]\n…", user=BOT, where=OWNER, message_id="shown")
        made.history.know(shown)
        quoting = (Quote("shown"), Text("发"))
        assert not made.decisions.take_reply(said((*quoting, Picture("a.png")), user=999, where=OWNER))
        assert made.decisions.take_reply(said(quoting, user=999, where=OWNER, message_id="m"))
        async with background(made.drafts.run()):
            await until(lambda: len(made.shown) == 2)
        assert made.shown[-1] == "D1 发出去了。"


async def test_a_word_whose_quote_nobody_can_read_means_the_only_draft_that_waits() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        publish = said((Quote("gone"), Text("发")), user=999, where=OWNER, message_id="m")
        assert not made.decisions.take_reply(publish)
        assert not await made.decisions.take_reply_later(said("发", user=999, where=OWNER))  # alone it is talk
        assert await made.decisions.take_reply_later(publish)
        async with background(made.drafts.run()):
            await until(lambda: len(made.shown) == 2)
        assert made.shown[-1] == "D1 发出去了。"
        for words in ("周日", "周一"):
            await made.would_say(Text(words))
        change = said((Quote("gone"), Text("改 周二")), user=999, where=OWNER, message_id="m")
        assert await made.decisions.take_reply_later(change)
        assert await made.decisions.take_reply_later(said("发 D0", user=999, where=OWNER))
        async with background(made.drafts.run()):
            await until(lambda: len(made.shown) == 6)
        assert "可能指 D2、D3" in made.shown[4]
        assert "比如「改 D2」" in made.shown[4]
        assert made.shown[5].startswith("没有编号为 D0 的草稿")


async def test_a_word_that_was_missed_decides_nothing_and_is_asked_for_again() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        for text, number in (("发 D1", 2), ("发 D9", 2)):
            missed = said(text, user=999, where=OWNER, message_id=text)
            made.server_clock.add_missed(missed)
            assert made.decisions.take_reply(missed)
            await made.outbox.wait_idle()
            assert len(made.shown) == number
        assert made.shown[-1] == "这条回复是断线时发的，没有算数；D1 还在等，要发请再回复一次。"
        assert made.heard == []


async def test_a_word_from_before_a_draft_means_another_of_that_number() -> None:
    async with studio() as made:
        made.clock.time += 3600
        made.decisions.take_reply(replace(said("hi", where=OWNER), time=made.clock.time))  # the server's clock is ours
        await made.would_say(Text("周六"))
        assert not made.decisions.take_reply(said("发 D1", user=999, where=OWNER, message_id="m"))


@each_case(
    ("text", "word"),
    [
        ("发 D7", Reply("publish", 7)),
        ("发d7。", Reply("publish", 7)),
        ("发布 #D７", Reply("publish", 7)),
        ("Send D7!", Reply("publish", 7)),
        ("发", Reply("publish", None)),
        ("发 D0", Reply("publish", 0)),
        ("发 D7 吧", None),
        ("发 D7x", None),
        ("发财", None),
        ("请发 D7", None),
        ("改 D7 周日。\n十点", Reply("edit", 7, "周日。\n十点")),
        ("改D7：周日", Reply("edit", 7, "周日")),
        ("edit D7 Sunday", Reply("edit", 7, "Sunday")),
        ("改 D7", Reply("edit", 7)),
        ("改 周日", Reply("edit", None, "周日")),
        ("改天", None),
        ("同意 A7", None),
    ],
)
def test_a_word_on_a_draft_is_nothing_else_than_that(text: str, word: Reply | None) -> None:
    assert read_draft_reply(text) == word
