from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.core.actions import MergedForward, SendMessage
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.journal import SendQueued
from bot.core.segments import Mention, Picture
from bot.memory.history import History
from bot.outbox.delivery import Delivery
from bot.outbox.pacing import LEAST
from bot.outbox.sender import MAX_AGE, TOO_LATE
from frostagent.types.speech import Attachment, Confirmed, Face, Quote, Refused, Text, Unknown
from tests.bot.outbox.post import Looking, build_outbox
from tests.fakes import (
    BOT,
    GROUP,
    PRIVATE,
    ManualClock,
    RecordingStore,
    RecordingTransport,
    said,
    until,
)

PICTURE = Attachment("image", "base64://aaaa", "a.png")
VOICE = Attachment("record", "base64://bbbb", "b.amr")


class Mouth:
    """A delivery with its outbox."""

    def __init__(self, *, paced: bool, name: str) -> None:
        self.transport, self.store, self.clock = RecordingTransport(), RecordingStore(), ManualClock()
        self.history = History(store=self.store)
        self.outbox, _ = build_outbox(self.transport, self.store, self.clock)
        self.delivery = Delivery(
            outbox=self.outbox,
            history=self.history,
            clock=self.clock,
            paced=paced,
            name=(lambda _: name) if name else None,
        )


@asynccontextmanager
async def speaking(*, paced: bool = False, name: str = "") -> AsyncIterator[Mouth]:
    mouth = Mouth(paced=paced, name=name)
    async with asyncio.timeout(30), mouth.outbox.open():
        yield mouth


async def test_an_answer_in_a_group_quotes_the_question_and_one_in_private_does_not() -> None:
    async with speaking() as mouth:
        await mouth.delivery.answer(said("hi", message_id="55"), "hello", turn_id="t1")
        await mouth.delivery.answer(said("hi", where=PRIVATE), "hello")
        assert mouth.transport.sent == [
            SendMessage(GROUP, (Quote("55"), Text("hello"))),
            SendMessage(PRIVATE, (Text("hello"),)),
        ]
        first, _ = mouth.store.of("send_queued")
        assert isinstance(first, SendQueued)
        assert (first.turn_id, first.final) == ("t1", True)


async def test_after_a_refused_message_the_rest_is_not_sent() -> None:
    async with speaking() as mouth:
        mouth.transport.failures = [ActionRefused("send_group_msg", retcode=1200, wording="禁言")]
        (said_,) = await mouth.delivery.say(GROUP, (VOICE, Text("after")))
        assert isinstance(said_.receipt, Refused)
        assert not said_.may_be_read
        assert mouth.transport.sent == []


async def test_a_send_of_unknown_fate_stops_the_rest() -> None:
    async with speaking() as mouth:
        mouth.transport.failures = [ActionUnanswered("no answer")]
        (said_,) = await mouth.delivery.say(GROUP, (Text("a"), VOICE))
        assert isinstance(said_.receipt, Unknown)
        assert said_.may_be_read
        assert mouth.transport.sent == []


async def test_each_piece_of_a_long_answer_is_a_row_before_the_first_is_delivered() -> None:
    """Else a process that ends between two of them would have kept half an answer."""
    async with speaking() as mouth:
        mouth.transport.failures = [NotConnected("away")]
        async with asyncio.TaskGroup() as group:
            saying = group.create_task(mouth.delivery.answer(said("hi"), "长" * 4000, turn_id="t1"))
            await until(lambda: mouth.store.of("send_changed"))
            assert len(mouth.store.of("send_queued")) == 3
            mouth.outbox.connected()
        assert [type(one.receipt) for one in await saying] == [Confirmed] * 3


async def test_what_was_sent_is_known_when_somebody_quotes_it() -> None:
    async with speaking() as mouth:
        (said_,) = await mouth.delivery.say(GROUP, (Text("a"), PICTURE))
        assert isinstance(said_.receipt, Confirmed)
        known = await mouth.history.find(GROUP, said_.receipt.message_id)
        assert known is not None
        assert known.is_own
        assert known.segments == (Text("a"), Picture(file="a.png"))


async def test_the_pieces_of_one_thing_said_stay_together() -> None:
    async with speaking() as mouth:
        async with asyncio.TaskGroup() as group:
            for name in "ab":
                group.create_task(mouth.delivery.say(GROUP, (Text(f"{name}1"), VOICE, Text(f"{name}2"))))
        assert mouth.transport.texts in (["a1", "", "a2", "b1", "", "b2"], ["b1", "", "b2", "a1", "", "a2"])


async def test_a_short_answer_is_written_as_people_write_and_nothing_comes_between() -> None:
    async with speaking(paced=True) as mouth:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(mouth.delivery.answer(said("hi"), "一二三四五六七八九十\n\n**乙**"))
            group.create_task(mouth.delivery.say(GROUP, (Text("丙\n\n丁"),)))
        assert mouth.transport.texts == ["一二三四五六七八九十", "乙", "丙\n\n丁"]
        assert mouth.clock.slept == [LEAST]
        assert [one.words for one in first.result()] == ["一二三四五六七八九十", "乙"]


LONG = "长" * 1000 + "\n\n" + "话" * 1000


async def test_a_long_answer_is_a_merged_forward_and_its_words_are_known_when_somebody_quotes_it() -> None:
    async with speaking(name="小霜") as mouth:
        (one,) = await mouth.delivery.answer(said("hi"), LONG)
        assert [action.segments for action in mouth.transport.sent] == [
            (MergedForward(("长" * 1000, "话" * 1000), "小霜"),)
        ]
        assert mouth.delivery.count(GROUP, (Text(LONG),)) == 1
        assert one.words == LONG
        known = await mouth.history.find(GROUP, "9001")
        assert known is not None
        assert known.segments == (Text(LONG),)


async def test_a_forward_that_qq_refuses_is_said_in_pieces() -> None:
    async with speaking(name="小霜") as mouth:
        mouth.transport.failures = [ActionRefused("send_group_forward_msg", retcode=1200, wording="no")]
        said_ = await mouth.delivery.answer(said("hi", message_id="7"), LONG)
        assert mouth.transport.texts == ["长" * 1000, "话" * 1000]
        assert mouth.transport.sent[0].segments[0] == Quote("7")
        assert [type(one.receipt) for one in said_] == [Confirmed] * 2


async def test_words_go_on_from_those_before_but_not_from_a_form_of_them_that_qq_refused() -> None:
    async with speaking(name="小霜") as mouth:
        mouth.outbox.screen = seen = Looking()
        trail = ["before"]
        mouth.transport.failures = [ActionRefused("send_group_forward_msg", retcode=1200, wording="no")]
        await mouth.delivery.answer(said("hi", message_id="7"), LONG, trail=trail)
        assert [text for text in seen.earlier if text] == ["before", "before"]
        assert "".join(trail) == "before" + "长" * 1000 + "话" * 1000
        await mouth.delivery.say(GROUP, (Text("more"),), trail=trail)
        assert seen.earlier[-1] == "before" + "长" * 1000 + "话" * 1000
        assert trail[-1] == "more"
        await mouth.delivery.say(GROUP, (Text("nobody's"),))
        assert seen.earlier[-1] == ""


async def test_what_is_said_beside_a_form_that_qq_refuses_stays_part_of_what_was_said() -> None:
    async with speaking(name="小霜") as mouth:
        trail: list[str] = []
        mouth.transport.failures = [ActionRefused("send_group_forward_msg", retcode=1200, wording="no")]
        async with asyncio.TaskGroup() as group:
            for text in (LONG, "beside"):
                group.create_task(mouth.delivery.say(GROUP, (Text(text),), trail=trail))
        assert mouth.transport.texts == ["beside", "长" * 1000, "话" * 1000]
        assert "".join(trail) == "".join(mouth.transport.texts)


async def test_words_go_on_from_none_that_qq_refused_nor_from_the_rest_that_was_not_sent() -> None:
    async with speaking() as mouth:
        mouth.outbox.screen = seen = Looking()
        trail = ["before"]
        mouth.transport.failures = [ActionRefused("send_group_msg", retcode=1200, wording="no")]
        await mouth.delivery.say(GROUP, (Text(LONG),), trail=trail)
        assert not mouth.transport.sent
        await mouth.delivery.say(GROUP, (Text("more"),), trail=trail)
        await mouth.delivery.say(GROUP, (Text("and more"),), trail=trail)
        assert [text for text in seen.earlier if text] == ["before", "before", "beforemore"]


async def test_a_forward_that_may_have_arrived_is_not_said_again() -> None:
    async with speaking(name="小霜") as mouth:
        mouth.transport.failures = [ActionUnanswered("lost")]
        (one,) = await mouth.delivery.answer(said("hi"), LONG)
        assert isinstance(one.receipt, Unknown)
        assert not mouth.transport.sent


async def test_a_forward_that_was_never_on_the_wire_is_not_tried_in_another_form() -> None:
    async with speaking(name="小霜") as mouth:
        mouth.transport.failures = [NotConnected("away")]
        async with asyncio.TaskGroup() as group:
            saying = group.create_task(mouth.delivery.answer(said("hi"), LONG))
            await until(lambda: mouth.store.of("send_changed"))
            mouth.clock.time += MAX_AGE + 1
            mouth.outbox.connected()
        assert [one.receipt for one in saying.result()] == [Refused(TOO_LATE)]
        assert not mouth.transport.sent


async def test_a_temporary_session_takes_no_forward() -> None:
    async with speaking(name="小霜") as mouth:
        await mouth.delivery.say(Conversation(BOT, "private", 777, via_group=4242), (Text(LONG),))
        assert len(mouth.transport.texts) == 2


async def test_people_called_by_name_and_number_are_mentioned_three_at_most_and_in_groups_only() -> None:
    async with speaking() as mouth:
        numbers = [mouth.history.speakers.meet(GROUP, 700 + at, f"人{at}") for at in range(4)]
        called = [f"@人{at}#{number}" for at, number in enumerate(numbers)]
        await mouth.delivery.say(GROUP, (Text(f"{called[0]} **好**"), PICTURE, Text(" ".join(called[1:]))))
        number = mouth.history.speakers.meet(PRIVATE, 777, "小明")
        await mouth.delivery.say(PRIVATE, (Text(f"@小明#{number} 好"),))
        in_group, in_private = mouth.transport.sent
        assert [part.user_id for part in in_group.segments if isinstance(part, Mention)] == [700, 701, 702]
        assert in_group.words == "@人0 好@人1 @人2 @人3"
        assert in_private.segments == (Text("@小明 好"),)


async def test_in_a_forward_people_are_called_by_name() -> None:
    async with speaking(name="小霜") as mouth:
        number = mouth.history.speakers.meet(GROUP, 777, "小明")
        (one,) = await mouth.delivery.say(GROUP, (Text(f"@小明#{number} 看\n\n" + LONG),))
        assert one.words == "@小明 看\n\n" + LONG


async def test_cq_codes_in_words_are_what_they_mean_in_a_group() -> None:
    async with speaking() as mouth:
        mouth.history.speakers.learn(GROUP, ())
        for user, name in ((5, "小明"), (6, "小红"), (7, "阿澈"), (8, "老王")):
            mouth.history.speakers.meet(GROUP, user, name)
        mouth.history.know(said("周六吧", message_id="77"))
        text = "[CQ:reply,id=77][CQ:at,qq=1] 早[CQ:face,id=14][CQ:at,qq=all][CQ:at,qq=99][CQ:image,file=a.png]"
        await mouth.delivery.say(GROUP, (Text(text),))
        await mouth.delivery.answer(said("hi", message_id="55"), "[CQ:reply,id=77]好")
        await mouth.delivery.say(GROUP, (Text("[CQ:reply,id=78]好的"),))
        calls = "".join(f"[CQ:at,qq={user}]" for user in (5, 6, 7, 8))
        await mouth.delivery.say(GROUP, (Text(f"{calls} 开会"),))
        assert [action.segments for action in mouth.transport.sent[:3]] == [
            (Quote("77"), Mention(5, "小明"), Text(" 早"), Face("14")),
            (Quote("55"), Text("好")),
            (Text("好的"),),
        ]
        assert [part.user_id for part in mouth.transport.sent[3].segments if isinstance(part, Mention)] == [5, 6, 7]
        assert mouth.transport.sent[3].words.endswith("@老王 开会")


async def test_cq_codes_elsewhere_are_names_or_nothing_and_in_code_they_stay() -> None:
    async with speaking(name="小霜") as mouth:
        mouth.history.speakers.meet(PRIVATE, 5, "小明")
        mouth.history.speakers.meet(GROUP, 5, "小明")
        await mouth.delivery.say(PRIVATE, (Text("[CQ:at,qq=5] 早"),))
        await mouth.delivery.say(GROUP, (Text("写成 `[CQ:at,qq=all]` 就行，[CQ:at,qq=9]"),))
        assert await mouth.delivery.say(GROUP, (Text("[CQ:image,file=a.png]"),)) == ()
        long = "[CQ:at,qq=5] [CQ:face,id=1]" + "很长\n\n" * 2000
        await mouth.delivery.say(GROUP, (Text(long),))
        one, two, forward = mouth.transport.sent
        assert (one.words, two.words) == ("@小明 早", "写成 [CQ:at,qq=all] 就行，")
        (merged,) = forward.segments
        assert isinstance(merged, MergedForward)
        assert merged.nodes[0].startswith("@小明 很长")
