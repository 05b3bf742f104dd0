from __future__ import annotations

import asyncio

import pytest

from bot.approvals.decision import Reply
from bot.core.actions import MergedForward, SendMessage
from bot.core.errors import ActionRefused, ActionUnanswered
from bot.core.journal import MessageErased, SendChanged, SendQueued, SendState, Spoken
from bot.memory.drafts import LASTS
from frostagent.cancellation import background
from frostagent.types.speech import Attachment, Quote, Text
from tests.bot.approvals.studio import QUESTION, Studio, studio
from tests.cases import each_case
from tests.fakes import GROUP, RecordingTransport, until


async def test_a_young_draft_quotes_its_question_and_an_old_one_nothing() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        await made.would_say(Quote("q1"), Text("周日"))
        made.clock.time = QUESTION.time + 600 - 1
        await made.says("发 D1")
        made.clock.time += 1
        await made.says("发 D2")
        assert made.heard == [(Quote("q1"), Text("周六")), (Text("周日"),)]


@each_case("part", [MergedForward(("一", "二"), "Frost"), Attachment("record", "base64://eA==", "a.amr")])
async def test_what_qq_shows_alone_quotes_nothing(part: MergedForward | Attachment) -> None:
    async with studio() as made:
        await made.would_say(part)
        await made.says("发 D1")
        assert made.heard == [(part,)]


async def test_what_is_published_is_told_as_said_and_written_down_with_its_end() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        await made.outbox.wait_idle()
        before = len(made.store.entries)
        assert (await made.says("改 D1 周日\n十点")).words == "D1 改好发出去了。"
        entries = [entry.type for entry in made.store.entries[before : before + 3]]
        assert entries == ["place_set", "message_observed", "send_queued"]
        assert made.told == ["周日\n十点"]


async def test_by_whom_it_was_published_is_written_into_all_its_rows_and_nothing_into_those_that_wait() -> None:
    async with studio() as made:
        both = [SendMessage(GROUP, (Text(words),)) for words in ("周六", "九点")]
        await made.outbox.send_all(both, turn_id="t1", final=True)
        await made.would_say(Text("周日"))
        await made.would_say(Text("周一"))
        await made.says("发 D1")
        await made.says("改 D2 周二")
        assert made.credits == [("published", "主人"), ("published", "主人"), ("reworded", "主人")]
        made.transport.failures.append(ActionRefused("send_msg", retcode=1200, wording="risk"))
        assert (await made.says("发 D3")).kind == "refused"
        assert len(made.credits) == 3


async def test_two_words_at_once_publish_it_once() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        first, second = await asyncio.gather(made.says("发 D1"), made.says("改 D1 周日"))
        assert (first.kind, second.kind) == ("done", "over")
        assert second.words == "D1 已经处理过了：主人 发了。"
        assert len(made.heard) == 1


class SlowServer(RecordingTransport):
    """Takes nothing for a group until it is `taking`."""

    def __init__(self) -> None:
        super().__init__()
        self.taking = asyncio.Event()

    async def send(self, action: SendMessage) -> str:
        if action.conversation == GROUP:
            await self.taking.wait()
        return await super().send(action)


async def test_what_was_asked_for_by_somebody_who_left_is_followed_to_its_end() -> None:
    server = SlowServer()
    made = Studio(transport=server)
    await made.shadow.drafts.start()
    async with asyncio.timeout(30), made.outbox.open(), background(made.drafts.run()):
        await made.would_say(Text("周六"))
        await made.outbox.wait_idle()
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(made.says("发 D1"))
            await until(lambda: any(one.published for _, one in made.shadow.drafts.open.values()))
            asking.cancel()
        server.taking.set()
        await until(lambda: not made.shadow.drafts.open)
        assert (await made.says("发 D1")).words == "D1 已经处理过了：主人 发了。"
        assert made.heard == [(Quote("q1"), Text("周六"))]


async def test_a_draft_that_qq_refuses_waits_on_and_is_not_told_as_said() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        await made.outbox.wait_idle()
        made.transport.failures.append(ActionRefused("send_msg", retcode=1200, wording="risk"))
        assert (await made.says("发 D1")).kind == "refused"
        assert made.told == []
        assert any(isinstance(entry, MessageErased) for entry in made.store.entries)
        assert (await made.says("发 D1")).kind == "done"
        assert made.told == ["周六"]


class PickyServer(RecordingTransport):
    """Refuses what is about Sunday."""

    async def send(self, action: SendMessage) -> str:
        if action.conversation == GROUP and action.words == "周日":
            raise ActionRefused("send_msg", retcode=1200, wording="risk")
        return await super().send(action)


async def test_a_draft_of_which_qq_refuses_a_later_message_is_told_as_published_in_part() -> None:
    made = Studio(transport=PickyServer())
    await made.shadow.drafts.start()
    async with asyncio.timeout(30), made.outbox.open(), background(made.drafts.run()):
        both = [SendMessage(GROUP, (Text(words),)) for words in ("周六", "周日")]
        await made.outbox.send_all(both, turn_id="t1", final=True)
        await made.outbox.wait_idle()
        settled = await made.says("发 D1")
        assert (settled.kind, settled.words) == (
            "refused",
            "D1 只发出去一部分，后面的 QQ 不收：risk。不会再发。",
        )
        assert (await made.says("发 D1")).kind == "over"


async def test_a_draft_whose_fate_nobody_knows_is_not_said_again() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        await made.outbox.wait_idle()
        made.transport.failures.append(ActionUnanswered("send_msg"))
        assert (await made.says("发 D1")).kind == "unanswered"
        assert (await made.says("发 D1")).kind == "over"


async def test_a_draft_whose_question_is_recalled_while_an_owner_publishes_it_is_not_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        await made.outbox.wait_idle()
        spoken = made.store.spoken

        async def recalled_meanwhile(turn_id: str) -> Spoken | None:
            found = await spoken(turn_id)
            made.shadow.recall(GROUP, "q1")
            return found

        monkeypatch.setattr(made.store, "spoken", recalled_meanwhile)
        assert (await made.says("发 D1")).words == "D1 已经处理过了：提问撤回了，没有发。"
        assert made.heard == []


async def test_a_draft_is_left_when_its_day_is_over_or_somebody_says_so() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        await made.would_say(Text("周日"))
        assert (await made.drafts.settle(2, Reply("discard"), by="you")).kind == "done"
        assert (await made.says("发 D2")).words == "D2 已经处理过了：没有发。"
        made.clock.time += LASTS
        assert (await made.says("发 D1")).kind == "late"
        assert made.heard == []


async def test_nothing_is_published_that_is_not_written_down() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        await made.outbox.wait_idle()
        made.store.trouble = True
        assert (await made.says("发 D1")).kind == "busy"
        made.store.trouble = False
        assert made.heard == []
        assert (await made.says("发 D1")).kind == "done"


async def test_a_picture_too_large_for_the_journal_is_published_by_this_process_alone() -> None:
    async with studio() as made:
        await made.would_say(Text("看"), Attachment("image", "base64://Y2F0", "cat.png"))
        made.store._sends = {id_: entry for id_, entry in made.store._sends.items() if not id_.startswith("draft-")}
        made.shadow.drafts._media.clear()  # it was too large to be kept
        assert (await made.says("发 D1")).words.startswith("D1 的图片或文件太大")
        assert (await made.says("改 D1 没有图")).kind == "done"


@each_case(
    ("state", "said"),
    [(SendState.DROPPED, False), (SendState.WITHDRAWN, False), (SendState.CONFIRMED, True), (SendState.UNKNOWN, True)],
)
async def test_a_life_later_what_never_left_waits_and_what_may_have_left_does_not(state: SendState, said: bool) -> None:
    async with studio() as first:
        await first.would_say(Text("周六"))
        await first.outbox.wait_idle()
        store = first.store
        action = SendMessage(GROUP, (Text("周六"),))
        row = SendQueued(send_id="published-1-x", turn_id="t1", action=action, final=True, at=0.0)
        store.put(first.shadow.drafts.publish(1, by="主人(999)", changes=True), row)
    second = Studio(store)
    async with asyncio.timeout(30), second.outbox.open():
        await second.shadow.drafts.start()
        async with background(second.drafts.run()):
            assert (await second.says("发 D1")).kind == "over"  # on its way
            store.put(SendChanged(send_id=row.send_id, state=state, at=0.0))
            drafts = second.shadow.drafts
            await until(lambda: not any(one.published for _, one in drafts.open.values()))
        settled = await second.says("发 D1")
        assert settled.kind == ("over" if said else "done")
        if said:
            assert second.credits == [("reworded", "主人(999)")]
        if state is SendState.CONFIRMED:
            assert settled.words == "D1 已经处理过了：主人(999) 发了。"
