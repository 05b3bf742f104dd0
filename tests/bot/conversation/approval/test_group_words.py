from __future__ import annotations

import logging

import pytest

from bot.conversation.approval.deciders import Deciders
from bot.conversation.approval.group_words import AGAIN, GroupWords
from bot.domain.errors import ActionRefused
from bot.memory.modes import Modes
from bot.policy.new_groups import Mode
from bot.speaking.postbox import Postbox
from tests.bot.desk import desk
from tests.fakes import GROUP, said


async def test_a_question_that_reached_no_owner_is_told_and_asked_once_more_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with desk() as made:
        modes = Modes(store=made.store, choices=made.store, clock=made.clock, usual=Mode.ASKING)
        words = GroupWords(
            modes=modes,
            deciders=Deciders(frozenset({999})),
            postbox=Postbox(outbox=made.outbox, history=made.history, clock=made.clock),
            ages=made.ages,
            clock=made.clock,
        )
        words.meet(said("hi"), lambda _: False)
        assert modes.of(GROUP) is Mode.ASKING
        assert not modes.open  # nothing is asked before it is read which groups are known
        await modes.start()
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
