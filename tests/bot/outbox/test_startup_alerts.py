from __future__ import annotations

import asyncio

import pytest

from bot.core.language import Bilingual, Language
from bot.outbox.owner_alerts import Owner, StartupAlerts
from tests.bot.outbox.post import build_outbox
from tests.fakes import BOT, ManualClock, RecordingStore, RecordingTransport, until


@pytest.mark.parametrize(
    ("language", "texts"),
    [(Language.CHINESE, ["没盘 (1)", "没模型"]), (Language.ENGLISH, ["no disk (1)", "no model (1)"])],
)
async def test_the_owner_is_told_once_in_his_language_of_troubles_that_differ_in_their_brackets(
    language: Language, texts: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    clock, troubles, transport = ManualClock(), StartupAlerts(), RecordingTransport()
    outbox, sender = build_outbox(transport, RecordingStore(), clock)
    async with asyncio.timeout(30), outbox.open(), asyncio.TaskGroup() as group:
        owner = Owner(owners=frozenset({999}), sender=sender, clock=clock, language=language)
        owner.connected(BOT)
        with troubles.logged_at_the_end():
            for zh, en in (("没盘 (1)", "no disk (1)"), ("没盘 (2)", "no disk (2)"), ("没模型", "no model (1)")):
                troubles.tell(Bilingual(en, zh))
            passing = group.create_task(troubles.pass_on(owner))
            await until(lambda: len(transport.sent) == 2)
            passing.cancel()
            troubles.tell(Bilingual("too late", "太晚了"))
    assert transport.texts == texts
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["too late"]


def test_what_every_bot_of_a_cluster_sees_is_told_by_the_one_that_speaks_and_is_in_each_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    for troubles in (StartupAlerts(), StartupAlerts(speaks=False)):
        with troubles.logged_at_the_end():
            troubles.tell_once(Bilingual("no broker", "没有队列"))
            troubles.tell(Bilingual("no reader of an event", "没人读事件"))
    for_owners = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert for_owners == ["no broker", "no reader of an event", "no reader of an event"]
    assert caplog.messages.count("no broker") == 2
