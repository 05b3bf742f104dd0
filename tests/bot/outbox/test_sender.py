from __future__ import annotations

import asyncio

import pytest

from bot.core.actions import SendMessage, SentSegment
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.events import Muted
from bot.core.journal import SendState
from bot.core.segments import Mention, Picture
from bot.outbox.sender import MAX_AGE
from frostagent.types.errors import BotError
from frostagent.types.speech import Attachment, Confirmed, Queued, Quote, Refused, Text, Unknown
from tests.bot.outbox.post import Slow, build_outbox, hello, office, own
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, ManualClock, RecordingStore, RecordingTransport, said, until


def mute_in(where: Conversation, seconds: int) -> Muted:
    return Muted(self_id=BOT, time=0.0, conversation=where, user_id=BOT, operator_id=1, seconds=seconds)


async def test_the_row_says_sending_durably_before_the_frame_leaves() -> None:
    class Watching(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            assert post.states == ["sending"]
            assert post.store.durable == len(post.store.entries)
            return await super().send(action)

    async with office(Watching()) as post:
        assert await post.outbox.send(hello(), turn_id="t1", final=True) == Confirmed("9001")
        assert post.states == ["sending", "confirmed"]


@each_case(
    ("failure", "receipt", "last"),
    [
        (ActionRefused("send", retcode=1200, wording='EventRet:{"result":120}'), "muted: ", "refused"),
        (ActionRefused("send", retcode=1200, wording="不是好友"), "not a friend: ", "refused"),
        (ActionRefused("send", retcode=1200, wording="发送频繁"), "risk control: ", "refused"),
        (ActionRefused("send", retcode=1200, wording="消息过长"), "too long: ", "refused"),
        (ActionRefused("send", retcode=1200, wording="识别URL失败, uri= /x"), "bad media: ", "refused"),
        (ActionRefused("send", retcode=9000, wording=""), "refused with code 9000", "refused"),
    ],
)
async def test_each_refusal_has_its_own_outcome_and_is_not_tried_again(
    failure: BotError, receipt: str, last: str
) -> None:
    async with office() as post:
        post.transport.failures = [failure]
        got = await post.outbox.send(hello())
        assert isinstance(got, Refused)
        assert got.reason.startswith(receipt)
        assert post.states[-1] == last
        assert post.transport.sent == []


async def test_only_a_refusal_for_a_mute_is_told_as_one_and_where() -> None:
    held = []
    async with office() as post:
        post.transport.failures = [
            ActionRefused("send", retcode=1200, wording="消息过长"),
            ActionRefused("send", retcode=1200, wording="消息包含敏感词：禁言"),
            ActionUnanswered("?"),
            ActionRefused("send", retcode=1200, wording='EventRet:{"result":120}'),
        ]
        for text in ("a", "b", "c", "d", "e"):
            await post.outbox.send(hello(text))
            held.append(post.mutes.holds_in(GROUP))
        assert await post.mutes.next_unknown() == GROUP
    assert (held, post.transport.texts) == ([False, False, False, True, True], ["e"])


@each_case(("lifted", "holds"), [(GROUP, False), (Conversation(BOT, "group", 4343), True)])
async def test_a_refusal_that_crosses_the_end_of_the_mute_tells_of_none(lifted: Conversation, holds: bool) -> None:
    async with office(slow := Slow()) as post:
        for where in {GROUP, lifted}:
            post.mutes.apply(mute_in(where, 60))
        post.clock.time += 60
        slow.failures = [ActionRefused("send", retcode=1200, wording='EventRet:{"result":120}')]
        async with asyncio.TaskGroup() as group:
            sent = group.create_task(post.outbox.send(hello()))
            await slow.entered.wait()
            post.mutes.apply(mute_in(lifted, 0))
            slow.gate.set()
        assert isinstance(sent.result(), Refused)
        assert post.mutes.holds_in(GROUP) is holds


async def test_an_unanswered_send_that_nobody_saw_stays_unknown_and_is_never_repeated() -> None:
    async with office() as post:
        post.transport.failures = [ActionUnanswered("?")]
        assert await post.outbox.send(hello()) == Unknown("?")
        assert post.states == ["sending", "unknown"]
        await post.outbox.send(hello("next"))
        assert post.transport.texts == ["next"]


async def test_an_unanswered_send_that_stands_in_the_history_is_confirmed() -> None:
    async with office() as post:
        post.transport.failures = [ActionUnanswered("?")]
        post.transport.histories[GROUP] = (own("hello", "41", ago=3600), own("other", "42"), own(" hello", "43"))
        assert await post.outbox.send(hello()) == Confirmed("43")
        assert post.states[-1] == "confirmed"


async def test_one_message_of_the_history_confirms_one_send_only() -> None:
    async with office() as post:
        post.transport.histories[GROUP] = (own("hello", "43"),)
        post.transport.failures = [ActionUnanswered("?"), ActionUnanswered("?")]
        assert await post.outbox.send(hello()) == Confirmed("43")
        assert await post.outbox.send(hello()) == Unknown("?")


async def test_words_of_the_bot_that_may_have_failed_confirm_nothing() -> None:
    async with office() as post:
        post.transport.failures = [ActionUnanswered("?")]
        post.transport.histories[GROUP] = (own("hello", ""), own("hello", "0"))
        assert await post.outbox.send(hello()) == Unknown("?")


ASKED = SendMessage(GROUP, (Quote("7"), Text("ask "), Mention(8, "小红"), Text(" or "), Mention(9)))
NO_MENTION, NO_QUOTE, EITHER = ((1200, "Get Uid Error"), (1200, "消息不存在"), (200, ""))


@each_case(
    ("refusals", "sent"),
    [
        ([NO_MENTION], [Quote("7"), Text("ask "), Text("@小红"), Text(" or ")]),
        ([NO_QUOTE], [*ASKED.segments[1:]]),
        ([NO_QUOTE, NO_MENTION], [Text("ask "), Text("@小红"), Text(" or ")]),
        ([EITHER], [*ASKED.segments[1:]]),
        ([EITHER, EITHER], [Text("ask "), Text("@小红"), Text(" or ")]),
        ([NO_QUOTE, NO_QUOTE], None),
        ([EITHER, EITHER, EITHER], None),
        ([(1200, "消息过长")], None),
        ([(1200, 'EventRet:{"result":120}')], None),
    ],
)
async def test_what_was_refused_for_a_part_of_it_is_sent_once_more_without_that(
    refusals: list[tuple[int, str]], sent: list[SentSegment] | None
) -> None:
    async with office() as post:
        post.transport.failures = [ActionRefused("send", retcode=code, wording=words) for code, words in refusals]
        receipt = await post.outbox.send(ASKED)
        assert post.transport.failures == []
        assert post.states.count("sending") == 1  # one row, whatever it is sent as
        if sent is None:
            assert isinstance(receipt, Refused)
            assert post.transport.sent == []
            assert receipt.words in (
                refusals[-1][1],
                "refused with code 200",
                "refused with code 1200",
                'EventRet:{"result":120}',
            )
        else:
            assert receipt == Confirmed("9001")
            assert post.transport.sent == [SendMessage(GROUP, tuple(sent))]


async def test_a_plainer_message_that_nobody_confirms_is_looked_for_as_it_was_sent_and_never_repeated() -> None:
    async with office() as post:
        post.transport.failures = [ActionRefused("send", retcode=1200, wording="Get Uid Error"), ActionUnanswered("?")]
        post.transport.histories[GROUP] = (own("ask @小红 or", "41"),)
        assert await post.outbox.send(ASKED) == Confirmed("41")
        post.transport.failures = [ActionRefused("send", retcode=1200, wording="Get Uid Error"), ActionUnanswered("?")]
        assert await post.outbox.send(ASKED) == Unknown("?")
        assert post.transport.sent == []


async def test_a_message_that_is_nothing_but_a_mention_without_a_name_is_not_sent_empty() -> None:
    async with office() as post:
        post.transport.failures = [ActionRefused("send", retcode=1200, wording="Get Uid Error")]
        assert isinstance(await post.outbox.send(SendMessage(GROUP, (Mention(9),))), Refused)
        assert post.transport.sent == []


REMOVED = ActionRefused("send", retcode=1200, wording='EventRet:{"result":110,"errMsg":"你已被移出该群"}')


async def test_a_place_rests_where_nothing_can_be_said_until_something_arrives_or_a_day_has_passed() -> None:
    held, told = [], list[tuple[Conversation, str]]()
    async with office() as post:
        post.outbox.unreachable.follow(lambda where, reason: told.append((where, reason)))

        def note() -> None:
            held.append((post.outbox.unreachable.holds_in(GROUP), post.outbox.unreachable.holds_in(PRIVATE)))

        for refused in (True, False, True, True):
            post.transport.failures = [REMOVED] if refused else []
            receipt = await post.outbox.send(hello())
            assert isinstance(receipt, Refused) is refused
            assert not isinstance(receipt, Refused) or receipt.words == "你已被移出该群"
            note()
            post.outbox.unreachable.tell(GROUP)
        post.clock.time += 24 * 3600
        note()
        assert not post.mutes.holds_in(GROUP)
    assert held == [(True, False), (False, False), (True, False), (True, False), (False, False)]
    assert told == [(GROUP, "not in the group: 你已被移出该群")] * 2


async def test_what_nobody_waits_for_is_not_told_as_lost_as_well_where_the_place_rests() -> None:
    async with office() as post:
        places = list[Conversation]()
        post.outbox.unreachable.follow(lambda where, _reason: places.append(where))
        post.transport.failures = [REMOVED, ActionRefused("send", retcode=1200, wording="no")]
        post.outbox.post(hello("first"), turn_id="t1")
        post.outbox.post(hello("second"), turn_id="t1")
        await post.outbox.wait_idle()
        assert (places, post.told) == ([GROUP], [("second", SendState.REFUSED)])


async def test_media_are_compared_by_their_number() -> None:
    picture = SendMessage(GROUP, (Text("look"), Attachment("image", "base64://aa")))
    seen = said((Text("look"), Picture(file="x")), user=BOT, message_id="5", at=False)
    async with office() as post:
        post.transport.failures = [ActionUnanswered("?"), ActionUnanswered("?")]
        post.transport.histories[GROUP] = (own("look", "4"),)
        assert isinstance(await post.outbox.send(picture), Unknown)
        post.transport.histories[GROUP] = (seen,)
        assert await post.outbox.send(picture) == Confirmed("5")


async def test_while_nobody_is_connected_a_send_waits_and_goes_out_on_the_connection() -> None:
    async with office() as post:
        post.transport.failures = [NotConnected("away")]
        assert isinstance(await post.outbox.send(hello(), patience=0), Queued)
        await until(lambda: "queued" in post.states)
        post.outbox.connected()
        await until(lambda: post.transport.sent)
        assert post.transport.texts == ["hello"]


async def test_each_connection_is_worth_one_attempt() -> None:
    async with office() as post:
        post.transport.failures = [NotConnected("away")] * 2
        assert isinstance(await post.outbox.send(hello("waits"), patience=0), Queued)
        await until(lambda: post.states == ["sending", "queued"])
        post.outbox.connected()
        await until(lambda: post.states == ["sending", "queued"] * 2)
        await post.outbox.send(hello("goes", PRIVATE))
        assert post.transport.texts == ["goes"]
        post.outbox.connected()
        await until(lambda: post.transport.texts == ["goes", "waits"])


async def test_a_connection_that_comes_while_an_attempt_is_under_way_is_not_waited_for_again() -> None:
    class Again(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            if self.failures:
                post.outbox.connected()
            return await super().send(action)

    async with office(Again()) as post:
        post.transport.failures = [NotConnected("it came too late")]
        assert await post.outbox.send(hello()) == Confirmed("9001")
        assert post.states == ["sending", "queued", "sending", "confirmed"]


async def test_a_send_that_waited_too_long_is_dropped() -> None:
    async with office() as post:
        post.transport.failures = [NotConnected("away")] * 3
        task_done = post.outbox.send(hello(), patience=0)
        assert isinstance(await task_done, Queued)
        post.clock.time += MAX_AGE + 1
        await until(lambda: "queued" in post.states)
        post.outbox.connected()
        await until(lambda: "dropped" in post.states)
        assert post.transport.sent == []


async def test_the_pace_is_kept_after_a_burst() -> None:
    async with office(rate=1.0) as post:
        for number in range(5):
            await post.outbox.send(hello(str(number)), patience=60)
        assert len(post.transport.sent) == 5
        assert len(post.clock.slept) == 2
        assert all(0.9 <= wait <= 3 for wait in post.clock.slept)


async def test_equal_words_come_apart_where_a_pace_is_kept() -> None:
    async with office(rate=1.0) as post:
        await post.outbox.send_all([hello("a"), hello("b"), hello("a")])
        assert [wait for wait in post.clock.slept if wait] == [5.0]
    async with office() as post:
        await post.outbox.send_all([hello("a"), hello("a")])
        assert not post.clock.slept


@each_case(("jitter", "waited"), [(0.0, 1.4), (0.5, 2.0), (1.0, 2.6)])
async def test_a_pause_is_up_to_thirty_percent_longer_or_shorter_by_chance(jitter: float, waited: float) -> None:
    clock = ManualClock()
    outbox, _ = build_outbox(RecordingTransport(), RecordingStore(), clock, jitter=jitter)
    async with outbox.open():
        await outbox.send_all([hello("a"), hello("b")], pauses=[0.0, 2.0])
    assert clock.slept == [pytest.approx(waited)]


async def test_a_failure_of_ours_is_one_unknown_send_and_the_rest_goes_on() -> None:
    class Broken(RecordingTransport):
        async def send(self, action: SendMessage) -> str:
            if action == hello("bad"):
                raise ValueError("a bug in an adapter")
            return await super().send(action)

    async with office(Broken()) as post:
        assert await post.outbox.send(hello("bad")) == Unknown("bug: ValueError")
        assert await post.outbox.send(hello("good")) == Confirmed("9001")
        assert post.rows == {"bad": "unknown", "good": "confirmed"}
