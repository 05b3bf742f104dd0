"""What may be the prompt said back is asked for once more; no answer is lost by that."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from msgspec.structs import replace

from bot.policy.fallback_replies import NO_CONCLUSION, OWN
from bot.policy.silence import keeps_silent
from bot.prompt.wording_zh import ZH
from frostagent.engine.answer_filter import LONGEST, KnownTexts, own_words
from frostagent.engine.budget import Budget, Limits
from frostagent.engine.engine import Run, RunState
from frostagent.types.errors import ModelAuth
from frostagent.types.messages import AssistantMessage, Usage, UserMessage
from frostagent.types.runs import StepFinished, Stop
from frostagent.types.tools import tool
from frostagent.words import ENGLISH, Words
from tests.cases import each_case
from tests.data.speech import entries
from tests.fakes import RecordingObserver, ScriptedModel, Step, calls, words
from tests.frostagent.runs import QUESTION, engine, run, to_the_end

EXAMPLES = (UserMessage("[Asked] thanks"), AssistantMessage("You're welcome!"))


def doubting(answer: str = "", **more: Any) -> Run:
    """A run that doubts this answer, or every one."""
    return replace(run(**more), doubts=lambda text: not answer or text == answer, examples=EXAMPLES)


async def test_a_doubted_answer_is_asked_for_once_more_with_examples_before_the_question_and_nobody_keeps_them() -> (
    None
):
    with ScriptedModel(words("(noted)"), words("周六七点")) as model:
        outcome = await to_the_end(engine(model).run(doubting("(noted)"), RunState()))
    assert (outcome.text, outcome.messages) == ("周六七点", (AssistantMessage("周六七点"),))
    first, second = (request.messages for request in model.requests)
    assert second == (*first[:-1], *EXAMPLES, first[-1])


async def test_so_is_one_of_which_nothing_was_left() -> None:
    cutting = replace(doubting("?"), tidy=lambda message: replace(message, text=message.text.removeprefix("小明: hi")))
    with ScriptedModel(words("小明: hi"), words("周六七点")) as model:
        outcome = await to_the_end(engine(model).run(cutting, RunState()))
    assert outcome.text == "周六七点"
    assert model.requests[1].messages[-3:-1] == EXAMPLES


async def test_what_comes_then_is_the_answer_though_it_may_be_doubted_itself() -> None:
    with ScriptedModel(words("（未提及）"), words("（没有人说）")) as model:
        outcome = await to_the_end(engine(model).run(doubting(), RunState()))
    assert (outcome.stop, outcome.text, len(model.requests)) == (Stop.ANSWERED, "（没有人说）", 2)
    assert outcome.messages == (AssistantMessage("（没有人说）"),)


async def test_the_second_request_is_counted_like_any_other() -> None:
    """A step of the run, in its tokens and in its share of the budget; the doubted words are no part of it."""
    observer, budget = RecordingObserver(), Budget(Limits(requests=9))
    asked = replace(doubting("（未提及）"), share=budget.share())
    with ScriptedModel(words("（未提及）"), words("周六七点")) as model:
        outcome = await to_the_end(engine(model, observer=observer).run(asked, RunState()))
    steps = [event for event in observer.events if isinstance(event, StepFinished)]
    assert [step.completion.message.text for step in steps] == ["", "周六七点"]
    assert (outcome.steps, outcome.usage, budget.spent.requests) == (2, Usage(20, 10), 2)


@each_case("answer", entries("honest.txt"))
async def test_an_honest_answer_that_is_doubted_and_said_again_is_sent(answer: str) -> None:
    with ScriptedModel(words(answer), words(answer)) as model:
        outcome = await to_the_end(engine(model).run(doubting(), RunState()))
    assert (outcome.stop, outcome.text, len(outcome.messages)) == (Stop.ANSWERED, answer.strip(), 1)


@each_case("may_be_silent", [False, True])
@each_case("then", [words(""), ModelAuth("bad key"), words("小明: hi")])
async def test_what_was_doubted_is_the_answer_where_no_other_comes_but_silence_that_may_be_chosen(
    then: Step, may_be_silent: bool
) -> None:
    def cut(message: AssistantMessage) -> AssistantMessage:
        return replace(message, text="") if message.text == "小明: hi" else message

    asked = replace(doubting(may_be_silent=may_be_silent), tidy=cut)
    with ScriptedModel(words("（未提及）"), then) as model:
        outcome = await to_the_end(engine(model).run(asked, RunState()))
    if may_be_silent and then == words(""):
        assert (outcome.stop, outcome.text, outcome.messages) == (Stop.SILENT, "", ())
    else:
        assert (outcome.stop, outcome.text) == (Stop.ANSWERED, "（未提及）")
        assert outcome.messages == (AssistantMessage("（未提及）"),)
    assert len(model.requests) == 2


async def test_what_was_doubted_is_no_answer_to_what_is_asked_after_it() -> None:
    state = RunState()
    state.follow_up(UserMessage("and where?"))
    with ScriptedModel(words("（七点）"), words("七点"), words("（东门）"), words("")) as model:
        outcome = await to_the_end(engine(model).run(doubting(), state))
    assert [message.text for message in outcome.messages] == ["七点", "and where?", "（东门）"]
    assert (outcome.text, len(model.requests)) == ("（东门）", 4)


async def test_so_it_is_where_there_is_no_room_for_another_request() -> None:
    short = replace(doubting(), share=Budget(Limits(requests=1)).share())
    with ScriptedModel(words("（未提及）")) as model:
        outcome = await to_the_end(engine(model).run(short, RunState()))
    assert (outcome.stop, outcome.text) == (Stop.ANSWERED, "（未提及）")


async def test_nothing_is_doubted_where_something_was_said_and_nothing_said_twice_then() -> None:
    heard: list[str] = []

    @tool
    async def speak() -> str:
        """Says something."""
        heard.append("x")
        return "said"

    with ScriptedModel(words("(noted)"), calls(("speak", "{}")), words("")) as model:
        outcome = await to_the_end(engine(model, speak).run(doubting(heard=lambda: bool(heard)), RunState()))
    assert (outcome.stop, outcome.text, heard) == (Stop.SILENT, "", ["x"])
    with ScriptedModel(words("(noted)")) as model:
        outcome = await to_the_end(engine(model).run(doubting(heard=lambda: True), RunState()))
    assert (outcome.stop, outcome.text) == (Stop.ANSWERED, "(noted)")


async def test_words_beside_a_call_are_not_doubted() -> None:
    with ScriptedModel(calls(("echo", '{"text": "a"}'), text="(noted)"), words("done")) as model:
        outcome = await to_the_end(engine(model).run(doubting("(noted)"), RunState()))
    assert (outcome.text, len(model.requests)) == ("done", 2)
    assert model.requests[1].messages[: len(QUESTION)] == QUESTION


@each_case(
    ("heard", "session", "said"),
    [(True, "", ""), (False, "", "(Message sent)"), (True, "group:9", "(Message sent)")],
)
async def test_a_receipt_is_no_answer_for_who_has_read_what_was_sent_and_is_one_for_who_has_not(
    heard: bool, session: str, said: str
) -> None:
    @tool
    async def send_message(session: str = "") -> str:
        """Says something."""
        return "sent"

    sending = calls(("send_message", json.dumps({"session": session})))
    with ScriptedModel(sending, words("(Message sent)")) as model:
        outcome = await to_the_end(engine(model, send_message).run(run(heard=lambda: heard), RunState()))
    assert (outcome.stop, outcome.text) == (Stop.ANSWERED if said else Stop.SILENT, said)
    assert len(model.requests) == 2


HERE = ("send_message", "{}")
ELSEWHERE = ("send_message", json.dumps({"session": "group:9"}))


@each_case(
    ("steps", "said"),
    [
        ([[HERE], [("mail", "{}")]], "Message sent."),
        ([[HERE, ("mail", "{}")]], "Message sent."),
        ([[HERE, ELSEWHERE]], "Message sent."),
        ([[("mail", "{}")], [HERE]], ""),
        ([[ELSEWHERE], [HERE, HERE]], ""),
        ([[("look_up", "{}")], [HERE]], ""),
        ([[HERE], [("mail", "{}")], [HERE]], ""),
    ],
)
async def test_that_something_else_was_done_is_news_though_something_was_said_before(
    steps: list[list[tuple[str, str]]], said: str
) -> None:
    done: list[str] = []

    @tool
    async def send_message(session: str = "") -> str:
        """Says something."""
        done.append(f"said {session}".strip())
        return "sent"

    @tool
    async def mail() -> str:
        """Sends a mail."""
        done.append("mail")
        return "ok"

    @tool
    async def look_up() -> str:
        """Only reads."""
        done.append("looked")
        return "found"

    with ScriptedModel(*(calls(*step) for step in steps), words("Message sent.")) as model:
        heard = engine(model, send_message, mail, look_up).run(run(heard=lambda: bool(done)), RunState())
        outcome = await to_the_end(heard)
    assert (outcome.stop, outcome.text) == (Stop.ANSWERED if said else Stop.SILENT, said)
    assert len(done) == sum(map(len, steps))


def quiet(*, weak: bool, asked: str = "几点？", **more: Any) -> Run:
    """A run whose model may keep silent in words."""
    return replace(run(may_be_silent=weak, **more), silence=partial(keeps_silent, asked=asked, weak=weak))


async def test_silence_in_words_ends_a_run_that_nobody_called_for_without_another_request() -> None:
    said: list[str] = []
    for text in entries("silence.txt"):
        with ScriptedModel(words(text)) as model:
            outcome = await to_the_end(engine(model).run(quiet(weak=True), RunState()))
        if (outcome.stop, outcome.messages, len(model.requests)) != (Stop.SILENT, (), 1):
            said.append(text)
    assert said == []


async def test_who_called_is_answered_and_the_silence_is_in_no_message_of_the_run() -> None:
    said: list[str] = []
    for text in entries("silence.txt"):
        with ScriptedModel(words(text), words("七点")) as model:
            outcome = await to_the_end(engine(model).run(quiet(weak=False), RunState()))
        if (outcome.text, outcome.messages) != ("七点", (AssistantMessage("七点"),)):
            said.append(text)
        if any(text in message.text for message in model.requests[1].messages):
            said.append(text)
    assert said == []


async def test_a_model_that_insists_on_it_has_given_no_answer() -> None:
    with ScriptedModel(*[words("（不回复）")] * 3) as model:
        outcome = await to_the_end(engine(model).run(quiet(weak=False), RunState()))
    assert (outcome.stop, outcome.text, outcome.messages) == (Stop.FAILED, "", ())
    with ScriptedModel(words("沉默"), words("沉默")) as model:  # that may be the answer
        outcome = await to_the_end(engine(model).run(quiet(weak=False), RunState()))
    assert (outcome.stop, outcome.text) == (Stop.ANSWERED, "沉默")


async def test_silence_beside_a_call_is_not_kept_and_the_call_is_made() -> None:
    with ScriptedModel(calls(("echo", '{"text": "a"}'), text="（不回复）"), words("done")) as model:
        outcome = await to_the_end(engine(model).run(quiet(weak=False), RunState()))
    assert outcome.text == "done"
    assert not any("不回复" in str(message) for message in outcome.messages)


async def test_a_run_of_the_library_says_what_its_model_says() -> None:
    with ScriptedModel(words("NO_RESPONSE")) as model:
        outcome = await to_the_end(engine(model).run(run(), RunState()))
    assert outcome.text == "NO_RESPONSE"


@each_case(
    "text",
    [
        "消息已发送",
        "消息已发送 (message_id: 5502844)",
        "[消息已发送]",
        "（已发送）",
        "已回复。",
        "Message sent.",
        "Sent! (message_id: -77)",
    ],
)
def test_what_a_model_was_told_of_its_call_is_no_answer(text: str) -> None:
    assert own_words(OWN).has_receipt(text)


@each_case(
    "text", ["", "好的", "无", "null", "快递已发送，明天到", "消息", "邮件已发送", "已回复你的邮件", "已发送" * 30]
)
def test_whatever_says_more_or_something_else_is_one(text: str) -> None:
    assert not own_words(OWN).has_receipt(text)


def test_of_a_long_text_nothing_is_a_receipt() -> None:
    longest = f"消息已发送 (message_id: {'1' * 40})"
    assert len(longest) == LONGEST
    assert own_words(OWN).has_receipt(longest)
    assert not own_words(OWN).has_receipt(longest.replace("1)", "11)"))


def lines(words: Words) -> tuple[str, str, str]:
    return words.last_step, words.empty, words.no_conclusion


@each_case("table", [ENGLISH, ZH.engine[0]])
def test_who_says_a_notice_back_has_said_nothing(table: Words) -> None:
    told = KnownTexts(*lines(table))
    assert all(map(told.has, lines(table)))
    assert not told.has("It will rain tomorrow. 明天有雨，记得带伞。")


def test_in_chinese_people_read_that_there_is_no_conclusion_in_chinese() -> None:
    assert ZH.engine[0].no_conclusion == NO_CONCLUSION.zh
    assert len({*lines(ENGLISH), *lines(ZH.engine[0])}) == 6
