"""Whatever a transcript has been through, what leaves is what the strictest reading of the vendor's rules takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import orjson
from hypothesis import given, settings
from msgspec.structs import replace

from frostagent.models.openai.answer import RawAnswer
from frostagent.models.openai.dialects import DIALECTS, PLAIN, Dialect, choose_dialect
from frostagent.models.openai.history import EARLIER, GO_ON, IMAGE_OMITTED, NO_RESULT, prepare_history, prepare_tools
from frostagent.models.openai.stream import AnswerReader
from frostagent.models.openai.wire import read_answer, write_request
from frostagent.types.errors import ModelError
from frostagent.types.messages import (
    NOTED,
    AssistantMessage,
    Message,
    ModelRequest,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from tests.cases import each_case
from tests.frostagent.openai import damage
from tests.frostagent.openai.checker import VENDORS, complaints
from tests.frostagent.openai.corpus import shared
from tests.frostagent.openai.damage import ORIGIN, PICTURE
from tests.frostagent.openai.sessions import DIALECT_OF, Turn

ROWS: Mapping[str, Dialect] = {row.name: row for row in reversed(DIALECTS)}
ASKED = UserMessage("hi")
CALL = ToolCall("c1", "f", '{"a":1}')
RESULT = ToolMessage("c1", "f", "1")
CALLED = AssistantMessage("", (CALL,))
ANSWERED = AssistantMessage("ok")


def prepared(*messages: Message, dialect: str = "plain") -> tuple[Message, ...]:
    return tuple(prepare_history(messages, origin=ORIGIN, dialect=ROWS[dialect]))


def body_of(request: ModelRequest, dialect: Dialect) -> Any:
    return orjson.loads(write_request(request, origin=ORIGIN, dialect=dialect, stream_options=True))


# --- any damage, any vendor -----------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(damage.requests)
def test_any_history_is_written_so_that_every_vendor_takes_it(request: ModelRequest) -> None:
    for dialect in ROWS.values():
        assert complaints(body_of(request, dialect), dialect.name) == []


@settings(max_examples=100, deadline=None)
@given(damage.requests)
def test_what_is_prepared_needs_no_preparing(request: ModelRequest) -> None:
    for dialect in ROWS.values():
        once = prepare_history(request.messages, origin=ORIGIN, dialect=dialect)
        assert prepare_history(once, origin=ORIGIN, dialect=dialect) == once
    tools = prepare_tools(request.tools, dialect)
    assert prepare_tools(tools, dialect) == tools


@settings(max_examples=100, deadline=None)
@given(damage.requests)
def test_no_word_of_people_is_lost(request: ModelRequest) -> None:
    said = [message.text.replace("\0", "") for message in request.messages if isinstance(message, UserMessage)]
    for dialect in ROWS.values():
        kept = "".join(
            message.text
            for message in prepare_history(request.messages, origin=ORIGIN, dialect=dialect)
            if isinstance(message, UserMessage)
        )
        assert all(text in kept for text in said if text.strip() and text.isascii())


def test_a_whole_history_stays_as_it_is() -> None:
    whole = (SystemMessage("be kind"), ASKED, CALLED, RESULT, ANSWERED, UserMessage("and?", (PICTURE,)))
    assert prepared(*whole) == whole


# --- rule by rule ---------------------------------------------------------------------------------


@each_case(
    "messages",
    [
        (ASKED, CALLED, RESULT, RESULT),
        (ASKED, RESULT, CALLED, RESULT),
        (RESULT, ASKED, CALLED, RESULT),
        (ASKED, CALLED, RESULT, ToolMessage("c9", "f", "2")),
        (ASKED, CALLED, ToolMessage("c1", "g", "2"), RESULT),
    ],
)
def test_6_1_orphans_and_second_results_are_dropped(messages: tuple[Message, ...]) -> None:
    assert prepared(*messages) == (ASKED, CALLED, RESULT)


def test_6_1_a_result_that_strayed_comes_back_to_its_call() -> None:
    assert prepared(ASKED, CALLED, UserMessage("well?"), RESULT) == (ASKED, CALLED, RESULT, UserMessage("well?"))


def test_6_1_a_missing_result_is_told_as_lost_and_order_is_that_of_the_calls() -> None:
    calls = (CALL, replace(CALL, id="c2"), replace(CALL, id="c3"))
    results = (ToolMessage("c3", "f", "3"), ToolMessage("c1", "f", "1"))
    assert prepared(ASKED, AssistantMessage("", calls), *results)[2:] == (
        RESULT, ToolMessage("c2", "f", NO_RESULT, is_error=True), ToolMessage("c3", "f", "3"),
    )  # fmt: skip


def test_6_1_an_id_that_is_used_in_every_step_finds_the_result_of_its_own_step() -> None:
    steps = (ASKED, CALLED, RESULT, CALLED, replace(RESULT, content="2"))
    assert prepared(*steps) == steps


def test_6_2_what_says_nothing_is_not_sent() -> None:
    empty = (
        AssistantMessage(" "),
        UserMessage("\n"),
        SystemMessage(""),
        AssistantMessage("", (replace(CALL, name=" "),)),
    )
    assert prepared(ASKED, *empty) == (ASKED,)


def test_6_3_a_user_begins_and_nobodys_answer_ends() -> None:
    assert prepared() == (UserMessage(EARLIER),)
    assert prepared(SystemMessage("s"), CALLED, RESULT) == (SystemMessage("s"), UserMessage(EARLIER), CALLED, RESULT)
    assert prepared(ASKED, ANSWERED) == (ASKED, ANSWERED, UserMessage(GO_ON))


def test_6_4_neighbours_of_one_role_are_merged_where_they_must() -> None:
    twice = (ASKED, UserMessage("so?", (PICTURE,)), ANSWERED, AssistantMessage("wait", (CALL,)), RESULT)
    assert prepared(*twice, dialect="deepseek")[:3] == (ASKED, UserMessage(f"so?\n{IMAGE_OMITTED}"), ANSWERED)
    assert prepared(*twice) == (
        UserMessage("hi\n\nso?", (PICTURE,)), AssistantMessage("ok\n\nwait", (CALL,)), RESULT,
    )  # fmt: skip


def test_6_4_a_round_without_an_answer_is_one_message_with_the_next_question_where_they_take_turns() -> None:
    round_ = (ASKED, UserMessage("[note]\n  no answer"), UserMessage("so?"), ANSWERED, ASKED)
    for dialect in ("mistral", "anthropic", "plain"):
        sent = prepared(*round_, dialect=dialect)
        assert sent == (UserMessage("hi\n\n[note]\n  no answer\n\nso?"), ANSWERED, ASKED)
    assert prepared(*round_, dialect="openai") == round_


def test_6_4_a_user_who_interrupted_never_follows_a_result_where_that_is_refused() -> None:
    sent = prepared(ASKED, CALLED, RESULT, UserMessage("stop"), dialect="mistral")
    assert [type(message) for message in sent[2:]] == [ToolMessage, AssistantMessage, UserMessage]
    assert sent[3] == AssistantMessage(NOTED)


def test_6_5_there_is_one_system_message_and_it_is_the_first() -> None:
    sent = prepared(SystemMessage("a"), ASKED, CALLED, SystemMessage("b"), RESULT)
    assert sent == (SystemMessage("a\n\nb"), ASKED, CALLED, RESULT)


@each_case("name", ["天气.查询", "a.b", "_x", "9", "x" * 65])
def test_6_6_names_are_in_the_alphabet_of_all(name: str) -> None:
    sent = prepared(ASKED, AssistantMessage("", (replace(CALL, name=name),)), ToolMessage("c1", name, "1"))
    assert isinstance(sent[1], AssistantMessage)
    assert sent[2] == ToolMessage("c1", sent[1].tool_calls[0].name, "1")


def test_6_8_ids_stay_with_those_who_made_them_and_change_for_others() -> None:
    calls = tuple(replace(CALL, id=identity) for identity in ("functions.f:0", "call_1", "Ab3dEf9hI"))
    kept = {
        name: [call.id for call in sent.tool_calls]
        for name in ROWS
        if isinstance(sent := prepared(ASKED, AssistantMessage("", calls), dialect=name)[1], AssistantMessage)
    }
    assert kept["plain"] == [call.id for call in calls]
    assert kept["kimi"] == ["functions.f:0", "functions.f:1", "functions.f:2"]
    assert kept["mistral"][2] == "Ab3dEf9hI"
    assert kept["openai"][1:] == ["call_1", "Ab3dEf9hI"]


def test_6_8_calls_of_one_id_get_ids_of_their_own_and_keep_their_results() -> None:
    results = (ToolMessage("c1", "f", "first"), ToolMessage("c1", "f", "second"))
    _, calls, first, second = prepared(ASKED, AssistantMessage("", (CALL, CALL)), *results)
    assert isinstance(calls, AssistantMessage)
    assert isinstance(first, ToolMessage)
    assert isinstance(second, ToolMessage)
    assert [call.id for call in calls.tool_calls] == [first.call_id, second.call_id]
    assert first.call_id != second.call_id
    assert (first.content, second.content) == ("first", "second")


@each_case(("content", "sent"), [("", "(no output)"), ("a\0b", "ab"), ("a\ud83d!", "a\ufffd!")])
def test_6_9_and_6_18_results_are_text_that_can_be_sent(content: str, sent: str) -> None:
    assert prepared(ASKED, CALLED, replace(RESULT, content=content))[2] == replace(RESULT, content=sent)


@each_case(("content", "sent"), [("sunny", '{"result":"sunny"}'), ('{"a":1}', '{"a":1}'), ("[1]", '{"result":"[1]"}')])
def test_6_9_results_are_objects_where_they_must(content: str, sent: str) -> None:
    assert prepared(ASKED, CALLED, replace(RESULT, content=content), dialect="gemini")[2] == replace(
        RESULT, content=sent
    )


def test_6_9_pictures_of_results_follow_all_results_of_the_step() -> None:
    calls = (CALL, replace(CALL, id="c2"))
    results = (replace(RESULT, images=(PICTURE,)), replace(RESULT, call_id="c2"))
    bare = (RESULT, results[1])
    shown = UserMessage("(pictures from the results of: f)", (PICTURE,))
    assert prepared(ASKED, AssistantMessage("", calls), *results)[2:] == (*bare, shown)
    assert prepared(ASKED, AssistantMessage("", calls), *results, ANSWERED)[2:] == (
        *bare,
        shown,
        ANSWERED,
        UserMessage(GO_ON),
    )
    blind = prepared(ASKED, AssistantMessage("", calls), *results, dialect="deepseek")[2:]
    assert blind == (replace(RESULT, content=f"1\n{IMAGE_OMITTED}"), results[1])


@each_case("arguments", ["", "null", "[1]", '{"a":', '"{}"', "{}{}"])
def test_3_9_arguments_that_are_no_object_go_back_as_an_empty_one(arguments: str) -> None:
    sent = prepared(ASKED, AssistantMessage("", (replace(CALL, arguments=arguments),)), RESULT)
    assert sent == (ASKED, AssistantMessage("", (replace(CALL, arguments="{}"),)), RESULT)


@each_case("arguments", ["{'a': 1}", '{"a":1}{"a":1}', '"{\\"a\\": 1}"', '```\n{"a": 1}\n```'])
def test_3_9_arguments_that_were_mended_go_back_as_they_were_read(arguments: str) -> None:
    sent = prepared(ASKED, AssistantMessage("", (replace(CALL, arguments=arguments),)), RESULT)
    assert sent == (ASKED, AssistantMessage("", (replace(CALL, arguments='{"a":1}'),)), RESULT)


def test_6_16_pictures_nobody_can_see_are_named() -> None:
    shown = UserMessage("look", (PICTURE, "https://a.example/b.png"))
    assert prepared(shown) == (UserMessage(f"look\n{IMAGE_OMITTED}", (PICTURE,)),)
    assert prepared(shown, dialect="deepseek") == (UserMessage(f"look\n{IMAGE_OMITTED}\n{IMAGE_OMITTED}"),)
    assert prepared(UserMessage("look", (PICTURE + "\0",))) == (UserMessage(f"look\n{IMAGE_OMITTED}"),)


def test_the_prompt_of_one_step_begins_the_prompt_of_the_next() -> None:
    """What vendors cache is the same prefix, byte for byte."""
    history: list[Message] = [SystemMessage("be kind"), ASKED]
    for dialect in ROWS.values():
        before: list[Any] = []
        for step in range(4):
            messages = body_of(ModelRequest((*history, *steps(step))), dialect)["messages"]
            assert messages[: len(before)] == before, dialect.name
            before = messages


def steps(number: int) -> Iterator[Message]:
    for step in range(number):
        call = replace(CALL, id=f"strange id {step}", name="天气")
        yield AssistantMessage("", (call,), Reasoning("why", ORIGIN.endpoint, ORIGIN.model))
        yield ToolMessage(call.id, call.name, str(step))


# --- real conversations ---------------------------------------------------------------------------


def dialect_of(turn: Turn) -> Dialect:
    name = DIALECT_OF.get(turn.vendor, turn.vendor)
    return ROWS.get(name) or choose_dialect("", turn.name)


def completed(turn: Turn, request: ModelRequest, dialect: Dialect) -> AssistantMessage | None:
    """What our reader makes of the recorded answer; None where it is an error."""
    reader, numbers = AnswerReader(), count()
    try:
        reader.feed(turn.body)
        answer: RawAnswer = reader.finish()
        new_id = lambda: f"new{next(numbers)}"  # noqa: E731  # as short as it is
        return read_answer(answer, request=request, origin=ORIGIN, dialect=dialect, new_id=new_id).message
    except ModelError:
        return None


def named(messages: tuple[Message, ...], calls: Mapping[str, str]) -> tuple[Message, ...]:
    """The messages with the names of the results, which the wire does not carry."""
    return tuple(
        replace(message, name=calls.get(message.call_id, "")) if isinstance(message, ToolMessage) else message
        for message in messages
    )


def test_recorded_conversations_can_be_carried_on_with_their_vendor_and_with_any_other(
    sessions: list[list[Turn]],
) -> None:
    """Turn by turn, with our reading of each answer and the recorded results of its calls."""
    assert sum(map(len, sessions)) > (350 if shared() else 100)
    for session in sessions:
        history: tuple[Message, ...] = ()
        calls: dict[str, str] = {}
        for turn in session:
            if turn.said == turn.messages:  # a conversation of its own
                history = ()
                calls = {call.id: call.name for item in turn.messages for call in getattr(item, "tool_calls", ())}
            history += named(turn.said, calls)
            request = ModelRequest(history, turn.tools)
            judge(request, turn)
            if turn.status == 200 and (message := completed(turn, request, dialect_of(turn))) is not None:
                history += (message,)
                calls |= {call.id: call.name for call in message.tool_calls}
                judge(ModelRequest(history), turn)


def judge(request: ModelRequest, turn: Turn) -> None:
    for dialect in ROWS.values():
        body = body_of(request, dialect)
        assert complaints(body, dialect.name) == [], (turn.name, dialect.name)


def test_recorded_results_reach_the_vendor_they_were_sent_to(sessions: list[list[Turn]]) -> None:
    compared = 0
    for turn in (turn for session in sessions for turn in session if turn.status == 200):
        calls = {call.id: call.name for item in turn.messages for call in getattr(item, "tool_calls", ())}
        sent = body_of(ModelRequest(named(turn.messages, calls), turn.tools), PLAIN)["messages"]
        results = [message.content for message in turn.messages if isinstance(message, ToolMessage)]
        assert [message["content"] for message in sent if message["role"] == "tool"] == results, turn.name
        compared += len(results)
    assert compared > (120 if shared() else 35)


# --- the judge ------------------------------------------------------------------------------------


def test_there_are_rules_for_every_dialect() -> None:
    assert VENDORS.keys() == ROWS.keys()


GOOD = body_of(
    ModelRequest((SystemMessage("s"), ASKED, CALLED, RESULT, ANSWERED, ASKED), (ToolSpec("f", "d", {}),)), PLAIN
)


def changed(path: str, value: object) -> Any:
    """The good body with one value changed; None takes it out."""
    body = orjson.loads(orjson.dumps(GOOD))
    *steps, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    node = body
    for step in steps:
        node = node[step]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return body


@each_case(
    ("vendor", "path", "value", "rule"),
    [
        ("plain", "messages.3", None, "without its result (6.1)"),
        ("plain", "messages.2", None, "without its call (6.1)"),
        ("plain", "messages.4.content", "", "(6.2)"),
        ("plain", "messages.1", None, "(6.3)"),
        ("plain", "messages.5", None, "(6.3)"),
        ("plain", "messages.4.role", "user", "(6.4)"),
        ("plain", "messages.5.role", "system", "(6.5)"),
        ("plain", "tools.0.function.name", "a.b", "(6.6)"),
        ("plain", "messages.1.name", "fox", "unknown field"),
        ("plain", "messages.2.tool_calls.0.id", "", "(6.8)"),
        ("plain", "messages.2.tool_calls.0.function.arguments", "{", "(3.9)"),
        ("plain", "messages.3.content", [], "(6.9)"),
        ("plain", "tools.0.function.parameters.$ref", "#", "(6.10)"),
        ("plain", "tool_choice", "auto", "(6.11)"),
        ("plain", "max_tokens", 5, "unknown field"),
        ("plain", "messages.5.content", [{"type": "image_url", "image_url": {"url": "https://a"}}], "(6.16)"),
        ("plain", "messages.5.content", "\0", "(6.18)"),
        ("deepseek", "messages.2.content", "x", "section 5"),
        ("kimi", "messages.2.reasoning_content", "", "section 5"),
        ("groq", "messages.2.reasoning_content", "x", "unknown field"),
        ("mistral", "messages.4.role", "user", "user after tool"),
        ("mistral", "model", "m", "(6.8)"),
        ("gemini", "model", "m", "thought_signature"),
        ("anthropic", "tools", None, "(4.8)"),
        ("openai", "messages.2.tool_calls.0.extra_content", {}, "unknown field"),
    ],
)
def test_the_judge_refuses_what_the_vendor_refuses(vendor: str, path: str, value: object, rule: str) -> None:
    assert complaints(GOOD, "plain") == []
    found = complaints(changed(path, value), vendor)
    assert any(rule in complaint for complaint in found), found
