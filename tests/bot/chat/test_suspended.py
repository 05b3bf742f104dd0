from __future__ import annotations

from msgspec.structs import replace

from bot.chat.suspended import SuspendedTurn
from bot.core.journal import Remembered, Round, RunSuspended, Suspended, TurnClosed
from bot.core.redaction import RECALLED, OwnWords
from bot.core.run_ids import read_run, write_run
from frostagent.types.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from frostagent.types.runs import Stop
from frostagent.types.suspension import Allow
from tests.bot.approvals.desk import waiting
from tests.bot.chat.test_turn import living
from tests.e2e.test_suspended_turns import ask_first
from tests.fakes import GROUP, calls, said, words


async def test_a_suspended_run_that_cannot_be_read_is_closed_as_interrupted() -> None:
    """Else every start would look at it again."""
    async with living() as house:
        assert house.suspensions.restore(Suspended("t9", "{}", 0.0, said("x"), UserMessage("x"))) is None
        await house.turns.resume("t9", {})
        assert house.transport.sent == []
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.turn_id, closed.stop) == ("t9", Stop.INTERRUPTED)
        assert closed.round == (UserMessage("x"), UserMessage("[系统记录]\n  你没有回答上面的提问。"))


async def test_a_restored_run_whose_number_is_taken_is_written_down_with_another() -> None:
    run = waiting("ask_first", run_id="t9")
    numbered = replace(run, answers=(replace(run.pending[0], number=1),))
    stored = Suspended("t9", write_run(numbered, GROUP), 0.0, said("x"), UserMessage("x"))
    async with living(calls(("ask_first", ""))) as house:
        house.toolset.register(ask_first)
        await house.turns.answer(said("please"))
        house.suspensions.restore(stored)
        put_down = house.store.of("run_suspended")[-1]
        assert isinstance(put_down, RunSuspended)
        assert put_down.turn_id == "t9"
        assert write_run(house.suspensions.waiting()["t9"], GROUP) == put_down.state
        assert house.suspensions.waiting()["t9"].pending[0].number == 2


async def test_a_turn_that_goes_on_after_a_restart_reads_what_was_said_before_it() -> None:
    question = said("please")
    async with living(calls(("ask_first", ""))) as before:
        before.toolset.register(ask_first)
        await before.turns.answer(question)
        (put_down,) = before.store.of("run_suspended")
        assert isinstance(put_down, RunSuspended)
    async with living(words("done")) as house:
        house.toolset.register(ask_first)
        rounds = (Round("t0", (UserMessage("earlier"), AssistantMessage("indeed"))),)
        house.store.remembered[GROUP] = Remembered(rounds, ())
        turn_id, state, expires = put_down.turn_id, put_down.state, put_down.expires
        house.suspensions.restore(Suspended(turn_id, state, expires, question, UserMessage("x")))
        await house.turns.resume(turn_id, {"c0": Allow()})
        assert UserMessage("earlier") in house.model.requests[0].messages


async def test_what_is_for_a_run_alone_is_in_the_journal_for_no_run_that_waits() -> None:
    told = ToolMessage("c1", "memory", "对花生过敏", kept="[m1]")
    now = waiting("ask_first", "memory", run_id="t9")
    question = said("please", message_id="8")
    calling = AssistantMessage("", (ToolCall("c0", "memory", "{}"),))
    run = replace(now, messages=(calling, replace(told, call_id="c0")), answers=(now.answers[0], told))
    async with living() as house:
        house.suspensions.suspend(SuspendedTurn(question, UserMessage("x"), run))
        (put_down,) = house.store.of("run_suspended")
        assert isinstance(put_down, RunSuspended)
        left = read_run(put_down.state)
        results = [one for one in (*left.messages, *left.answers) if isinstance(one, ToolMessage)]
        assert [(one.content, one.kept) for one in results] == [("[m1]", "")] * 2
        assert house.suspensions.waiting()["t9"].messages[1:] == (replace(told, call_id="c0"),)


async def test_a_line_that_is_recalled_leaves_a_turn_that_waits_here_and_in_the_journal() -> None:
    """What waits for a word is made as it was asked for; another conversation's lines have other ids."""
    read = ToolCall("c1", "chat_log", '{"words": "planted"}')
    told = ToolMessage("c1", "chat_log", "planted", sources=("7",))
    now = waiting("ask_first", "chat_log", run_id="t9")
    run = replace(
        now,
        messages=(AssistantMessage("", (replace(read, id="c0"),)), replace(told, call_id="c0")),
        message=AssistantMessage("", (now.message.tool_calls[0], read)),
        answers=(now.answers[0], told),
    )
    user = UserMessage("小红#3: planted\n小明#2: please", sources=("7", "8"))
    elsewhere = replace(GROUP, session_id=GROUP.session_id + 1)
    async with living() as house:
        house.suspensions.restore(Suspended("t9", write_run(run, GROUP), 0.0, said("please", message_id="8"), user))
        before = len(house.store.of("run_suspended"))
        for where, message_id in ((elsewhere, "7"), (GROUP, "6")):
            house.suspensions.redact(where, message_id)
        assert len(house.store.of("run_suspended")) == before
        house.suspensions.redact(GROUP, "7")
        put_down = house.store.of("run_suspended")[-1]
        assert isinstance(put_down, RunSuspended)
        assert "planted" not in put_down.state
        left = read_run(put_down.state)
        assert house.suspensions.waiting()["t9"] == left
        assert [one.call for one in left.pending] == [one.call for one in now.pending[:1]]
        assert [one.content for one in left.answers if isinstance(one, ToolMessage)] == [RECALLED]
        turn = house.suspensions.take("t9")
        assert turn is not None
        assert turn.user.text == f"小红#3: {RECALLED}\n小明#2: please"


async def test_own_words_that_are_recalled_leave_the_turn_that_waits_after_it_said_them() -> None:
    spoken = ToolCall("c0", "send_message", '{"messages": [{"type": "plain", "text": "planted"}]}')
    now = waiting("ask_first", run_id="t9")
    run = replace(
        now,
        messages=(AssistantMessage("", (spoken,)), ToolMessage("c0", "send_message", "sent")),
        message=replace(now.message, text="I said: planted. Shall I?"),
    )
    user = UserMessage("小明#2: planted?", sources=("8",))
    elsewhere = replace(GROUP, session_id=GROUP.session_id + 1)
    async with living() as house:
        own = (elsewhere, "9001", OwnWords("t9", "planted", final=False))
        stored = Suspended("t9", write_run(run, GROUP), 0.0, said("planted?", message_id="8"), user, own=(own,))
        house.suspensions.restore(stored)
        house.history.said(GROUP, "9002", OwnWords("t8", "another turn's", final=False))
        before = len(house.store.of("run_suspended"))
        for message_id in ("9001", "9002"):
            house.suspensions.redact(GROUP, message_id)
        assert len(house.store.of("run_suspended")) == before
        house.suspensions.redact(elsewhere, "9001")
        put_down = house.store.of("run_suspended")[-1]
        assert isinstance(put_down, RunSuspended)
        assert "planted" not in put_down.state
        left = read_run(put_down.state)
        assert [one.call for one in left.pending] == [one.call for one in now.pending]
