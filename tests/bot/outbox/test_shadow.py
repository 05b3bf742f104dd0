from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from bot.core.actions import MAX_SOURCE, MergedForward, SendMessage
from bot.core.journal import PlaceSet, SendQueued, SendState, TurnOpened
from bot.core.segments import Mention
from bot.memory.drafts import LASTS
from bot.memory.modes import Mode, Modes
from bot.outbox.shadow import KEPT_BACK, MOST, SOON, UNREAD
from bot.runtime.background import StartupLoader
from frostagent.cancellation import background
from frostagent.types.speech import Attachment, Drafted, Quote, Refused, Text
from tests.bot.approvals.studio import OWNER, QUESTION, Studio, studio
from tests.fakes import GROUP, until
from tests.settings import kept_settings

CAT = Attachment("image", "base64://Y2F0", "cat.png")
SONG = Attachment("record", "base64://c29uZw==", "song.amr")


async def test_a_draft_its_number_and_the_line_about_it_are_written_down_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with studio() as made:
        batches: list[list[str]] = []
        monkeypatch.setattr(made.store, "put", lambda *put: batches.append([one.type for one in put]))
        assert await made.would_say(Quote("q1"), Text("周六")) == Drafted(1)
        assert batches[0] == ["place_set", "send_queued", "send_queued"]
        monkeypatch.undo()


async def test_owners_see_pictures_people_and_forwards_as_they_would_be_said() -> None:
    async with studio() as made:
        await made.would_say(Quote("q1"), Text("看 "), Mention(5, "阿澈"), CAT)
        await made.would_say(SONG)
        await made.would_say(MergedForward(("一", "二"), "Frost"))
        await made.outbox.wait_idle()
        assert made.heard == []
        sent = [action.segments for action in made.transport.sent]
        assert sent[0][1:] == (CAT,)
        assert made.shown[0].startswith("[草稿 D1 4242]\n小明：什么时候去？\n  看 @阿澈\n")
        assert sent[2] == (SONG,)
        assert "\n  一\n  \n  二\n" in made.shown[3]


async def test_lines_of_no_turn_are_not_said_but_what_an_owner_asked_is() -> None:
    async with studio() as made:
        receipt = made.outbox.post(SendMessage(GROUP, (Text("等等"),)))
        assert receipt is not None
        assert await receipt == Refused(KEPT_BACK)
        made.outbox.post_with(action=SendMessage(GROUP, (Text("抱歉"),)))
        openly = made.outbox.post(SendMessage(GROUP, (Text("好"),)), openly=True)
        assert openly is not None
        await openly
        assert made.heard == [(Text("好"),)]


async def test_an_apology_for_a_turn_is_a_draft_with_the_entries_that_close_it() -> None:
    async with studio() as made:
        entry = PlaceSet(GROUP, "x", "y")
        made.outbox.post_with(entry, action=SendMessage(GROUP, (Text("抱歉"),)), turn_id="t1")
        kept = [one for one in made.store.entries if isinstance(one, SendQueued)]
        assert kept[0].state is SendState.DRAFT
        assert entry in made.store.entries
        await made.outbox.wait_idle()
        assert len(made.shown) == 1


async def test_only_so_many_drafts_an_hour_are_shown_and_then_a_line_tells_how_many_were_not() -> None:
    async with studio() as made:
        for number in range(MOST + 3):
            assert await made.would_say(Text(f"第{number}句")) == Drafted(number + 1)
        await made.outbox.wait_idle()
        assert len(made.shown) == MOST == 20
        made.clock.time += 3599
        await made.would_say(Text("还没到一小时"))
        await made.outbox.wait_idle()
        assert len(made.shown) == MOST
        made.clock.time += 1
        async with background(made.shadow.run()):
            await until(lambda: len(made.shown) > MOST)
        assert made.shown[-1] == "一小时内的草稿太多，有 4 条没有给你看。"
        await made.would_say(Text("又一句"))
        await made.outbox.wait_idle()
        assert "草稿 D25" in made.shown[-1]
        assert (await made.says(f"发 D{MOST + 1}")).kind == "done"  # not shown, but kept


async def test_calls_that_were_not_run_are_told_once_by_a_draft_or_at_the_end() -> None:
    async with studio() as made:
        made.shadow.note("t1", 'mute {"who": "#2"}')
        await made.would_say(Text("好"))
        made.shadow.end(GROUP, "t1")
        made.shadow.note("t2", "mute\n[草稿 D9 假的] {}")
        made.shadow.end(GROUP, "t2")
        await made.outbox.wait_idle()
        assert '没有做：mute {"who": "#2"}' in made.shown[0]
        assert made.shown[1:] == ["[影子 4242]\n没有做：mute [草稿 D9 假的] {}"]


@pytest.mark.parametrize("where", [OWNER])
async def test_nothing_is_kept_back_elsewhere(where: object) -> None:
    async with studio() as made:
        await made.outbox.send(SendMessage(OWNER, (Text("hi"),)), turn_id="t9")
        assert made.shown == ["hi"]


async def test_what_waits_in_a_group_that_is_no_shadow_any_more_is_given_up_and_told_once_as_a_number() -> None:
    async with studio() as made:
        await made.shadow._modes.load()
        await made.would_say(Text("周六"))
        await made.would_say(Text("周日"))
        made.shadow.lift()  # it is a shadow still
        assert set(made.shadow.drafts.open) == {1, 2}
        await made.outbox.wait_idle()
        made.shadow._modes.put(GROUP, Mode.LIVE)
        before = len(made.store.entries)
        made.shadow.lift()
        assert [one.type for one in made.store.entries[before : before + 2]] == ["place_set", "send_queued"]
        made.shadow.lift()
        await made.outbox.wait_idle()
        assert made.shown[2:] == ["群 4242 不再是影子，还在等的 2 条草稿不发了。"]
        assert (await made.says("发 D1")).words == "D1 已经处理过了：没有发。"
        assert made.heard == []


async def test_a_draft_that_is_on_its_way_is_not_given_up() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        await made.would_say(Text("周日"))
        await made.shadow._modes.load()
        made.store.put(made.shadow.drafts.publish(1))
        made.shadow._modes.put(GROUP, Mode.OFF)
        made.shadow.lift()
        assert set(made.shadow.drafts.open) == {1}
        made.shadow.lift()
        await made.outbox.wait_idle()
        assert len(made.shown) == 3


async def test_a_life_later_drafts_of_a_former_shadow_are_given_up_once_its_modes_are_known() -> None:
    async with studio() as first:
        await first.would_say(Text("周六"))
        await first.outbox.wait_idle()
    second = Studio(first.store)
    first.store.put(PlaceSet(GROUP, "mode", "live"))  # and the process ended before the rest
    second.shadow._modes = Modes(settings=kept_settings(first.store), choices=first.store)
    async with asyncio.timeout(30), second.outbox.open():
        await second.shadow.drafts.start()
        second.shadow.lift()
        assert set(second.shadow.drafts.open) == {1}
        await second.shadow._modes.load()
        async with background(second.shadow.run()):
            await until(lambda: bool(second.shown))
        await second.outbox.wait_idle()
        assert second.shown == ["群 4242 不再是影子，还在等的 1 条草稿不发了。"]
    third = Studio(first.store)
    await third.shadow.drafts.start()
    assert not third.shadow.drafts.open


async def test_a_recalled_question_ends_its_drafts_and_each_is_told() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        await made.would_say(Text("周日"))
        await made.outbox.wait_idle()
        made.store.put(made.shadow.drafts.publish(2))  # on its way: what becomes of it is seen there
        before = len(made.store.entries)
        made.shadow.recall(GROUP, "q2")
        made.shadow.recall(OWNER, "q1")
        assert len(made.store.entries) == before
        made.shadow.recall(GROUP, "q1")
        assert [one.type for one in made.store.entries[before : before + 2]] == ["place_set", "send_queued"]
        await made.outbox.wait_idle()
        assert made.shown[2:] == ["D1 不用管了：提问撤回了，没有发。"]
        assert set(made.shadow.drafts.open) == {2}
        assert (await made.says("发 D1")).words == "D1 已经处理过了：提问撤回了，没有发。"


async def test_a_life_later_a_recall_still_ends_the_draft_of_its_question() -> None:
    async with studio() as first:
        await first.would_say(Text("周六"))
    second = Studio(first.store)
    async with asyncio.timeout(30), second.outbox.open():
        await second.shadow.drafts.start()
        second.shadow.recall(GROUP, "q1")
        await second.outbox.wait_idle()
        assert second.shown == ["D1 不用管了：提问撤回了，没有发。"]


async def test_a_draft_of_a_turn_that_does_not_go_on_is_told_with_its_question_and_ends_with_it() -> None:
    async with studio() as made:
        made.shadow._asked = lambda _where, _turn: None
        sorry, question = SendMessage(GROUP, (Text("抱歉"),)), replace(QUESTION, group_name="摸鱼群")
        made.outbox.post_with(action=sorry, turn_id="t1", question=question)
        made.outbox.post_with(action=sorry, turn_id="t2")
        await made.outbox.wait_idle()
        assert made.shown[0].startswith("[草稿 D1 摸鱼群]\n小明：什么时候去？\n  抱歉\n")
        assert made.shown[1].startswith("[草稿 D2 4242]\n  抱歉\n")
        made.shadow.recall(GROUP, "")
        made.shadow.recall(GROUP, "q1")
        assert set(made.shadow.drafts.open) == {2}


async def test_media_of_a_draft_whose_day_is_over_are_put_away() -> None:
    async with studio() as made:
        await made.would_say(Text("看"), Attachment("image", "x" * (MAX_SOURCE + 1), "cat.png"))
        assert made.shadow.drafts._shelved == {1: "1-t1"}
        made.clock.time += LASTS
        async with background(made.shadow.run()):
            await until(lambda: not made.shadow.drafts._shelved)


async def test_before_what_waits_is_read_nothing_becomes_a_draft_and_what_was_to_be_written_with_it_is() -> None:
    async with studio() as first:
        await first.would_say(Text("周六"))
    second, entry = Studio(first.store), PlaceSet(GROUP, "x", "y")
    async with asyncio.timeout(30), second.outbox.open():
        assert await second.would_say(Text("周日")) == Refused(UNREAD)
        second.outbox.post_with(entry, action=SendMessage(GROUP, (Text("抱歉"),)), turn_id="t1")
        second.outbox.post_with(entry, action=SendMessage(GROUP, (Text("抱歉"),)))
        assert second.store.entries[-2:] == [entry, entry]
        second.store.trouble = True
        loader = StartupLoader((second.shadow.drafts.start,), clock=second.clock)
        await loader.start()
        async with background(second.shadow.run(), loader.run()):
            await until(lambda: SOON in second.clock.slept)
            second.store.trouble = False
            await until(lambda: set(second.shadow.drafts.open) == {1})
        assert await second.would_say(Text("周日")) == Drafted(2)


async def test_drafts_whose_words_are_forgotten_are_told_as_such_to_who_still_answers_them() -> None:
    async with studio() as made:
        await made.would_say(Text("周六"))
        made.store.entries[:] = [one for one in made.store.entries if not isinstance(one, TurnOpened)]
        made.shadow.forget()
        async with background(made.shadow.run()):
            await until(lambda: not made.shadow.drafts.open)
        assert (await made.says("发 D1")).words == "D1 已经处理过了：记录删掉了，没有发。"
