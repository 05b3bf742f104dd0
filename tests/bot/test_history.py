from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.chat import AssistantMessage, Message, Reasoning, SystemMessage, ToolCall, ToolMessage, UserMessage
from bot.domain.events import Conversation
from bot.history import MAX_CONVERSATIONS, MAX_KNOWN, MAX_OVERHEARD, History
from tests.fakes import BOT, GROUP, PRIVATE, RecordingStore, said


def add(history: History, text: str, *answer: Message, where: Conversation = GROUP) -> None:
    history.add_round(where, "t1", UserMessage(text), answer or (AssistantMessage("ok"),))


def users(history: History, where: Conversation = GROUP) -> list[str]:
    return [message.text for message in history.messages(where) if isinstance(message, UserMessage)]


# --- rounds ---------------------------------------------------------------------------------------


def test_a_round_is_remembered_as_it_was() -> None:
    history = History(store=RecordingStore())
    call = ToolCall("c0", "echo", '{"text": "a"}')
    answer = (AssistantMessage("", (call,)), ToolMessage("c0", "echo", "<a>"), AssistantMessage("done"))
    add(history, "one", *answer)
    add(history, "two")
    assert history.messages(GROUP) == (UserMessage("one"), *answer, UserMessage("two"), AssistantMessage("ok"))


def test_a_stored_round_does_not_change_with_the_list_it_came_from() -> None:
    history, answer = History(store=RecordingStore()), [AssistantMessage("ok")]
    history.add_round(GROUP, "t1", UserMessage("one"), answer)
    answer.append(AssistantMessage("more"))
    assert len(history.messages(GROUP)) == 2


def test_conversations_remember_apart_but_a_temporary_session_is_its_person() -> None:
    history = History(store=RecordingStore())
    add(history, "group")
    add(history, "private", where=dataclasses.replace(PRIVATE, via_group=4242))
    assert users(history, GROUP) == ["group"]
    assert users(history, PRIVATE) == ["private"]
    assert history.messages(Conversation(20002, "group", 4242)) == ()


def test_too_many_rounds_are_dropped_from_the_front_down_to_half() -> None:
    history = History(store=RecordingStore(), max_rounds=4)
    for number in range(4):
        add(history, str(number))
    assert users(history) == ["0", "1", "2", "3"]
    add(history, "4")
    assert users(history) == ["3", "4"]


@pytest.mark.parametrize(
    "answer",
    [
        (AssistantMessage("x" * 100),),
        (AssistantMessage("", (ToolCall("c", "n", "x" * 100),)), ToolMessage("c", "n", "")),
        (AssistantMessage("", (ToolCall("c", "n", "", "x" * 100),)), ToolMessage("c", "n", "")),
        (AssistantMessage("", (ToolCall("c", "n", ""),)), ToolMessage("c", "n", "x" * 100)),
        (AssistantMessage("", (), Reasoning("x" * 100)),),
        (AssistantMessage("", (), Reasoning("", details="x" * 100)),),
        (SystemMessage("x" * 100),),
        (UserMessage("x" * 100),),
    ],
)
def test_whatever_makes_a_round_long_counts(answer: tuple[Message, ...]) -> None:
    history = History(store=RecordingStore(), max_characters=350)
    for number in range(3):
        add(history, str(number), *answer)
    assert users(history)[0] == "0"
    add(history, "3", *answer)
    assert [user for user in users(history) if len(user) == 1] == ["3"]


def test_the_last_round_is_kept_however_long_it_is() -> None:
    history = History(store=RecordingStore(), max_characters=100)
    add(history, "one")
    add(history, "x" * 1000)
    assert users(history) == ["x" * 1000]
    add(history, "two")
    assert users(history) == ["two"]


ROUNDS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 3)).map(
        lambda size: (
            UserMessage("u" * size[0]),
            *(
                part
                for number in range(size[1])
                for part in (
                    AssistantMessage("", (ToolCall(f"c{number}", "t", "{}"),)),
                    ToolMessage(f"c{number}", "t", "r" * size[0]),
                )
            ),
            AssistantMessage("a"),
        )
    ),
    max_size=40,
)


@given(ROUNDS, st.integers(1, 12), st.integers(50, 600))
def test_the_beginning_stays_the_same_until_whole_rounds_are_dropped(
    rounds: list[tuple[Message, ...]], max_rounds: int, max_characters: int
) -> None:
    history = History(store=RecordingStore(), max_rounds=max_rounds, max_characters=max_characters)
    stored: list[tuple[Message, ...]] = []
    for user, *answer in rounds:
        assert isinstance(user, UserMessage)
        before = history.messages(GROUP)
        history.add_round(GROUP, f"t{len(stored)}", user, answer)
        stored.append((user, *answer))
        after = history.messages(GROUP)
        kept = next(n for n in range(1, len(stored) + 1) if len(after) == sum(map(len, stored[-n:])))
        assert after == tuple(message for round_ in stored[-kept:] for message in round_)
        assert kept <= max_rounds
        if after[: len(before)] != before:  # it shrank, and then far enough to leave room for several rounds
            assert kept == 1 or kept <= max_rounds // 2


# --- messages -------------------------------------------------------------------------------------


async def test_a_message_is_known_by_its_id_in_its_own_conversation() -> None:
    history, message = History(store=RecordingStore()), said("hi", message_id="7")
    history.know(message)
    assert await history.find(GROUP, "7") is message
    assert await history.find(PRIVATE, "7") is None
    assert await history.find(GROUP, "8") is None


async def test_a_message_without_an_id_is_nobodys() -> None:
    history = History(store=RecordingStore())
    history.know(said("hi", message_id=""))
    assert await history.find(GROUP, "") is None


async def test_an_id_that_comes_again_is_the_newer_message() -> None:
    history, newer = History(store=RecordingStore()), said("new", message_id="7")
    history.know(said("old", message_id="7"))
    history.know(newer)
    assert await history.find(GROUP, "7") is newer


def test_what_was_overheard_is_taken_once_and_in_order() -> None:
    history = History(store=RecordingStore())
    messages = [said(str(number), at=False) for number in range(3)]
    for message in messages:
        history.overhear(message)
    assert history.take_overheard(PRIVATE) == ()
    assert history.take_overheard(GROUP) == tuple(messages)
    assert history.take_overheard(GROUP) == ()


def test_only_the_latest_of_what_was_overheard_is_kept() -> None:
    history = History(store=RecordingStore())
    for number in range(MAX_OVERHEARD + 5):
        history.overhear(said("x", message_id=str(number)))
    assert [message.message_id for message in history.take_overheard(GROUP)] == [
        str(number) for number in range(5, MAX_OVERHEARD + 5)
    ]


async def test_a_recalled_message_is_forgotten_and_the_others_stay() -> None:
    history = History(store=RecordingStore())
    for id_ in ("1", "2", "3"):
        history.know(said("x", message_id=id_))
        history.overhear(said("x", message_id=id_))
    history.forget_message(GROUP, "2")
    history.forget_message(GROUP, "unknown")
    history.forget_message(PRIVATE, "1")
    assert await history.find(GROUP, "2") is None
    assert await history.find(GROUP, "1") is not None
    assert [message.message_id for message in history.take_overheard(GROUP)] == ["1", "3"]


def test_what_a_run_has_read_is_not_rewritten_by_a_recall() -> None:
    history = History(store=RecordingStore())
    add(history, "[提问] 消息号 7\n小明(777): hi")
    history.forget_message(GROUP, "7")
    assert users(history) == ["[提问] 消息号 7\n小明(777): hi"]


async def test_the_memory_is_bounded_in_conversations_and_in_messages() -> None:
    history = History(store=RecordingStore())
    for number in range(MAX_CONVERSATIONS + 1):
        add(history, "hi", where=Conversation(BOT, "private", number))
    assert history.messages(Conversation(BOT, "private", 0)) == ()
    assert history.messages(Conversation(BOT, "private", MAX_CONVERSATIONS)) != ()
    message = said("hi")
    for number in range(MAX_KNOWN + 1):
        history.know(dataclasses.replace(message, message_id=str(number + 1)))
    assert await history.find(GROUP, "1") is None
    assert await history.find(GROUP, str(MAX_KNOWN + 1)) is not None


def test_a_conversation_in_use_is_not_the_one_that_is_forgotten() -> None:
    history = History(store=RecordingStore())
    add(history, "hi")
    for number in range(MAX_CONVERSATIONS - 1):
        add(history, "hi", where=Conversation(BOT, "private", number))
    assert users(history) == ["hi"]
    add(history, "hi", where=Conversation(BOT, "private", MAX_CONVERSATIONS))
    assert users(history) == ["hi"]
    assert history.messages(Conversation(BOT, "private", 0)) == ()
