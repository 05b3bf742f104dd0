from __future__ import annotations

import logging
from functools import partial

import pytest

from bot.approvals.decision import Approvers, Reply
from bot.approvals.new_groups import AGAIN, QUESTION, NewGroups, group_in, read_group_reply
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused
from bot.core.events import MessageReceived
from bot.memory.modes import Mode, Modes
from bot.outbox.delivery import Postbox
from frostagent.types.speech import Quote, Text
from tests.bot.approvals.desk import OWNER, Desk, candidates_for, desk, take_named
from tests.cases import each_case
from tests.fakes import BOT, GROUP, said
from tests.owners import both
from tests.settings import kept_settings


async def gate(made: Desk, usual: Mode = Mode.ASKING) -> tuple[NewGroups, Modes]:
    """Asks of new groups, once it is read which are known."""
    modes = Modes(settings=kept_settings(made.store), choices=made.store, usual=usual, told=True)
    await modes.load()
    words = NewGroups(
        modes=modes,
        approvers=Approvers(made.owners),
        postbox=Postbox(outbox=made.outbox, history=made.history, clock=made.clock),
        server_clock=made.ages,
        clock=made.clock,
    )
    return words, modes


def told(calls: bool, _: MessageReceived) -> bool:
    return calls


def word(text: str, *, where: Conversation = OWNER) -> MessageReceived:
    return said(text, user=999, where=where, at=False)


def take_candidates(words: NewGroups, message: MessageReceived) -> list[bool]:
    """What becomes of a reply for each group that it may be about."""
    reply = words.read_reply(message)
    assert reply is not None
    return [words.accept(message, one.number, reply) for one in candidates_for(words, message)]


async def test_only_an_owner_who_speaks_to_the_bot_there_makes_a_new_group_live() -> None:
    async with desk() as made:
        words, modes = await gate(made)
        for user, calls, mode in ((777, True, Mode.ASKING), (999, False, Mode.ASKED), (999, True, Mode.LIVE)):
            words.meet(said("hi", user=user), partial(told, calls))
            assert modes.of(GROUP) is mode
            await made.outbox.wait_idle()


async def test_a_word_in_a_group_or_one_that_was_missed_or_of_a_group_nobody_knows_decides_nothing() -> None:
    async with desk() as made:
        words, modes = await gate(made)
        words.meet(said("hi"), lambda _: False)
        await made.outbox.wait_idle()
        for message in (word("上线", where=GROUP), word("上线 4242", where=GROUP), word("上线 9999")):
            assert not take_named(words, message)
        missed = word("上线 4242")
        made.ages.add_missed(missed)
        assert take_named(words, missed)
        await made.outbox.wait_idle()
        assert made.transport.texts[-1].endswith("群 4242 还在等，请再回复一次。")
        assert modes.of(GROUP) is Mode.ASKED
        assert modes.is_new(Conversation(BOT, "group", 9999))


async def test_a_word_without_a_number_may_mean_the_groups_that_wait_or_the_one_another_owner_decided() -> None:
    async with desk() as made:
        words, modes = await gate(made)
        words.meet(said("hi"), lambda _: False)
        await made.outbox.wait_idle()
        quoting = said((Quote("x"), Text("上线")), user=999, where=OWNER, at=False)
        assert not take_named(words, quoting)
        assert [(one.name, one.example) for one in candidates_for(words, quoting)] == [("4242", "上线 4242")]
        assert not candidates_for(words, word("上线 0"))
        assert take_candidates(words, word("影子")) == [True]
        assert modes.of(GROUP) is Mode.SHADOW
        assert take_candidates(words, word("上线")) == [True]  # a second owner was slower
        assert modes.of(GROUP) is Mode.SHADOW
        await made.outbox.wait_idle()
        assert "已经定了" in made.transport.texts[-1]


async def test_a_question_that_reached_no_owner_is_told_and_asked_once_more_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with desk() as made:
        modes = Modes(settings=kept_settings(made.store), choices=made.store, usual=Mode.ASKING)
        words = NewGroups(
            modes=modes,
            approvers=Approvers(frozenset({999})),
            postbox=Postbox(outbox=made.outbox, history=made.history, clock=made.clock),
            server_clock=made.ages,
            clock=made.clock,
        )
        words.meet(said("hi"), lambda _: False)
        assert modes.of(GROUP) is Mode.ASKING
        assert not modes.open  # nothing is asked before it is read which groups are known
        await modes.load()
        made.transport.failures.append(ActionRefused("send_msg", retcode=1200, wording="no friend"))
        with caplog.at_level(logging.WARNING):
            words.meet(said("hi"), lambda _: False)
            await made.outbox.wait_idle()
        assert (modes.of(GROUP), made.transport.sent) == (Mode.ASKING, [])
        assert "did not arrive" in caplog.text
        for seconds, sent in ((AGAIN - 1, 0), (1, 1), (AGAIN, 1)):
            made.clock.time += seconds
            words.meet(said("hi"), lambda _: False)
            await made.outbox.wait_idle()
            assert len(made.transport.sent) == sent
        assert modes.of(GROUP) is Mode.ASKED


async def test_of_groups_that_are_live_at_once_the_owners_hear_together_once_each() -> None:
    async with desk() as made:
        words, modes = await gate(made, Mode.LIVE)
        assert words.news() is None
        told: list[str] = []
        other = Conversation(BOT, "group", 4343)
        for where in (GROUP, other, GROUP, OWNER):
            words.meet(said("hi", where=where), lambda _: True, lambda _kind, line: told.append(line))
        zh, en = both(words.news() or "")
        assert "群里看到有人说话：4242、4343。" in zh
        assert "somebody spoke: 4242, 4343. " in en
        words.meet(said("hi"), lambda _: True)
        assert (words.news(), told) == (None, [])
        assert (modes.of(GROUP), modes.of(other)) == (Mode.LIVE, Mode.LIVE)
        assert len(made.store.of("place_set")) == 2


@each_case(
    ("text", "word"),
    [
        ("上线", Reply("live")),
        ("上线 0", Reply("live", 0)),
        (" Live 4242。", Reply("live", 4242)),
        ("忽略4242", Reply("off", 4242)),
        ("ignore!", Reply("off")),
        ("上线了吗", None),
        ("live a little", None),
        ("上线 ４２", None),
    ],
)
def test_a_word_on_a_group_is_nothing_else_than_that(text: str, word: Reply | None) -> None:
    assert read_group_reply(text) == word


@each_case("words", (QUESTION.zh, QUESTION.en))
def test_a_question_names_its_group_at_its_beginning(words: str) -> None:
    question = words.format(group=4242)
    assert (group_in(question), group_in(f"他说 {question}")) == (4242, 0)
