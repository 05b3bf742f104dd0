"""A line of somebody who is being answered: part of that, a question of its own, or talk."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from bot.chat.steering import belongs
from bot.chat.tasks import Resume
from bot.core.events import Event, MessageReceived
from bot.core.journal import MessageTakenUp, TurnClosed, TurnOpened, TurnSteered, UsageAdded
from bot.core.segments import Card, Mention
from bot.policy.wake import Rules
from frostagent.types.errors import ModelAuth
from frostagent.types.messages import AssistantMessage, Completion, ModelRequest, ToolMessage, UserMessage
from frostagent.types.speech import MentionAll, Quote, Text
from frostagent.types.suspension import Allow
from frostagent.types.tools import tool
from tests.bot.hall import Hall, hall, muted, recalled
from tests.cases import each_case
from tests.e2e.test_suspended_turns import ask_first
from tests.fakes import GROUP, PRIVATE, Step, calls, said, words


def later(seconds: float, message: MessageReceived) -> MessageReceived:
    return replace(message, time=message.time + seconds)


class Thought:
    """A step of the model during which something is said; then it answers, unless it was broken off."""

    def __init__(self, answer: Completion) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.answer = answer

    async def __call__(self, request: ModelRequest) -> Completion:
        self.begun.set()
        await self.go_on.wait()
        return self.answer


def last(house: Hall) -> str:
    """What the model read last, but for the moment."""
    message = house.model.requests[-1].messages[-1]
    assert isinstance(message, UserMessage)
    return message.text.partition("\n[此刻]")[0].partition("\n[Right now]")[0]


async def ask_while(house: Hall, thought: Thought, *lines: Event) -> None:
    """Ask, and say these while the model thinks; until nothing is left to be done."""
    await house.dispatcher.handle(said("北京明天天气", message_id="q1"))
    await thought.begun.wait()
    for line in lines:
        await house.dispatcher.handle(line)
    thought.go_on.set()
    await house.lanes.wait_idle()


async def test_a_correction_before_anything_was_said_is_asked_with_the_question() -> None:
    thought = Thought(words("北京晴"))
    async with hall(thought, words("上海雨"), steers=True) as house:
        await ask_while(house, thought, later(3, said("不对，上海", at=False, message_id="2")))
        assert house.transport.texts == ["上海雨"]
        assert last(house).endswith("小明#1: 北京明天天气\n[补充 22:13]\n小明#1: 不对，上海")
        (opened,), (steered,) = house.store.of("turn_opened"), house.store.of("turn_steered")
        assert isinstance(opened, TurnOpened)
        assert isinstance(steered, TurnSteered)
        assert (steered.turn_id, steered.step, steered.message.message_id) == (opened.turn_id, 0, "2")
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert [message.text for message in closed.round] == [last(house), "上海雨"]
        (counted,) = house.store.of("usage_added")
        assert isinstance(counted, UsageAdded)
        assert counted.usage.prompt > 0
        assert closed.usage.prompt == counted.usage.prompt + 10
        assert house.history.take_overheard(GROUP) == ()


@each_case("then", [(words(""),) * 3, (ModelAuth("bad key"),)])
async def test_what_was_doubted_before_a_correction_is_no_answer_to_it(then: tuple[Step, ...]) -> None:
    thought = Thought(words("周日"))
    async with hall(words("（周六七点）"), thought, *then, steers=True) as house:
        await ask_while(house, thought, later(3, said("不对，我问的是北京哪天开会", at=False, message_id="2")))
        assert len(house.model.requests) == 2 + len(then)
        assert house.transport.texts != []
        assert "周六七点" not in "".join(house.transport.texts)


async def test_an_answer_to_a_correction_is_doubted_anew() -> None:
    thought = Thought(words("周日"))
    async with hall(words("（周六七点）"), thought, words("（已确认）"), words("上海雨"), steers=True) as house:
        await ask_while(house, thought, later(3, said("不对，上海", at=False, message_id="2")))
        assert house.transport.texts == ["上海雨"]
        assert [len(request.messages) for request in house.model.requests] == [2, 8, 2, 8]


async def test_the_journal_has_a_line_before_the_model_reads_it() -> None:
    thought, durable = Thought(words("no")), list[int]()

    async def note(request: ModelRequest) -> Completion:
        durable.append(house.store.durable)
        return words("yes")

    async with hall(thought, note, steers=True) as house:
        await ask_while(house, thought, said("more"))
        (steered,) = house.store.of("turn_steered")
        assert house.store.entries.index(steered) < durable[0]


async def test_a_request_is_broken_off_twice_at_most_and_nothing_is_lost() -> None:
    thoughts = [Thought(words(str(number))) for number in range(3)]
    async with hall(*thoughts, words("all of it"), steers=True) as house:
        await house.dispatcher.handle(said("one"))
        for number, thought in enumerate(thoughts):
            await thought.begun.wait()
            await house.dispatcher.handle(said(f"more {number}"))
        thoughts[2].go_on.set()
        await house.lanes.wait_idle()
        assert house.transport.texts == ["all of it"]
        assert all(f"more {number}" in last(house) for number in range(3))
        assert len(house.store.of("usage_added")) == 2


@tool(side_effects="external")
async def work(text: str = "") -> str:
    """Works."""
    return "done"


async def test_a_line_after_a_call_began_is_read_behind_its_result() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool(side_effects="external")
    async def slow() -> str:
        """Takes its time."""
        begun.set()
        await go_on.wait()
        return "done"

    async with hall(calls(("slow", "")), words("for tomorrow, then"), steers=True) as house:
        house.toolset.register(slow)
        await house.dispatcher.handle(said("today", message_id="1"))
        await begun.wait()
        await house.dispatcher.handle(later(20, said("no, tomorrow", message_id="2")))
        go_on.set()
        await house.lanes.wait_idle()
        *_, call, result, line = house.model.requests[-1].messages
        assert isinstance(call, AssistantMessage)
        assert isinstance(result, ToolMessage)
        assert line == UserMessage("[补充 22:13]\n小明#1: no, tomorrow", sources=("2",))
        assert house.transport.texts == ["for tomorrow, then"]
        (steered,) = house.store.of("turn_steered")
        assert isinstance(steered, TurnSteered)
        assert steered.step == 1


async def test_final_words_that_a_line_has_overtaken_are_not_said_and_not_kept() -> None:
    thought = Thought(words("for today"))
    async with hall(calls(("work", "")), thought, words("for tomorrow"), steers=True) as house:
        house.toolset.register(work)
        await ask_while(house, thought, said("no, tomorrow"))
        assert house.transport.texts == ["for tomorrow"]
        assert "for today" not in str(house.history.messages(GROUP))
        assert "no, tomorrow" in str(house.history.messages(GROUP))


async def test_final_words_wait_for_two_lines_at_most_the_third_is_a_question_of_its_own() -> None:
    thoughts = [Thought(words(f"answer {number}")) for number in range(3)]
    async with hall(calls(("work", "")), *thoughts, words("to the last"), steers=True) as house:
        house.toolset.register(work)
        await house.dispatcher.handle(said("go"))
        for number, thought in enumerate(thoughts):
            await thought.begun.wait()
            await house.dispatcher.handle(said(f"more {number}"))
            thought.go_on.set()
        await house.lanes.wait_idle()
        assert house.transport.texts == ["answer 2", "to the last"]
        assert last(house).endswith("小明#1: more 2")


async def test_all_that_no_run_has_read_is_one_question() -> None:
    thought = Thought(calls(("ask_first", "")))
    async with hall(calls(("work", "")), thought, words("to both"), steers=True) as house:
        house.toolset.register(work)
        house.toolset.register(ask_first)
        lines = [said("and Shanghai?"), said("by train", at=False), said("or Suzhou?")]
        await ask_while(house, thought, *(replace(line, message_id=f"m{n}") for n, line in enumerate(lines)))
        assert house.transport.texts == ["to both"]
        assert last(house).endswith("小明#1: and Shanghai?\n小明#1: by train\n小明#1: or Suzhou?")
        (taken,) = house.store.of("message_taken_up")
        assert isinstance(taken, MessageTakenUp)
        assert taken.message.message_id == "m1"


@each_case(
    "line",
    [
        later(8.5, said("走吧", at=False, message_id="2")),
        said("走吗", at=False, user=5, message_id="2"),
        said((Mention(5), Text("走吗")), at=False, message_id="2"),
        said((MentionAll(), Text("走吗")), at=False, message_id="2"),
    ],
)
async def test_talk_that_is_for_others_or_late_is_overheard_and_no_part_of_it(line: MessageReceived) -> None:
    thought = Thought(words("fine"))
    async with hall(thought, steers=True) as house:
        await ask_while(house, thought, line)
        assert house.transport.texts == ["fine"]
        assert house.store.of("turn_steered") == []
        assert [message.message_id for message in house.history.take_overheard(GROUP)] == ["2"]


async def test_a_quote_of_somebody_else_is_no_part_of_it() -> None:
    thought = Thought(words("fine"))
    async with hall(thought, steers=True) as house:
        await house.take(said("去吗", at=False, user=5, message_id="9"))
        await ask_while(house, thought, said((Quote("9"), Text("去")), at=False, message_id="2"))
        assert house.store.of("turn_steered") == []


async def test_a_quote_of_what_is_not_at_hand_is_no_part_of_it() -> None:
    """It has to be looked up: it may be an owner's word."""
    async with hall(thought := Thought(words("晴")), words("好")) as house:
        line = said((Quote("gone"), Mention(10001), Text("同意")), message_id="q2")
        await ask_while(house, thought, line)
        assert house.transport.texts == ["晴", "好"]
        assert "[引用的消息读不到了] 同意" in last(house)


async def test_a_quote_of_ones_own_words_is_part_of_it() -> None:
    thought = Thought(words("北京晴"))
    async with hall(thought, words("上海雨"), steers=True) as house:
        asked = said((Quote("q1"), Text("说错了，上海")), at=False, message_id="2")
        await ask_while(house, thought, asked)
        assert house.transport.texts == ["上海雨"]
        assert "[引用 小明#1 的「北京明天天气」] 说错了，上海" in last(house)


async def test_nothing_steers_after_a_stop_and_nothing_is_swallowed() -> None:
    thought = Thought(words("never"))
    async with hall(thought, words("短的"), steers=True) as house:
        await ask_while(
            house,
            thought,
            said("别说了", message_id="s"),
            said("换一个短的吧。", message_id="n"),
            said("快点", at=False),
        )
        assert house.store.of("turn_steered") == []
        assert house.transport.texts == ["短的"]


async def test_lines_follow_each_other_each_close_behind_the_last() -> None:
    thought = Thought(words("no"))
    async with hall(thought, words("yes"), steers=True) as house:
        lines = [later(7 * number, said(f"line {number}", at=False)) for number in (1, 2)]
        await ask_while(house, thought, *lines)
        assert "line 2" in last(house)


async def test_somebody_elses_question_waits() -> None:
    thought = Thought(words("for A"))
    async with hall(thought, words("for B"), steers=True) as house:
        await ask_while(house, thought, said("B asks", user=5, name="小红"))
        assert house.transport.texts == ["for A", "for B"]
        assert house.store.of("turn_steered") == []


@each_case("steers", [False, True])
async def test_in_private_everything_steers_unless_that_is_off(steers: bool) -> None:
    thought = Thought(words("first"))
    async with hall(thought, words("second"), steers=steers) as house:
        await house.dispatcher.handle(said("在吗", where=PRIVATE))
        await thought.begun.wait()
        await house.dispatcher.handle(later(100, said("明天天气", where=PRIVATE)))
        thought.go_on.set()
        await house.lanes.wait_idle()
        assert house.transport.texts == (["second"] if steers else ["first", "second"])


@each_case("line", [said("", message_id="2"), said((Card("json", ""),), role="admin", message_id="2")])
async def test_a_mere_call_and_what_lessens_an_admins_authority_are_no_part_of_it(line: MessageReceived) -> None:
    thought = Thought(words("fine"))
    async with hall(thought, words("what?"), steers=True) as house:
        await ask_while(house, thought, line)
        assert house.store.of("turn_steered") == []


async def test_a_line_that_comes_while_the_run_begins_to_wait_for_a_word_is_a_question_of_its_own() -> None:
    thought = Thought(calls(("ask_first", "")))
    async with hall(calls(("work", "")), thought, words("meanwhile"), steers=True) as house:
        house.toolset.register(work)
        house.toolset.register(ask_first)
        await ask_while(house, thought, said("and this?", message_id="2"), said("too", at=False, message_id="3"))
        assert house.transport.texts == ["meanwhile"]
        assert len(house.suspensions.waiting()) == 1
        assert "and this?" in last(house)
        assert house.store.of("turn_steered") == []


async def test_what_a_stopped_run_had_read_is_counted() -> None:
    thought = Thought(words("never"))
    async with hall(calls(("work", "")), thought, steers=True) as house:
        house.toolset.register(work)
        await house.dispatcher.handle(said("go", message_id="q1"))
        await thought.begun.wait()
        await house.take(said("停", message_id="s"))
        (counted,), (closed,) = house.store.of("usage_added"), house.store.of("turn_closed")
        assert isinstance(counted, UsageAdded)
        assert isinstance(closed, TurnClosed)
        assert closed.usage.prompt == 10 + counted.usage.prompt


async def test_a_line_that_is_heard_by_chance_only_or_while_the_bot_is_muted_is_no_part_of_it() -> None:
    thought, rules = Thought(words("fine")), Rules(chance=1.0)
    async with hall(thought, words("by chance"), rules=rules, steers=True) as house:
        await ask_while(house, thought, later(9, said("走吧", at=False, message_id="2")))
        assert house.store.of("turn_steered") == []
    thought = Thought(words("fine"))
    async with hall(thought, steers=True) as house:
        await ask_while(house, thought, muted(60), said("小霜，快点", at=False, message_id="2"))
        assert house.store.of("turn_steered") == []


async def test_what_is_older_than_the_process_or_than_the_question_is_no_part_of_it() -> None:
    thought = Thought(words("fine"))
    async with hall(thought, words("the old one"), steers=True) as house:
        house.seen.load_earlier((), whole=True)
        await ask_while(house, thought, later(-60, said("more", message_id="2")))
        assert house.store.of("turn_steered") == []
    assert belongs(later(8, said("b", at=False)), said("a"))
    assert not belongs(later(-1, said("b", at=False)), said("a"))


async def test_a_run_that_waits_for_a_word_keeps_what_its_asker_had_said_into_it() -> None:
    thought = Thought(words("never"))
    async with hall(thought, calls(("ask_first", "")), words("done"), steers=True) as house:
        house.toolset.register(ask_first)
        await ask_while(house, thought, said("the other one", message_id="2"))
        ((turn_id, run),) = house.suspensions.waiting().items()
        assert house.lanes.put(GROUP, Resume(turn_id, {run.pending[0].call.id: Allow()}, None))
        await house.lanes.wait_idle()
        assert "the other one" in str(house.history.messages(GROUP)[0])


# --- recalls --------------------------------------------------------------------------------------


async def test_a_recalled_line_leaves_the_question_which_is_asked_anew() -> None:
    first, second = Thought(words("no")), Thought(words("neither"))
    async with hall(first, second, words("as it was"), steers=True) as house:
        await house.dispatcher.handle(said("one", message_id="1"))
        await first.begun.wait()
        await house.dispatcher.handle(said("secret", message_id="2"))
        await second.begun.wait()
        await house.take(recalled("2"))
        assert house.transport.texts == ["as it was"]
        assert last(house).endswith("one\n[补充 22:13]\n小明#1: [已撤回]")
        assert "secret" not in str(house.history.messages(GROUP))


async def test_a_recalled_line_that_nobody_has_read_was_never_said() -> None:
    thought = Thought(calls(("work", "")))
    async with hall(calls(("work", "")), thought, words("done"), steers=True) as house:
        house.toolset.register(work)
        await ask_while(house, thought, said("secret", message_id="2"), recalled("2"))
        assert "secret" not in str(house.model.requests)
        assert house.store.of("turn_steered") == []


async def test_for_somebody_elses_line_that_is_recalled_nothing_is_asked_anew() -> None:
    thought = Thought(words("fine"))
    async with hall(thought, steers=True) as house:
        await house.take(said("secret", at=False, user=5, message_id="9"))
        await ask_while(house, thought, recalled("9"))
        assert house.transport.texts == ["fine"]
        assert "secret" not in str(house.history.messages(GROUP))


async def test_a_line_leaves_with_its_question() -> None:
    thought = Thought(words("never"))
    async with hall(thought, steers=True) as house:
        await house.dispatcher.handle(said("one", message_id="1"))
        await thought.begun.wait()
        await house.dispatcher.handle(said("two", message_id="2"))
        await house.take(recalled("1"))
        assert (house.transport.texts, house.history.messages(GROUP)) == ([], ())
        assert house.history.take_overheard(GROUP) == ()
        (steered,) = house.store.of("turn_steered")
        assert isinstance(steered, TurnSteered)
