from __future__ import annotations

import asyncio
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from bot.domain.chat import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from bot.domain.events import Conversation
from bot.domain.journal import Remembered, Round, WindowMoved
from bot.memory.history import MAX_CONVERSATIONS, MAX_KNOWN, MAX_OVERHEARD, Fold, History
from bot.policy.compaction import LONG
from bot.policy.tokens import estimate_message
from tests.fakes import BOT, GROUP, PRIVATE, RecordingStore, said


def add(history: History, text: str, *answer: Message, where: Conversation = GROUP) -> None:
    history.add_round(where, "t1", UserMessage(text), answer or (AssistantMessage("ok"),))


def users(history: History, where: Conversation = GROUP) -> list[str]:
    return [message.text for message in history.messages(where) if isinstance(message, UserMessage)]


# --- rounds ---------------------------------------------------------------------------------------


def test_a_round_is_remembered_as_it_was() -> None:
    history = History(store=RecordingStore())
    call = ToolCall("c0", "echo", '{"text": "a"}')
    answer: list[Message] = [AssistantMessage("", (call,)), ToolMessage("c0", "echo", "<a>"), AssistantMessage("done")]
    first = (UserMessage("one"), *answer)
    history.add_round(GROUP, "t1", UserMessage("one"), answer)
    answer.clear()
    add(history, "two")
    assert history.messages(GROUP) == (*first, UserMessage("two"), AssistantMessage("ok"))


def test_conversations_remember_apart_but_a_temporary_session_is_its_person() -> None:
    history = History(store=RecordingStore())
    add(history, "group")
    add(history, "private", where=structs.replace(PRIVATE, via_group=4242))
    assert users(history, GROUP) == ["group"]
    assert users(history, PRIVATE) == ["private"]
    assert history.messages(Conversation(20002, "group", 4242)) == ()


def test_pictures_are_for_their_run_alone() -> None:
    history = History(store=RecordingStore())
    seen = ToolMessage("c", "look", "a chart", images=("data:image/png;base64,AAAA",))
    call = AssistantMessage("", (ToolCall("c", "look", "{}"),))
    kept = history.add_round(GROUP, "t1", UserMessage("[图片]", images=("data:image/png;base64,AAAA",)), [call, seen])
    assert kept == (UserMessage("[图片]"), call, ToolMessage("c", "look", "a chart")) == history.messages(GROUP)


async def test_what_is_read_anew_is_what_the_store_has_then() -> None:
    store = RecordingStore()
    history = History(store=store)
    add(history, "secret")
    history.know(said("secret", message_id="7"))
    store.trouble = True
    assert not await history.reread()
    assert users(history) == ["secret"]
    store.trouble, store.remembered[GROUP] = False, Remembered((Round("t0", (UserMessage("kept"),)),))
    assert await history.reread()
    add(history, "of a turn that went on")
    await history.load(GROUP)
    assert (users(history), history.known(GROUP, "7")) == (["kept"], None)


# --- the window -----------------------------------------------------------------------------------


class Begun:
    """Notes when a summary is wanted, and when it is too late."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self, conversation: Conversation, history: History) -> None:
        self.said.append(f"begin {conversation.session_id}")

    def stop(self, conversation: Conversation) -> None:
        self.said.append(f"stop {conversation.session_id}")


class Memory:
    """A history of so much room, and what was written of its window."""

    def __init__(self, room: float, *, folding: bool = False) -> None:
        self.room = room
        self.store = RecordingStore()
        self.folding = Begun()
        self.history = History(store=self.store, room=lambda: self.room, folding=self.folding if folding else None)
        self._turns = count(1)

    async def take(self, *answer: Message, user: str = "") -> None:
        """One turn."""
        await self.history.load(GROUP)
        number = next(self._turns)
        self.history.add_round(GROUP, f"t{number}", UserMessage(user or f"q{number}"), answer)

    async def talk(self, turns: int) -> None:
        """So many turns, each with a long answer."""
        for _ in range(turns):
            await self.take(AssistantMessage("好" * 300))

    def summarise(self, summary: str) -> Fold:
        """A summary has come in time."""
        fold = self.history.fold(GROUP)
        assert fold is not None
        assert self.history.folded(GROUP, fold, summary)
        return fold

    @property
    def windows(self) -> list[WindowMoved]:
        return [entry for entry in self.store.entries if isinstance(entry, WindowMoved)]

    @property
    def questions(self) -> list[str]:
        return users(self.history)

    async def again(self) -> History:
        """What another process reads from what this one wrote, every round being stored."""
        names = [f"t{number}" for number in ROUND_OF]
        last = self.windows[-1] if self.windows else WindowMoved(GROUP, names[0])
        first = names.index(last.first_turn)
        light = names.index(last.light_to) + 1 if last.light_to else 0
        rounds = tuple(map(Round, names, ROUND_OF.values()))[first:]
        remembered = Remembered(rounds, light=max(0, light - first), summary=last.summary)
        history = History(store=RecordingStore(remembered={GROUP: remembered}), room=lambda: self.room)
        await history.load(GROUP)
        return history


ROUND_OF: dict[int, tuple[Message, ...]] = {}


async def test_long_results_of_older_rounds_are_told_shortened_before_anything_is_left_out() -> None:
    memory = Memory(5000, folding=True)
    for _ in range(5):
        call = AssistantMessage("", (ToolCall("c", "look", "{}"),))
        await memory.take(call, ToolMessage("c", "look", "x" * 4000), AssistantMessage("done"))
    results = [m.content for m in memory.history.messages(GROUP) if isinstance(m, ToolMessage)]
    assert [len(text) for text in results] == [len(results[0])] * 3 + [4000] * 2
    assert len(results[0]) < LONG
    assert memory.questions == ["q1", "q2", "q3", "q4", "q5"]
    assert memory.windows == [WindowMoved(GROUP, "t1", "t3")]
    assert "begin 4242" not in memory.folding.said


async def test_too_long_a_conversation_wants_a_summary_after_its_turn_and_not_during_the_next() -> None:
    memory = Memory(1000, folding=True)
    await memory.talk(4)
    assert memory.folding.said == ["stop 4242"] * 4 + ["begin 4242"]
    assert memory.windows == []
    assert len(memory.questions) == 4
    await memory.history.load(GROUP)
    assert memory.folding.said[-1] == "stop 4242"
    assert len(memory.questions) == 4  # there is room yet


async def test_a_summary_stands_for_the_oldest_rounds_from_then_on() -> None:
    memory = Memory(1000, folding=True)
    await memory.talk(4)
    fold = memory.summarise("小明(777) 问了三次")
    assert [round_.turn_id for round_ in fold.rounds] == ["t1", "t2", "t3"]
    assert (fold.before, fold.turn_id) == ("", "t4")
    assert memory.questions == ["q4"]
    assert memory.history.summary(GROUP) == "小明(777) 问了三次"
    assert memory.windows == [WindowMoved(GROUP, "t4", "t2", "小明(777) 问了三次")]
    assert not memory.history.folded(GROUP, fold, "once more")
    assert memory.history.fold(GROUP) is None
    assert memory.history.fold(PRIVATE) is None


async def test_without_a_summary_whole_rounds_leave_when_the_next_turn_begins() -> None:
    memory = Memory(1000)
    await memory.talk(5)
    assert memory.questions == ["q1", "q2", "q3", "q4", "q5"]
    await memory.history.load(GROUP)
    assert memory.questions == ["q4", "q5"]
    assert memory.windows == [WindowMoved(GROUP, "t4", "t3")]


async def test_a_summary_outlives_rounds_that_leave_without_one_until_there_is_a_later_one() -> None:
    memory = Memory(1000)
    await memory.talk(4)
    memory.summarise("what was")
    await memory.talk(5)
    assert len(memory.windows) == 2
    assert memory.windows[-1].summary == "what was"
    await memory.talk(1)
    assert memory.summarise("what was, and since").before == "what was"
    assert memory.history.summary(GROUP) == "what was, and since"


async def test_the_last_round_is_kept_however_long_it_is() -> None:
    memory = Memory(500)
    await memory.take()
    await memory.take(AssistantMessage("好" * 3000))
    await memory.history.load(GROUP)
    assert memory.questions == ["q2"]
    await memory.history.load(GROUP)
    assert len(memory.windows) == 1
    assert memory.history.fold(GROUP) is None


async def test_a_smaller_window_is_obeyed_when_the_next_turn_begins() -> None:
    memory = Memory(10_000)
    await memory.talk(5)
    memory.room = 600
    await memory.history.load(GROUP)
    assert memory.questions == ["q5"]


async def test_while_the_store_cannot_be_read_nothing_is_written_of_the_window() -> None:
    memory = Memory(1000)
    memory.store.trouble = True
    await memory.talk(8)
    assert len(memory.questions) <= 5
    assert memory.windows == []


@pytest.mark.parametrize(
    "answer",
    [
        (AssistantMessage("x" * 2000),),
        (AssistantMessage("", (ToolCall("c", "n", "x" * 2000),)), ToolMessage("c", "n", "")),
        (UserMessage("x" * 2000),),
    ],
)
async def test_whatever_makes_a_round_long_counts(answer: tuple[Message, ...]) -> None:
    memory = Memory(1500, folding=True)
    for _ in range(3):
        await memory.take(*answer)
    assert "begin 4242" in memory.folding.said


ANSWERS = st.lists(
    st.tuples(st.integers(0, 1200), st.integers(0, 3), st.booleans()).map(
        lambda size: (
            *(
                part
                for number in range(size[1])
                for part in (
                    AssistantMessage("", (ToolCall(f"c{number}", "t", "{}"),)),
                    ToolMessage(f"c{number}", "t", "结果r"[number % 3] * size[0]),
                )
            ),
            AssistantMessage("a" * (size[0] // 2)),
        )
    ),
    max_size=15,
)


@given(ANSWERS, st.floats(300, 4000), st.sets(st.integers(0, 15)))
def test_the_window_moves_rarely_between_turns_and_is_known_to_the_store(
    answers: list[tuple[Message, ...]], room: float, summarised: set[int]
) -> None:
    """Whether a summary comes in time or not; and another process tells the same, byte for byte."""

    async def live() -> None:
        memory = Memory(room)
        history = memory.history
        ROUND_OF.clear()
        for number, answer in enumerate(answers, 1):
            await history.load(GROUP)
            begin, told, moved = history.summary(GROUP), history.messages(GROUP), len(memory.windows)
            ROUND_OF[number] = history.add_round(GROUP, f"t{number}", UserMessage(f"q{number}"), answer)
            if len(memory.windows) == moved:
                assert history.messages(GROUP) == told + ROUND_OF[number]
                assert history.summary(GROUP) == begin
            if number in summarised and (fold := history.fold(GROUP)):
                assert history.folded(GROUP, fold, f"summary {number}")
            assert history.messages(GROUP)[-len(ROUND_OF[number]) :] == ROUND_OF[number]
            again = await memory.again()
            await history.load(GROUP)
            assert again.messages(GROUP) == history.messages(GROUP)
            assert again.summary(GROUP) == history.summary(GROUP)
            tokens = sum(map(estimate_message, history.messages(GROUP)))
            assert tokens <= room or len(memory.questions) <= 1

    asyncio.run(live())


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


def test_what_was_overheard_is_taken_in_the_order_in_which_it_was_said() -> None:
    history = History(store=RecordingStore())
    live = [said(str(number), at=False) for number in range(3)]
    missed = structs.replace(said("missed", at=False), time=live[0].time - 1)
    for message in (*live, missed):
        history.overhear(message)
    assert history.take_overheard(GROUP) == (missed, *live)


async def test_a_past_that_cannot_be_read_now_is_read_at_the_next_turn() -> None:
    earlier = Round("t0", (UserMessage("earlier"), AssistantMessage("indeed")))
    before, since = said("before", at=False), said("since", at=False)
    store = RecordingStore(remembered={GROUP: Remembered((earlier,), (before,))})
    history, store.trouble = History(store=store), True
    await history.load(GROUP)
    add(history, "in between")
    history.overhear(since)
    assert users(history) == ["in between"]
    store.trouble = False
    await history.load(GROUP)
    assert users(history) == ["earlier", "in between"]
    assert history.take_overheard(GROUP) == (before, since)
    await history.load(GROUP)
    assert store.asked == [GROUP, GROUP]


def test_only_the_latest_of_what_was_overheard_is_kept() -> None:
    history = History(store=RecordingStore())
    messages = [said("x", message_id=str(number)) for number in range(MAX_OVERHEARD + 5)]
    for message in messages:
        history.overhear(message)
    assert history.take_overheard(GROUP) == tuple(messages[5:])


async def test_a_recalled_message_is_forgotten_and_the_others_stay() -> None:
    history = History(store=RecordingStore())
    for message in [said("x", message_id=id_) for id_ in ("1", "2", "3")]:
        history.know(message)
        history.overhear(message)
    for where, id_ in ((GROUP, "2"), (GROUP, "unknown"), (PRIVATE, "1")):
        history.forget_message(where, id_)
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
    for number in range(MAX_KNOWN + 1):
        history.know(said("hi", message_id=str(number + 1)))
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
