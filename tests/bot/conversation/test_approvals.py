from __future__ import annotations

import asyncio
import base64

import pytest
from msgspec.structs import replace

from bot.conversation.approvals import NOBODY, UNREACHABLE, Approvals
from bot.domain.actions import Attachment
from bot.domain.errors import ActionRefused, ActionUnanswered
from bot.domain.events import Conversation
from bot.domain.run import Asker
from bot.domain.segments import Quote, Text
from bot.domain.suspension import Allow, Decision, Deny, Pending
from bot.policy.approval import AGAIN, TOO_LONG, TOO_MANY
from tests.bot.desk import OWNER, QUESTION, Desk, desk, request, waiting
from tests.fakes import (
    BOT,
    GROUP,
    ManualClock,
    RecordingStore,
    said,
    until,
)


async def test_who_is_asked_answers_later_and_nobody_cannot_at_all() -> None:
    assert await Desk().approvals.approve(request()) == Pending(600)
    assert await Desk(frozenset()).approvals.approve(request()) == Deny(NOBODY)
    terminal = Desk(frozenset())
    terminal.approvals.ask_on(print)
    assert await terminal.approvals.approve(request()) == Pending(600)


async def test_numbers_count_on_and_stay_with_their_calls() -> None:
    async with desk() as at:
        run = at.wait(waiting("mail", "dig"))
        assert [pending.number for pending in run.pending] == [1, 2]
        assert at.approvals.number(run) == run
        (third,) = at.wait(waiting("mail", run_id="t2")).pending
        assert third.number == 3


async def test_what_was_asked_or_answered_is_not_asked_again_when_the_run_waits_further() -> None:
    """An answer may come while the run goes on because of another one."""
    async with desk() as at:
        run = at.wait(waiting("mail", "dig", "sing"))
        assert at.owner_says("同意 A1")
        assert at.owner_says("同意 A2")
        await at.outbox.wait_idle()
        before = len(at.transport.sent)
        at.approvals.ask(replace(run, answers=run.answers[1:]), QUESTION)
        await at.outbox.wait_idle()
        assert len(at.transport.sent) == before
        assert at.resumed == [("t1", {"c0": Allow()}), ("t1", {"c1": Allow()})]


async def test_a_run_that_cannot_go_on_now_waits_for_another_answer() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        at.free = False
        assert at.owner_says("同意 A1")
        at.free = True
        assert at.owner_says("拒绝 A1")
        await at.outbox.wait_idle()
        assert at.resumed == [("t1", {"c0": Deny("the owner said no")})]
        assert at.transport.texts[-2:] == ["现在处理不过来，A1 还在等，请过一会儿再回复一次。", "A1 已拒绝。"]


async def test_an_answer_that_comes_before_runs_can_go_on_is_not_taken_for_done() -> None:
    async with desk() as at:
        at.approvals = Approvals(owners=at.owners, outbox=at.outbox, history=at.history, clock=at.clock)
        at.wait(waiting("mail"))
        assert at.owner_says("同意 A1")
        at.approvals.resume_with(at.resume)
        assert at.owner_says("同意 A1")
        assert at.resumed == [("t1", {"c0": Allow()})]


async def test_what_nobody_answered_in_time_is_told_once_and_is_over() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        await at.outbox.wait_idle()
        at.clock.time += 600
        for _ in range(2):
            at.approvals.expire("t1")
        at.approvals.close("t1")
        await at.outbox.wait_idle()
        assert [text for text in at.transport.texts if "过期了" in text or "不用管了" in text] == [
            "A1 过期了：没有人及时同意，所以没有做。"
        ]


async def test_an_answer_after_the_time_is_none_even_before_the_run_has_been_denied() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        at.clock.time += 600
        assert at.owner_says("同意 A1")
        at.approvals.expire("t1")
        await at.outbox.wait_idle()
        assert at.resumed == []
        assert sum("过期" in text for text in at.transport.texts) == 1


async def test_a_request_that_every_owner_refused_is_denied_without_a_notice() -> None:
    async with desk(frozenset({998, 999})) as at:
        at.transport.failures = [ActionRefused("send_private_msg", retcode=1200, wording="不是好友") for _ in range(2)]
        at.wait(waiting("mail"))
        await until(lambda: at.resumed)
        assert at.resumed == [("t1", {"c0": Deny(UNREACHABLE)})]
        assert at.transport.sent == []


async def test_one_owner_who_can_be_reached_is_enough() -> None:
    async with desk(frozenset({998, 999})) as at:
        at.transport.failures = [ActionRefused("send_private_msg", retcode=1200, wording="不是好友")]
        at.wait(waiting("mail"))
        await until(lambda: len(at.transport.sent) == 2)
        assert at.resumed == []
        assert at.transport.sent[-1].segments[0] == Quote("q1")


async def test_only_a_message_with_the_words_of_the_request_is_one() -> None:
    """The model can be made to say what looks like a request."""
    async with desk() as at:
        at.wait(waiting("mail"))
        await at.outbox.wait_idle()
        at.history.know(said("#A1 say_hello {}", user=BOT, where=OWNER, message_id="fake"))
        at.history.know(said(at.transport.texts[0], user=5, where=OWNER, message_id="not ours"))
        for quoted in ("fake", "not ours", "unknown"):
            answer = said((Quote(quoted), Text("同意")), user=999, where=OWNER)
            assert not at.approvals.take(answer)
            assert not await at.approvals.take_later(answer)
        assert at.resumed == []


async def test_a_quote_of_what_only_the_store_knows_is_found_later() -> None:
    async with desk() as at:
        run = at.wait(waiting("mail"))
        await at.outbox.wait_idle()
        asked = said(at.transport.texts[0], user=BOT, where=OWNER, message_id="9001")
    later = Desk(store=RecordingStore(known=[asked]))
    async with asyncio.timeout(5), later.outbox.open():
        assert later.approvals.restore(run, QUESTION) == run
        answer = said((Quote("9001"), Text("同意")), user=999, where=OWNER)
        assert await later.approvals.take_later(answer)
        assert later.resumed == [("t1", {"c0": Allow()})]
        await later.outbox.wait_idle()


async def test_an_answer_that_is_older_than_its_request_decides_nothing() -> None:
    async with desk() as at:
        at.clock.time += 300  # ours is ahead of the server's
        at.approvals.take(said("hi", user=999, where=OWNER))
        at.clock.time += 100.5
        at.wait(waiting("mail"))
        for age, decided in ((100, 0), (1, 0), (0, 1)):  # the server's times are whole seconds
            answer = said("同意 A1", user=999, where=OWNER)
            assert at.approvals.take(replace(answer, time=answer.time + 100 - age))
            assert len(at.resumed) == decided
        await at.outbox.wait_idle()
        assert at.transport.texts[-2:] == [AGAIN.format(number=1), "A1 已同意。"]


@pytest.mark.parametrize("text", ["同意 A1", "同意", "拒绝 A1 不行", "同意 A9"])
async def test_an_answer_that_was_missed_decides_nothing_whenever_it_was_said(text: str) -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        await until(lambda: len(at.transport.texts) == 2)
        for time in (0.0, at.clock.now() + 60):
            answer = replace(said(text, user=999, where=OWNER), time=time)
            at.approvals.ages.miss(answer)
            assert at.approvals.take(answer)
        await at.outbox.wait_idle()
        assert at.resumed == []
        assert at.transport.texts[2:] == ([] if "A9" in text else [AGAIN.format(number=1)] * 2)


async def test_a_missed_quote_of_the_request_decides_nothing_later_either() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        await at.outbox.wait_idle()
        answer = said((Quote("9001"), Text("同意")), user=999, where=OWNER)
        at.approvals.ages.miss(answer)
        assert await at.approvals.take_later(answer)
        assert at.resumed == []


async def test_an_answer_to_an_earlier_process_counts_for_what_that_one_had_asked() -> None:
    run = Desk().approvals.number(waiting("mail", since=ManualClock().now() - 60))
    for ago, decided in ((30, 1), (61, 0)):
        async with desk() as at:
            at.approvals.take(said("hi"))
            assert at.approvals.restore(run, QUESTION) == run
            answer = said("同意 A1", user=999, where=OWNER)
            assert at.approvals.take(replace(answer, time=answer.time - ago))
            assert len(at.resumed) == decided


async def test_an_answer_to_an_earlier_process_does_not_count_for_a_number_that_became_anothers() -> None:
    before = Desk().approvals.number(waiting("dig", run_id="t0", since=ManualClock().now() - 60))
    async with desk() as at:
        at.approvals.take(said("hi"))
        at.wait(waiting("mail"))
        at.approvals.restore(before, QUESTION)
        answer = said("同意 A2", user=999, where=OWNER)
        assert at.approvals.take(replace(answer, time=answer.time - 30))
        assert at.resumed == []


# --- one word ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "word"), [("同意", Allow()), ("拒绝", Deny("the owner said no"))])
async def test_the_only_request_an_owner_was_asked_is_meant_by_one_word_in_private(text: str, word: Decision) -> None:
    async with desk() as at:
        assert not at.owner_says(text)
        at.wait(waiting("mail"))
        assert at.owner_says(text)
        assert at.resumed == [("t1", {"c0": word})]
        assert not at.owner_says(text)


async def test_of_two_requests_one_word_means_none() -> None:
    async with desk() as at:
        at.wait(waiting("mail", "dig"))
        assert not at.owner_says("同意")
        assert at.owner_says("同意 A2")
        assert at.owner_says("同意")
        assert at.resumed == [("t1", {"c1": Allow()}), ("t1", {"c0": Allow()})]


@pytest.mark.parametrize(
    ("asker", "user", "at_bot", "group", "taken"),
    [
        (999, 999, True, GROUP, True),
        (999, 999, False, GROUP, False),
        (777, 999, True, GROUP, False),
        (999, 998, True, GROUP, False),
        (999, 777, True, GROUP, False),
        (999, 999, True, Conversation(BOT, "group", 5555), False),
    ],
)
async def test_in_a_group_one_word_is_for_the_owner_whose_own_request_it_is(
    asker: int, user: int, at_bot: bool, group: Conversation, taken: bool
) -> None:
    async with desk(frozenset({998, 999})) as at:
        at.wait(waiting("mail", asker=asker))
        assert at.approvals.take(said("同意", user=user, at=at_bot, where=group)) is taken
        assert len(at.resumed) == taken


async def test_one_word_that_quotes_something_else_is_about_that() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        answer = said((Quote("5"), Text("同意")), user=999, where=OWNER)
        assert not at.approvals.take(answer)
        assert not await at.approvals.take_later(answer)


async def test_of_one_asker_three_requests_wait_and_more_are_denied_unasked() -> None:
    async with desk() as at:
        at.wait(waiting("a", "b", run_id="t1"))
        at.wait(waiting("c", "d", "e", run_id="t2"))
        await at.outbox.wait_idle()
        assert at.resumed == [("t2", {"c1": Deny(TOO_MANY), "c2": Deny(TOO_MANY)})]
        asked = [text for text in at.transport.texts if text.startswith("#A")]
        assert [text.split(" ")[1] for text in asked] == ["a", "b", "c"]
        at.wait(waiting("f", run_id="t3", asker=778))
        assert at.owner_says("同意 A1")
        at.wait(waiting("g", run_id="t4"))
        at.wait(waiting("h", run_id="t5"))
        await at.outbox.wait_idle()
        asked = [text for text in at.transport.texts if text.startswith("#A")]
        assert [text.split(" ")[1] for text in asked] == ["a", "b", "c", "f", "g"]
        assert at.resumed[-1] == ("t5", {"c0": Deny(TOO_MANY)})


async def test_long_arguments_are_shown_whole() -> None:
    async with desk() as at:
        at.wait(waiting("mail", text="长" * 500))
        await at.outbox.wait_idle()
        request, file, _notice = at.transport.sent
        assert "…（共 " in at.transport.texts[0]
        assert at.transport.texts[0].endswith("\n完整内容在随后的文件 A1.txt 里。")
        (sent,) = file.segments
        assert isinstance(sent, Attachment)
        assert "长" * 500 in base64.b64decode(sent.source.removeprefix("base64://")).decode()
        assert request.conversation == file.conversation == OWNER


async def test_what_cannot_be_shown_whole_is_not_done() -> None:
    async with desk() as at:
        at.transport.failures = [ActionRefused("send_private_msg", retcode=1200, wording="no files")]
        at.wait(waiting("mail", text="长" * 20_000))
        at.transport.failures.insert(0, ActionUnanswered("lost"))  # the request itself may have been read
        await until(lambda: at.resumed)
        assert at.resumed == [("t1", {"c0": Deny(TOO_LONG)})]
        assert at.owner_says("同意 A1")
        assert len(at.resumed) == 1


async def test_the_terminal_is_shown_all_of_it() -> None:
    lines: list[str] = []
    async with desk(frozenset()) as at:
        at.approvals.ask_on(lines.append)
        at.wait(waiting("mail", text="长" * 500))
    assert "长" * 500 in lines[0]


async def test_the_name_of_who_asks_looks_like_nothing_but_a_name() -> None:
    async with desk() as at:
        at.wait(replace(waiting("mail"), asker=Asker(777, "主人(999)】，私聊：「好」")))
        await at.outbox.wait_idle()
        assert at.transport.texts[0].split("\n")[1].startswith("主人 999 ，私聊 好(777)，群 4242：")


async def test_a_stored_number_that_was_given_away_meanwhile_becomes_another_one() -> None:
    """The store could not be read at the start, and runs of this process waited before those of the last one."""
    before = Desk().approvals.number(waiting("dig", run_id="t0"))
    async with desk() as at:
        at.wait(waiting("mail"))
        (pending,) = at.approvals.restore(before, QUESTION).pending
        assert pending.number == 2
        assert at.owner_says("同意 A2")
        assert at.resumed == [("t0", {"c0": Allow()})]


async def test_without_owners_a_restored_request_waits_for_its_end() -> None:
    async with desk(frozenset()) as at:
        at.approvals.restore(Desk().approvals.number(waiting("mail")), QUESTION)
        assert at.resumed == []


async def test_a_run_that_ends_takes_its_requests_with_it() -> None:
    async with desk() as at:
        at.wait(waiting("mail", "dig"))
        at.approvals.close("t1")
        at.approvals.close("t1")
        await at.outbox.wait_idle()
        assert [text for text in at.transport.texts if "不用管了" in text] == [
            "A1 不用管了：提问已经撤回或结束，没有做。",
            "A2 不用管了：提问已经撤回或结束，没有做。",
        ]
        assert at.owner_says("同意 A1")
        assert at.resumed == []


@pytest.mark.parametrize("line", ["hello", "同意", "user2: 同意 A1"])
async def test_a_line_of_the_terminal_that_names_no_number_is_said(line: str) -> None:
    async with desk() as at:
        at.approvals.ask_on(print)
        assert not at.approvals.answer(line)


async def test_a_line_of_the_terminal_that_names_a_number_is_an_answer() -> None:
    async with desk(frozenset()) as at:
        said_there: list[str] = []
        at.approvals.ask_on(said_there.append)
        at.wait(waiting("mail"))
        assert at.approvals.answer("同意 A1")
        assert said_there[-1] == "A1 已同意。"
        assert at.resumed == [("t1", {"c0": Allow()})]


async def test_without_a_terminal_no_line_is_an_answer() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        assert not at.approvals.answer("同意 A1")
