from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.broker.partitions import ClusterPartition, partition_of
from bot.console import console_backend
from bot.console.console_backend import (
    decide,
    decide_anywhere,
    group_open_sends,
    list_calls,
    read_drafts,
    render_anywhere,
)
from bot.core.actions import SendMessage
from bot.core.console_views import OutboxState, OwnerDecision
from bot.core.conversation import Conversation
from bot.core.journal import SendState
from bot.core.settlement import Settled
from bot.outbox.sends import Send
from frostagent.types.speech import Text
from tests.bot.test_app import reverse
from tests.e2e.town import WIPE, open_town
from tests.fakes import GROUP, words


def publish(number: int, reason: str = "") -> OwnerDecision:
    return OwnerDecision(10001, "D", number, allows=True, reason=reason)


async def test_a_draft_is_shown_with_its_words_and_published_changed_or_left_by_the_same_code(tmp_path: Path) -> None:
    async with reverse(bot_new_group="shadow", bot_owners=[20001], store_url=f"sqlite:///{tmp_path}/frost.db") as (
        service,
        simulator,
        _,
    ):
        for number in range(3):
            await simulator.say(f"@bot hello {number}")
            await simulator.wait_sent(number + 1)
        drafts, more = await read_drafts(service.app)
        name = simulator.world.groups[4242].name
        assert name
        assert ([(one.number, one.asked, one.group) for one in drafts], more) == (
            [(3, "hello 2", name), (2, "hello 1", name), (1, "hello 0", name)],
            0,
        )
        before = len(simulator.sent)
        assert (await decide(service.app, publish(1))).kind == "done"
        assert (await decide(service.app, publish(2, " two\nlines "))).kind == "done"
        assert (await decide(service.app, OwnerDecision(10001, "D", 3, allows=False))).kind == "done"
        assert (await decide(service.app, publish(3))).kind == "over"
        said = [one.text for one in simulator.sent[before:] if one.group_id == 4242]
        assert said == [drafts[2].text, "two\nlines"]
        assert await read_drafts(service.app) == ((), 0)


async def test_a_call_that_waits_is_told_with_the_name_of_its_group(tmp_path: Path) -> None:
    async with open_town(tmp_path) as town, town.live(WIPE, words("wiped!")) as stage:
        await stage.ask("@bot wipe sda, please")
        (call,) = list_calls(stage.service.app)
        (group,) = stage.simulator.world.groups.values()
        assert group.name
        assert (call.group, call.asked) == (group.name, "wipe sda, please")
        assert (call.action, call.arguments) == ("wipe_disk", (("disk", "sda"),))
        await stage.answer("同意 A1")
        assert list_calls(stage.service.app) == ()


async def test_what_is_not_delivered_is_counted_by_chat_the_oldest_first() -> None:
    def send(where: Conversation, state: SendState, at: float) -> Send:
        return Send(f"s{at}", "", SendMessage(where, (Text("hi"),)), final=False, at=at, state=state)

    friend = Conversation(1000, "private", 5)
    sends = [
        send(friend, SendState.QUEUED, 9.0),
        send(GROUP, SendState.SENDING, 8.0),
        send(GROUP, SendState.UNKNOWN, 3.0),
        send(GROUP, SendState.QUEUED, 5.0),
    ]
    assert group_open_sends(sends) == (OutboxState(GROUP, 2, 1, 3.0), OutboxState(friend, 1, 0, 9.0))


class Elsewhere:
    """Another bot, which has done what it is asked."""

    def __init__(self) -> None:
        self.asked: list[OwnerDecision | Conversation] = []

    async def decide(self, decision: OwnerDecision) -> Settled:
        self.asked.append(decision)
        return Settled("over", "there")

    async def render_context(self, where: Conversation) -> tuple[str, ...]:
        self.asked.append(where)
        return ("there",)


async def test_what_belongs_to_an_account_is_done_by_the_bot_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def decide_here(_: Any, decision: OwnerDecision) -> Settled:
        return Settled("done", str(decision.account))

    monkeypatch.setattr(console_backend, "decide", decide_here)
    monkeypatch.setattr(console_backend, "render_context", lambda _, where: ("here",))
    here, there = (next(account for account in range(1, 99) if partition_of(account, 2) == part) for part in range(2))
    others = Elsewhere()
    app: Any = SimpleNamespace(journal=SimpleNamespace(scope=ClusterPartition(0, 2)), others=others)
    ours, theirs, nobodys = (OwnerDecision(account, "A", 1, allows=True) for account in (here, there, 0))
    settled = [await decide_anywhere(app, one) for one in (ours, theirs, nobodys)]
    assert settled == [Settled("done", str(here)), Settled("over", "there"), Settled("done", "0")]
    places = [Conversation(account, "group", 4242) for account in (here, there)] + [Conversation(0, "private", 0)]
    assert [await render_anywhere(app, where) for where in places] == [("here",), ("there",), ("here",)]
    assert others.asked == [theirs, places[1]]
