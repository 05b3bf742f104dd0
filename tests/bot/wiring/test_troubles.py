from __future__ import annotations

import asyncio

import pytest

from bot.domain.actions import SendMessage
from bot.speaking.owner import Owner
from bot.wiring.troubles import Troubles
from tests.bot.speaking.post import build_outbox
from tests.fakes import BOT, ManualClock, RecordingStore, RecordingTransport, until


async def test_the_owner_is_told_once_of_troubles_that_differ_in_their_brackets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, troubles, transport = ManualClock(), Troubles(), RecordingTransport()
    outbox, queues = build_outbox(transport, RecordingStore(), clock)
    async with asyncio.timeout(5), outbox.open(), asyncio.TaskGroup() as group:
        owner = Owner(owners=frozenset({999}), queues=queues, clock=clock)
        owner.connected(BOT)
        with troubles.logged_at_the_end():
            for text in ("no disk (1)", "no disk (2)", "no model (1)"):
                troubles.tell(text)
            passing = group.create_task(troubles.pass_on(owner))
            await until(lambda: len(transport.sent) == 2)
            passing.cancel()
            troubles.tell("too late")
    told: list[SendMessage] = transport.sent
    assert ["no disk (1)" in str(told[0]), "no model (1)" in str(told[1])] == [True, True]
    assert [record.message for record in caplog.records if record.name == "bot.wiring.troubles"] == ["too late"]


def test_what_every_bot_of_a_process_sees_is_told_by_the_one_that_speaks(caplog: pytest.LogCaptureFixture) -> None:
    for troubles in (Troubles(), Troubles(lambda: False)):
        with troubles.logged_at_the_end():
            troubles.tell_once("no broker")
            troubles.tell("no reader of an event")
    assert caplog.messages == ["no broker", "no reader of an event", "no reader of an event"]
