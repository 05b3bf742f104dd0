from __future__ import annotations

from typing import Any

from bot.domain.chat import (
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
from bot.policy.repairs import (
    CALL_AGAIN,
    PICTURE_LEFT_OUT,
    asking_again,
    beginning_with,
    dropping,
    earlier_rounds,
    has_pictures,
    latest_round,
    plain,
    without_pictures,
)
from tests.cases import each_case

PICTURE = "data:image/png;base64,AAAA"
SYSTEM = SystemMessage("be kind")
TOOLS = (ToolSpec("f", "Does it.", {"type": "object", "properties": {}}),)
CALLING = AssistantMessage("", (ToolCall("c0", "f", "{}"),))
RESULT = ToolMessage("c0", "f", "done")


def ask(*messages: Message) -> ModelRequest:
    return ModelRequest(messages, TOOLS)


def test_pictures_become_words_that_say_they_were_there() -> None:
    request = ask(
        SYSTEM, UserMessage("look", images=(PICTURE, PICTURE)), CALLING, ToolMessage("c0", "f", "", images=(PICTURE,))
    )
    assert has_pictures(request)
    changed = without_pictures(request)
    assert changed == ask(
        SYSTEM,
        UserMessage(f"look\n{PICTURE_LEFT_OUT}\n{PICTURE_LEFT_OUT}"),
        CALLING,
        ToolMessage("c0", "f", PICTURE_LEFT_OUT),
    )
    assert changed is not None
    assert not has_pictures(changed)
    assert without_pictures(changed) is None


def test_what_belongs_to_one_vendor_goes() -> None:
    call = ToolCall("c0", "f", "{}", extras='{"signature": "x"}')
    request = ask(UserMessage("q"), AssistantMessage("", (call,), Reasoning("hm", "a.test", "m")), RESULT)
    changed = plain(request)
    assert changed == ask(UserMessage("q"), CALLING, RESULT)
    assert changed is not None
    assert plain(changed) is None


def test_a_model_that_called_wrongly_is_told_so_at_the_end() -> None:
    assert asking_again(ask(UserMessage("q"))).messages == (UserMessage("q"), UserMessage(CALL_AGAIN))


EARLIER: tuple[Message, ...] = (UserMessage("one"), AssistantMessage("two"))


@each_case(
    "latest",
    [
        (UserMessage("three"),),
        (UserMessage("three"), CALLING, RESULT),
        (UserMessage("three"), AssistantMessage("hm")),
        (UserMessage("three"), CALLING, RESULT, UserMessage("You have no tool calls left.")),
    ],
)
def test_the_latest_question_stays_with_what_followed(latest: tuple[Any, ...]) -> None:
    request = ask(SYSTEM, *EARLIER, *latest)
    assert earlier_rounds(request) == EARLIER
    assert latest_round(request) == ask(SYSTEM, *latest)
    assert latest_round(ask(SYSTEM, *latest)) is None
    assert latest_round(ask(*EARLIER, *latest)) == ask(*latest)


def test_a_round_that_ended_silently_stays_too_since_its_question_may_be_the_one() -> None:
    latest = (UserMessage("three"), CALLING, RESULT, UserMessage("four"))
    assert latest_round(ask(SYSTEM, *EARLIER, *latest)) == ask(SYSTEM, *latest)


def test_where_nobody_asks_nothing_is_dropped() -> None:
    assert latest_round(ask(SYSTEM)) is None
    assert latest_round(ask(SYSTEM, AssistantMessage("a"))) is None


def test_beginnings_end_before_a_question() -> None:
    request = ask(SYSTEM, *EARLIER, UserMessage("three"))
    assert list(beginning_with(request, (1, 2, 3, 9))) == [EARLIER]
    assert dropping(request, EARLIER) == ask(SYSTEM, UserMessage("three"))
