"""The window of a conversation, through the memory that has it."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.conversation import Conversation
from bot.core.journal import Remembered, Round, WindowMoved
from bot.memory.history import History
from bot.memory.window import Fold, weigh
from bot.prompt.summary import Prefix, outside_tools_in
from frostagent.models.compaction import LONG
from frostagent.models.tokens import estimate_message
from frostagent.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from tests.bot.memory.test_history import users
from tests.cases import each_case
from tests.fakes import GROUP, PRIVATE, RecordingStore


class Begun:
    """Notes when a summary is wanted, and when it is too late."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self, conversation: Conversation, history: History, prefix: Prefix | None = None) -> None:
        self.said.append(f"begin {conversation.session_id}")

    def stop(self, conversation: Conversation) -> None:
        self.said.append(f"stop {conversation.session_id}")


class Memory:
    """A history of so much room, and what was written of its window."""

    def __init__(self, room: float, *, folding: bool = False) -> None:
        self.room = room
        self.store = RecordingStore()
        self.folding = Begun()
        self.history = History(
            store=self.store,
            room=lambda: self.room,
            begin_summary=self.folding.begin if folding else None,
            stop_summary=self.folding.stop if folding else None,
        )
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


@each_case("in_time", [True, False])
async def test_what_tools_brought_is_known_of_whatever_it_became(in_time: bool) -> None:
    memory, rest = Memory(1000, folding=in_time), AssistantMessage("好" * 300)
    await memory.take(ToolMessage("c", "look_up", "红包", tainted=True), rest)
    await memory.take(ToolMessage("c", "own_data", "红包"), rest)
    await memory.talk(2)
    if in_time:
        memory.summarise("领红包\n(some of it tools brought from outside: web, say yes!)")
        await memory.talk(4)
        memory.summarise("再领红包")
    for _ in range(4):
        await memory.talk(4)
    assert outside_tools_in(memory.history.summary(GROUP)) == ("look_up",)
    assert memory.history.summary(GROUP).count("工具从外面带来") == 1


async def test_without_a_summary_rounds_become_a_line_each_when_the_next_turn_begins() -> None:
    memory = Memory(1000)
    await memory.talk(5)
    assert memory.questions == ["q1", "q2", "q3", "q4", "q5"]
    await memory.history.load(GROUP)
    assert memory.questions == ["q5"]
    lines = "·（更早的 1 轮从略）\n" + "\n".join(f"· q{number} -> {'好' * 39}…" for number in (2, 3, 4))
    assert memory.windows == [WindowMoved(GROUP, "t5", "t3", lines)]
    assert memory.history.summary(GROUP) == lines


async def test_a_summary_outlives_rounds_that_leave_without_one_until_there_is_a_later_one() -> None:
    memory = Memory(1000)
    await memory.talk(4)
    memory.summarise("what was")
    await memory.talk(5)
    assert len(memory.windows) == 2
    assert (told := memory.windows[-1].summary).startswith("what was\n·（更早的 1 轮从略）\n· q5 -> 好")
    await memory.talk(3)
    assert memory.summarise("what was, and since").before == told
    assert memory.history.summary(GROUP) == "what was, and since"


async def test_a_summary_that_comes_late_takes_the_place_of_its_rounds_lines_and_of_nothing_else() -> None:
    memory = Memory(2000)
    await memory.talk(8)
    fold = memory.history.fold(GROUP)
    assert fold is not None
    assert [round_.turn_id for round_ in fold.rounds] == ["t1", "t2", "t3", "t4", "t5", "t6"]
    await memory.talk(3)
    assert memory.questions == ["q8", "q9", "q10", "q11"]
    assert memory.history.folded(GROUP, fold, "six questions")
    assert memory.history.summary(GROUP) == f"six questions\n· q7 -> {'好' * 39}…"
    assert memory.windows[-1] == WindowMoved(GROUP, "t8", "t9", memory.history.summary(GROUP))
    assert not memory.history.folded(GROUP, fold, "once more")


async def test_a_summary_that_comes_when_some_of_its_rounds_are_lines_takes_the_place_of_all() -> None:
    memory = Memory(2000)
    await memory.talk(8)
    fold = memory.history.fold(GROUP)
    assert fold is not None
    memory.room = 1700
    await memory.history.load(GROUP)
    assert memory.questions == ["q6", "q7", "q8"]
    assert memory.history.folded(GROUP, fold, "six questions")
    assert (memory.history.summary(GROUP), memory.questions) == ("six questions", ["q7", "q8"])


async def test_a_summary_of_what_was_recalled_meanwhile_is_not_taken() -> None:
    memory = Memory(1000)
    await memory.talk(4)
    fold = memory.history.fold(GROUP)
    assert fold is not None
    memory.history.forget_message(GROUP, "7")
    assert not memory.history.folded(GROUP, fold, "with words that are gone")
    assert memory.summarise("without").turn_id == "t4"


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


@each_case(
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
            known, told = history.window(GROUP).counted(), history.messages(GROUP)
            assert known.messages == told[known.place :]
            assert sum(isinstance(one, UserMessage) for one in told[: known.place]) == 1
            assert known.tokens == pytest.approx(sum(map(estimate_message, known.messages)))
            assert again.window(GROUP).counted().messages == known.messages
            tokens = sum(map(estimate_message, told))
            assert tokens <= room or len(memory.questions) <= 1

    asyncio.run(live())


async def test_rounds_that_are_only_looked_at_weigh_what_they_weigh_in_the_prompt() -> None:
    memory, rounds = Memory(5000, folding=True), list[Round]()
    answer = (
        AssistantMessage("", (ToolCall("c", "look", "{}"),)),
        ToolMessage("c", "look", "x" * 4000),
        AssistantMessage("done"),
    )
    for number in range(1, 6):
        await memory.take(*answer)
        rounds.append(Round(f"t{number}", (UserMessage(f"q{number}"), *answer)))
    assert memory.windows == [WindowMoved(GROUP, "t1", "t3")]
    in_the_prompt = sum(map(estimate_message, memory.history.messages(GROUP)))
    assert weigh(rounds, 3) == pytest.approx(in_the_prompt)
    assert weigh(rounds, 0) > weigh(rounds, 2) > weigh(rounds, 3)
    assert weigh((), 0) == 0
