"""What people may do to turns that go on; what comes of it in a run: test_steering.py, test_stop_handler.py."""

from __future__ import annotations

import asyncio

import pytest

from bot.chat.active_turn import Line
from bot.chat.cancellation import Reason
from bot.core.events import MessageReceived
from bot.core.journal import TurnSteered
from bot.policy.wake import Silence
from bot.prompt.compose import addition_line
from frostagent.types.messages import Completion, ModelRequest
from frostagent.types.speech import Quote, Text
from frostagent.types.tools import Tool, tool
from tests.bot.chat.test_turn import speak
from tests.bot.hall import Hall, hall, recalled
from tests.bot.prompt import VIEW
from tests.cases import each_case
from tests.fakes import GROUP, calls, said, words

QUESTION = said("go", message_id="q1")


def line(message_id: str, came_back: list[tuple[str, str]]) -> Line:
    message = said("more", message_id=message_id)
    return Line(message, addition_line(message, VIEW), lambda why: came_back.append((message_id, why)))


@each_case(("reason", "why"), [(None, ""), (Reason.STOPPED, Silence.UNREAD), (Reason.MUTED, Silence.MUTED)])
async def test_lines_that_nobody_read_are_given_back_with_why_it_was_stopped(reason: Reason | None, why: str) -> None:
    came_back: list[tuple[str, str]] = []
    async with hall() as house:
        with house.live.going_on(QUESTION) as live:
            live.task = None
            live.say(line("1", came_back))
            if reason is not None:
                live.stop(reason)
            live.close()
            assert came_back == [("1", why)]
            assert not live.state.steering


async def test_the_question_of_a_turn_is_known_by_its_run_while_it_goes_on() -> None:
    async with hall() as house:
        with house.live.going_on(QUESTION) as live:
            turn = live.begin(await house.context_builder.begin(QUESTION, None))
            assert house.live.question_of(GROUP, turn.run.id) == QUESTION
            assert house.live.question_of(GROUP, "another") is None
        assert house.live.question_of(GROUP, turn.run.id) is None


async def test_a_line_that_is_dropped_with_its_turn_is_part_of_it_in_the_journal() -> None:
    came_back: list[tuple[str, str]] = []
    async with hall() as house:
        with house.live.going_on(QUESTION) as live:
            live.begin(await house.context_builder.begin(QUESTION, None))
            live.say(line("1", came_back))
            live.cancelled = Reason.RECALLED
            live.close()
        (steered,) = house.store.of("turn_steered")
        assert isinstance(steered, TurnSteered)
        assert came_back == []


async def test_a_turn_that_is_stopped_while_it_is_prepared_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asyncio.Event()

    async with hall(steers=True) as house:

        async def slow(account: int, message_id: str) -> MessageReceived | None:
            if house.live.at(GROUP):
                asked.set()
                await asyncio.Event().wait()
            return None

        monkeypatch.setattr(house.transport, "get_message", slow)
        await house.history.load(GROUP)
        await house.dispatcher.handle(said((Quote("8"), Text("go")), message_id="q1"))
        await asked.wait()
        await house.dispatcher.handle(said("more", message_id="2"))
        await house.take(said("停", message_id="s"))
        assert house.model.requests == []
        assert house.store.of("turn_opened") == []
        assert {message.message_id for message in house.history.take_overheard(GROUP)} == {"q1", "2"}


async def test_nothing_is_said_into_a_turn_whose_words_are_on_their_way() -> None:
    async with hall() as house:
        with house.live.going_on(QUESTION) as live:
            assert house.live.of(said("more")) is live
            assert house.live.of(said("more", user=5)) is None
            live.close()
            assert house.live.of(said("more")) is None
            assert house.live.at(GROUP) == [live]
        assert house.live.at(GROUP) == []


def taking_back(house: Hall, message_id: str = "m1") -> Tool:
    """A tool during which that message is recalled."""

    @tool
    async def look_up() -> str:
        """Somebody takes back what he said, meanwhile."""
        await house.dispatcher.handle(recalled(message_id))
        return "found"

    return look_up


async def test_what_is_recalled_of_earlier_rounds_is_in_no_further_request_of_a_run_that_goes_on() -> None:
    async with hall(words("one"), calls(("look_up", "")), words("two")) as house:
        house.toolset.register(taking_back(house))
        await house.dispatcher.handle(said("a secret", at=False, user=5, message_id="m1"))
        await house.take(said("first", message_id="q1"))
        await house.take(said("second", message_id="q2"))
        *_, before, after = (str(request.messages) for request in house.model.requests)
        assert ("a secret" in before, "a secret" in after) == (True, False)
        assert "#1: [已撤回]" in after
        assert "second" in after
        assert "found" in after


async def test_own_words_that_are_recalled_are_in_no_further_request_of_the_run_that_said_them_nor_of_another() -> None:
    """9001 is the first that the server takes."""
    secret = "密码是八八六四二"
    for by_tool in (True, False):
        steps = [calls(speak(secret))] if by_tool else [words(secret)]
        async with hall(*steps, calls(("look_up", "")), words("two"), words("three")) as house:
            house.toolset.register(taking_back(house, "9001"))
            await house.take(said("say it", message_id="q1"))
            if not by_tool:
                await house.take(said("look it up", message_id="q2"))
            await house.take(said("and now?", message_id="q3"))
            told = [secret in str(request.messages) for request in house.model.requests]
            assert told == [False, True, False, False], by_tool
            closed = [str(entry) for entry in house.store.of("turn_closed")]
            assert [secret in entry for entry in closed] == ([False, False] if by_tool else [True, False, False])


async def test_nor_is_a_quotation_of_it_in_the_question() -> None:
    async with hall(words("one"), calls(("look_up", "")), words("two")) as house:
        house.toolset.register(taking_back(house))
        await house.dispatcher.handle(said("a secret", at=False, user=5, message_id="m1"))
        await house.take(said("first", message_id="q1"))
        await house.take(said((Quote("m1"), Text("is that so?")), message_id="q2"))
        *_, before, after = (str(request.messages) for request in house.model.requests)
        assert (before.count("a secret"), after.count("a secret")) == (2, 0)
        assert "「[已撤回]」] is that so?" in after
        assert "a secret" not in str(house.history.messages(GROUP))


async def test_nor_is_a_quotation_of_what_was_in_no_round_and_no_later_run_is_told_it() -> None:
    """It was said before the bot was there: the server alone knew it."""

    async with hall(calls(("look_up", "")), words("two"), words("three")) as house:
        house.toolset.register(taking_back(house))
        house.transport.known["m1"] = said("a secret", at=False, user=5, message_id="m1")
        await house.take(said((Quote("m1"), Text("is that so?")), message_id="q1"))
        await house.take(said("and now?", message_id="q2"))
        before, after, later = (str(request.messages) for request in house.model.requests)
        assert [told.count("a secret") for told in (before, after, later)] == [1, 0, 0]
        for told in (after, later, str(house.history.messages(GROUP))):
            assert "「[已撤回]」] is that so?" in told


async def test_what_is_recalled_while_a_question_is_prepared_is_not_told_with_it() -> None:
    async with hall() as house:
        talk = said("a secret", at=False, user=5, message_id="m1")
        await house.dispatcher.handle(talk)
        with house.live.going_on(QUESTION) as live:
            prepared = await house.context_builder.begin(QUESTION, None)
            assert "a secret" in prepared.user.text
            live.recall("m1")
            begun = live.begin(prepared)
            assert begun.user.text.count("[已撤回]") == 1
            read = await live.read(begun.run, live.state)
            assert "a secret" not in str(read.transcript)
            assert "[已撤回]" in str(read.transcript[-1])


async def test_what_was_doubted_is_no_answer_after_a_recall_for_it_may_be_what_is_gone() -> None:
    async def think(_: ModelRequest) -> Completion:
        await house.dispatcher.handle(recalled("m1"))
        return words("")

    async with hall(words("密码是八八六四二"), think, words("")) as house:
        await house.dispatcher.handle(said("密码是八八六四二", at=False, user=5, message_id="m1"))
        await house.take(said("密码是多少来着？", message_id="q1"))
        assert len(house.model.requests) > 1
        assert house.transport.texts != []
        assert "八八六四二" not in "".join(house.transport.texts)


@each_case("gone", ["m9", "w1"])
async def test_what_was_doubted_stays_the_answer_where_nobody_reads_what_is_recalled(gone: str) -> None:
    """m9 is of somebody else, w1 was said into the run and not read yet: neither can be what was said back."""

    async def think(_: ModelRequest) -> Completion:
        if gone == "w1":
            house.live.at(GROUP)[0].waiting.append(line(gone, []))
        await house.dispatcher.handle(recalled(gone))
        return words("")

    async with hall(words("密码是八八六四二"), think) as house:
        await house.dispatcher.handle(said("密码是八八六四二", at=False, user=5, message_id="m1"))
        await house.take(said("密码是多少来着？", message_id="q1"))
        assert house.transport.texts == ["密码是八八六四二"]


async def test_what_was_doubted_is_no_answer_after_a_recall_of_what_the_question_quotes() -> None:
    async def think(_: ModelRequest) -> Completion:
        await house.dispatcher.handle(recalled("m8"))
        return words("")

    async with hall(words("密码是八八六四二"), think, words("不知道")) as house:
        house.transport.known["m8"] = said("第一个", at=False, user=5, message_id="m8")
        await house.dispatcher.handle(said("密码是八八六四二", at=False, user=5, message_id="m1"))
        await house.take(said((Quote("m8"), Text("是多少来着？")), message_id="q1"))
        assert house.transport.texts == ["不知道"]


async def test_what_was_doubted_for_an_earlier_round_is_no_answer_after_a_recall_of_it() -> None:
    async def think(_: ModelRequest) -> Completion:
        await house.dispatcher.handle(recalled("m1"))
        return words("")

    async with hall(words("嗯"), words("密码是八八六四二"), think, words("不知道")) as house:
        await house.dispatcher.handle(said("密码是八八六四二", at=False, user=5, message_id="m1"))
        await house.take(said("first", message_id="q1"))
        await house.take(said("密码是多少来着？", message_id="q2"))
        assert house.transport.texts == ["嗯", "不知道"]


async def test_what_is_recalled_of_what_was_said_into_a_run_after_a_step_is_in_no_further_request() -> None:
    @tool
    async def look_up() -> str:
        """Somebody says more."""
        await house.dispatcher.handle(said("a secret", message_id="m1"))
        return "found"

    @tool
    async def look_on() -> str:
        """And takes it back."""
        await house.dispatcher.handle(recalled("m1"))
        return "found"

    async with hall(calls(("look_up", "")), calls(("look_on", "")), words("done"), steers=True) as house:
        house.toolset.register(look_up)
        house.toolset.register(look_on)
        await house.take(said("go", message_id="q1"))
        _, before, after = (str(request.messages) for request in house.model.requests)
        assert ("a secret" in before, "a secret" in after) == (True, False)
        assert "[已撤回]" in after
