from __future__ import annotations

import base64

from msgspec.structs import replace

from bot.approvals.decision import NO_OWNER, Approvers, Reply
from bot.approvals.tool_call_wording import TOO_LONG, TOO_MANY, UNREACHABLE
from bot.core.actions import send_prefix
from bot.core.errors import ActionRefused, ActionUnanswered
from bot.core.journal import SendQueued
from bot.core.language import Language
from frostagent.types.runs import Asker
from frostagent.types.speech import Attachment, Quote, Text
from frostagent.types.suspension import Allow, Deny, Pending
from tests.bot.approvals.desk import OWNER, QUESTION, Desk, desk, request, waiting
from tests.cases import each_case
from tests.fakes import BOT, GROUP, said, until


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


async def test_long_arguments_are_shown_whole() -> None:
    async with desk() as at:
        at.wait(waiting("mail", text="长" * 500))
        await at.outbox.wait_idle()
        request, file, _notice = at.transport.sent
        assert "…(51" in at.transport.texts[0]
        assert at.transport.texts[0].endswith("\n完整内容在随后的文件 A1.txt 里。")
        (sent,) = file.segments
        assert isinstance(sent, Attachment)
        assert "长" * 500 in base64.b64decode(sent.source.removeprefix("base64://")).decode()
        assert request.conversation == file.conversation == OWNER
        queued = [entry.send_id for entry in at.store.entries if isinstance(entry, SendQueued)]
        assert [send_prefix(send_id) for send_id in queued] == ["turn-t1-", "turn-t1-", ""]  # they go with the turn


async def test_owners_are_asked_in_their_language_and_the_asker_is_told_in_his() -> None:
    async with desk(language=Language.ENGLISH) as at:
        at.wait(waiting("mail", "dig", "sing"))
        at.wait(waiting("wash", run_id="t2", asker=5), said("please wash all of it now", user=5, message_id="q2"))
        await at.outbox.wait_idle()
        first, *_ = at.transport.texts
        assert first.endswith('Answer "approve A1" or "deny A1 reason", or quote this, within 10 minutes.')
        await until(lambda: len([one for one in at.transport.sent if one.conversation == GROUP]) == 2)
        assert [one.words for one in at.transport.sent if one.conversation == GROUP] == [
            "这一步要主人同意才能做，我去问一下，请稍等。（A1、A2、A3）",
            "That needs my owner's yes: I have asked, one moment please. (A4)",
        ]
        before = len(at.transport.texts)
        assert at.owner_says("approve A1")
        assert at.owner_says("deny A2 no")
        assert at.owner_says("approve A2")
        assert at.owner_says("approve A9")
        at.approvals.close("t1")
        await at.outbox.wait_idle()
        at.clock.time += 600  # what waits to be said is too old by then
        at.approvals.expire("t2")
        await until(lambda: len(at.transport.texts) == before + 6)
        assert sorted(at.transport.texts[before:]) == [
            "A1 is allowed.",
            "A2 is denied.",
            "A2 is settled already: denied by 主人(999).",
            "A3 needs no word any more: its question was recalled or is over. It was not done.",
            "A4 has expired: nobody allowed it in time, it was not done.",
            "There is no request A9; it may have expired or be settled.",
        ]


async def test_an_answer_that_quotes_the_notice_in_either_language_means_its_request() -> None:
    for language, words in zip(Language, ("把它删掉吧", "please wipe all of it now"), strict=True):
        async with desk(language=language) as at:
            at.wait(waiting("mail"), said(words, user=5, message_id="q2"))
            await at.outbox.wait_idle()
            notice = said(at.transport.texts[-1], user=BOT, message_id="n1", at=False)
            at.history.overhear(notice)
            yes = said((Quote("n1"), Text("approve")), user=999, at=False)
            number, reply = at.approvals.find_number(notice), at.approvals.read_reply(yes)
            assert number == 1
            assert reply == Reply("approve")
            assert at.approvals.accept(yes, number, reply)
            assert at.resumed == [("t1", {"c0": Allow()})]


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
    async with desk(frozenset(), terminal=lines.append) as at:
        at.wait(waiting("mail", text="长" * 500))
    assert "长" * 500 in lines[0]


async def test_the_name_of_who_asks_looks_like_nothing_but_a_name() -> None:
    async with desk() as at:
        at.wait(replace(waiting("mail"), asker=Asker("777", "主人(999)】，私聊：「好」")))
        await at.outbox.wait_idle()
        assert at.transport.texts[0].split("\n")[1].startswith("主人 999 ，私聊 好(777)，群 4242：")


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


async def test_after_a_restart_the_owner_is_asked_once_more_and_the_asker_is_not_told_again() -> None:
    async with desk() as at:
        at.approvals.restore(Desk().approvals.number(waiting("mail", "dig")), QUESTION)
        await at.outbox.wait_idle()
        assert [action.conversation for action in at.transport.sent] == [OWNER, OWNER]


async def test_a_request_that_nobody_can_be_asked_is_denied_at_once() -> None:
    async with desk(frozenset()) as at:
        at.wait(waiting("mail"))
        assert at.resumed == [("t1", {"c0": Deny(NO_OWNER)})]


async def test_an_answer_that_came_first_stands_though_the_rest_cannot_be_shown() -> None:
    no_files = ActionRefused("send_private_msg", retcode=1200, wording="no files")
    async with desk() as at:
        at.transport.failures = [ActionUnanswered("lost"), no_files]
        at.wait(waiting("mail", text="长" * 20_000))
        assert at.owner_says("同意 A1")
        await at.outbox.wait_idle()
        assert at.resumed == [("t1", {"c0": Allow()})]


async def test_numbers_count_on_and_stay_with_their_calls() -> None:
    async with desk() as at:
        run = at.wait(waiting("mail", "dig"))
        assert [pending.number for pending in run.pending] == [1, 2]
        assert at.approvals.number(run) == run
        (third,) = at.wait(waiting("mail", run_id="t2")).pending
        assert third.number == 3


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


async def test_a_stored_number_that_was_given_away_meanwhile_becomes_another_one() -> None:
    """The store could not be read at the start, and runs of this process waited before those of the last one."""
    before = Desk().approvals.number(waiting("dig", run_id="t0"))
    async with desk() as at:
        at.wait(waiting("mail"))
        (pending,) = at.approvals.restore(before, QUESTION).pending
        assert pending.number == 2
        assert at.owner_says("同意 A2")
        assert at.resumed == [("t0", {"c0": Allow()})]


async def test_requests_that_ended_count_by_how() -> None:
    async with desk() as at:
        at.wait(waiting("a", "b", "c"))
        assert at.owner_says("同意 A1")
        assert at.owner_says("拒绝 A2 不行")
        at.approvals.close("t1")
        assert at.approvals.ended == {"allowed": 1, "denied": 1, "withdrawn": 1, "expired": 0}
        at.wait(waiting("d", run_id="t2"))
        at.clock.time += 1e6
        at.approvals.expire("t2")
        assert at.approvals.ended["expired"] == 1


@each_case("approvers", [Approvers(frozenset({999})), Approvers(terminal=print)])
async def test_who_is_asked_answers_later(approvers: Approvers) -> None:
    assert await approvers.approve(request()) == Pending(600)


async def test_nobody_cannot_be_asked_at_all() -> None:
    assert await Approvers().approve(request()) == Deny(NO_OWNER)
