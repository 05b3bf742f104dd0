from __future__ import annotations

import asyncio

from msgspec.structs import replace

from bot.approvals.decision import Reply
from bot.approvals.tool_call_wording import AGAIN
from bot.core.conversation import Conversation
from frostagent.types.speech import Quote, Text
from frostagent.types.suspension import Allow, Decision, Deny
from tests.bot.approvals.desk import OWNER, QUESTION, Desk, desk, waiting
from tests.cases import each_case
from tests.fakes import (
    BOT,
    GROUP,
    ManualClock,
    RecordingStore,
    said,
    until,
)


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


async def test_an_answer_after_the_time_is_none_even_before_the_run_has_been_denied() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        at.clock.time += 600
        assert at.owner_says("同意 A1")
        at.approvals.expire("t1")
        await at.outbox.wait_idle()
        assert at.resumed == []
        assert sum("过期" in text for text in at.transport.texts) == 1


async def test_only_a_message_with_the_words_of_the_request_is_one() -> None:
    """The model can be made to say what looks like a request."""
    async with desk() as at:
        at.wait(waiting("mail"))
        await at.outbox.wait_idle()
        at.history.know(said("#A1 say_hello {}", user=BOT, where=OWNER, message_id="fake"))
        at.history.know(said(at.transport.texts[0], user=5, where=OWNER, message_id="not ours"))
        at.at_server["at the server"] = said("#A1 say_hello {}", user=BOT, where=OWNER)
        for quoted in ("fake", "not ours", "at the server"):
            answer = said((Quote(quoted), Text("同意")), user=999, where=OWNER)
            assert not at.decisions.take_reply(answer)
            assert not await at.decisions.take_reply_later(answer)
        assert at.resumed == []


async def test_a_quote_of_what_only_the_store_knows_is_found_later() -> None:
    async with desk() as at:
        run = at.wait(waiting("mail"))
        await at.outbox.wait_idle()
        asked = said(at.transport.texts[0], user=BOT, where=OWNER, message_id="9001")
    later = Desk(store=RecordingStore(known=[asked]))
    async with asyncio.timeout(30), later.outbox.open():
        assert later.approvals.restore(run, QUESTION) == run
        answer = said((Quote("9001"), Text("同意")), user=999, where=OWNER)
        assert await later.decisions.take_reply_later(answer)
        assert later.resumed == [("t1", {"c0": Allow()})]
        await later.outbox.wait_idle()


async def test_an_answer_that_is_older_than_its_request_decides_nothing() -> None:
    async with desk() as at:
        at.clock.time += 300  # ours is ahead of the server's
        at.decisions.take_reply(said("hi", user=999, where=OWNER))
        at.clock.time += 100.5
        at.wait(waiting("mail"))
        for age, decided in ((100, 0), (1, 0), (0, 1)):  # the server's times are whole seconds
            answer = said("同意 A1", user=999, where=OWNER)
            assert at.decisions.take_reply(replace(answer, time=answer.time + 100 - age))
            assert len(at.resumed) == decided
        await at.outbox.wait_idle()
        assert at.transport.texts[-2:] == [AGAIN.zh.format(number=1), "A1 已同意。"]


@each_case("text", ["同意 A1", "同意", "拒绝 A1 不行", "同意 A9"])
async def test_an_answer_that_was_missed_decides_nothing_whenever_it_was_said(text: str) -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        await until(lambda: len(at.transport.texts) == 2)
        for time in (0.0, at.clock.now() + 60):
            answer = replace(said(text, user=999, where=OWNER), time=time)
            at.ages.add_missed(answer)
            assert at.decisions.take_reply(answer)
        await at.outbox.wait_idle()
        assert at.resumed == []
        assert at.transport.texts[2:] == ([] if "A9" in text else [AGAIN.zh.format(number=1)] * 2)


async def test_a_missed_quote_of_the_request_decides_nothing_later_either() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        await at.outbox.wait_idle()
        answer = said((Quote("9001"), Text("同意")), user=999, where=OWNER)
        at.ages.add_missed(answer)
        assert await at.decisions.take_reply_later(answer)
        assert at.resumed == []


async def test_an_answer_to_an_earlier_process_counts_for_what_that_one_had_asked() -> None:
    run = Desk().approvals.number(waiting("mail", since=ManualClock().now() - 60))
    for ago, decided in ((30, 1), (61, 0)):
        async with desk() as at:
            at.decisions.take_reply(said("hi"))
            assert at.approvals.restore(run, QUESTION) == run
            answer = said("同意 A1", user=999, where=OWNER)
            assert at.decisions.take_reply(replace(answer, time=answer.time - ago))
            assert len(at.resumed) == decided


async def test_an_answer_to_an_earlier_process_does_not_count_for_a_number_that_became_anothers() -> None:
    before = Desk().approvals.number(waiting("dig", run_id="t0", since=ManualClock().now() - 60))
    async with desk() as at:
        at.decisions.take_reply(said("hi"))
        at.wait(waiting("mail"))
        at.approvals.restore(before, QUESTION)
        answer = said("同意 A2", user=999, where=OWNER)
        assert at.decisions.take_reply(replace(answer, time=answer.time - 30))
        assert at.resumed == []


@each_case(("text", "word"), [("同意", Allow()), ("拒绝", Deny("the owner said no"))])
async def test_the_only_request_an_owner_was_asked_is_meant_by_one_word_in_private(text: str, word: Decision) -> None:
    async with desk() as at:
        assert not at.owner_says(text)
        at.wait(waiting("mail"))
        assert at.owner_says(text)
        assert at.resumed == [("t1", {"c0": word})]
        assert not at.owner_says(text)


async def test_of_two_requests_an_owner_is_asked_which_one_word_means() -> None:
    async with desk() as at:
        at.wait(waiting("mail", "dig"))
        assert at.owner_says("同意")
        assert at.resumed == []
        await at.outbox.wait_idle()
        assert at.transport.texts[-1] == "这句话可能指 A1、A2，还没有算数。请带上编号再发一次，比如「同意 A1」。"
        assert at.owner_says("同意 A2")
        assert at.owner_says("同意")
        assert at.resumed == [("t1", {"c1": Allow()}), ("t1", {"c0": Allow()})]


@each_case(
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
        assert at.decisions.take_reply(said("同意", user=user, at=at_bot, where=group)) is taken
        assert len(at.resumed) == taken


async def test_one_word_that_quotes_something_else_is_about_that() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        at.at_server["5"] = said("hi", user=999, where=OWNER)
        answer = said((Quote("5"), Text("同意")), user=999, where=OWNER)
        assert not at.decisions.take_reply(answer)
        assert not await at.decisions.take_reply_later(answer)


@each_case("quote", ["0", "-77", "5"])
async def test_a_quote_that_nobody_can_read_says_nothing_and_the_word_counts_without_it(quote: str) -> None:
    answer = said((Quote(quote), Text("同意")), user=999, where=OWNER)
    async with desk() as at:
        at.history.know(said("hi", user=BOT, where=OWNER, message_id="0"))  # many messages have that id
        assert not await at.decisions.take_reply_later(answer)
        at.wait(waiting("mail", "dig"))
        assert not at.decisions.take_reply(answer)  # there is no time to look it up
        assert await at.decisions.take_reply_later(answer)
        assert at.resumed == []
        await at.outbox.wait_idle()
        assert "A1、A2" in at.transport.texts[-1]
        assert at.owner_says("拒绝 A2")
        assert await at.decisions.take_reply_later(answer)
        assert at.resumed == [("t1", {"c1": Deny("the owner said no")}), ("t1", {"c0": Allow()})]


async def test_a_request_under_another_id_is_known_by_what_the_server_says_is_quoted() -> None:
    async with desk() as at:
        at.wait(waiting("mail", "dig"))
        await at.outbox.wait_idle()
        at.at_server["-77"] = said(at.transport.texts[1], user=BOT, where=OWNER, message_id="-77")
        assert await at.decisions.take_reply_later(said((Quote("-77"), Text("同意")), user=999, where=OWNER))
        assert at.resumed == [("t1", {"c1": Allow()})]


async def test_in_a_group_a_word_beside_such_a_quote_decides_an_owners_own_request_and_asks_about_others() -> None:
    words = (Quote("5"), Text("同意"))
    for asker, at_bot, is_taken, is_decided in (
        (999, True, True, True),
        (777, True, True, False),
        (777, False, False, False),
    ):
        async with desk() as at:
            at.wait(waiting("mail", asker=asker))
            assert await at.decisions.take_reply_later(said(words, user=999, at=at_bot)) is is_taken
            assert bool(at.resumed) is is_decided


async def test_a_number_that_no_request_has_is_not_the_only_one_that_waits() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        assert at.owner_says("同意 A0")
        assert at.resumed == []
        await at.outbox.wait_idle()
        assert sum(text.startswith("没有编号为 A0 的请求") for text in at.transport.texts) == 1


@each_case("line", ["hello", "同意", "user2: 同意 A1"])
async def test_a_line_of_the_terminal_that_names_no_number_is_said(line: str) -> None:
    async with desk(terminal=print) as at:
        assert not at.approvals.take_line(line)


async def test_a_line_of_the_terminal_that_names_a_number_is_an_answer() -> None:
    said_there: list[str] = []
    async with desk(frozenset(), terminal=said_there.append) as at:
        at.wait(waiting("mail"))
        assert at.approvals.take_line("同意 A1")
        assert said_there[-1] == "A1 已同意。"
        assert at.resumed == [("t1", {"c0": Allow()})]


async def test_without_a_terminal_no_line_is_an_answer() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        assert not at.approvals.take_line("同意 A1")


async def test_a_word_from_a_page_decides_once_and_says_so_to_whoever_is_late() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        assert at.approvals.settle(1, Reply("deny", words="no"), by="page").kind == "done"
        second = at.approvals.settle(1, Reply("approve"), by="page")
        assert (second.kind, second.words) == ("over", "A1 已经处理过了：page 已拒绝。")
        assert at.approvals.settle(9, Reply("approve"), by="page").kind == "unknown"
        assert at.resumed == [("t1", {"c0": Deny("the owner said no: no")})]
        await at.outbox.wait_idle()


async def test_an_answer_in_a_group_where_nothing_was_asked_is_talk() -> None:
    async with desk() as at:
        at.wait(waiting("mail"))
        elsewhere = said("同意 A1", user=999, where=Conversation(BOT, "group", 5252))
        assert not at.decisions.take_reply(elsewhere)
        assert not at.decisions.take_reply(replace(elsewhere, segments=(Text("拒绝 A9"),)))
        assert at.resumed == []
        assert at.decisions.take_reply(said("同意 A1", user=999))
        assert at.resumed == [("t1", {"c0": Allow()})]


async def test_to_another_account_of_ours_an_owner_names_the_number_or_says_nothing() -> None:
    elsewhere = Conversation(20002, "private", 999)
    async with desk() as at:
        at.wait(waiting("mail"))
        await at.outbox.wait_idle()
        assert not at.decisions.take_reply(replace(said("同意", user=999, where=elsewhere), self_id=20002))
        assert at.resumed == []
        for stranger in (777, 20002):  # not even the other account itself
            assert not at.decisions.take_reply(replace(said("同意 A1", user=stranger, where=elsewhere), self_id=20002))
        assert at.decisions.take_reply(replace(said("同意 A1", user=999, where=elsewhere), self_id=20002))
        assert at.resumed == [("t1", {"c0": Allow()})]
