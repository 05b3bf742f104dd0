"""Whose connection it is, over real sockets."""

from __future__ import annotations

import asyncio
import logging
from itertools import product

import pytest

from adapters.onebot import connection
from adapters.onebot.accounts import Account, AccountSource, Identity
from bot.core.errors import NotConnected
from bot.core.events import Connected, MessageReceived
from tests.adapters.onebot.conftest import ACCOUNT, Dial, Frame, House, heartbeat, lifecycle, message
from tests.cases import each_case


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_events_of_another_account_are_dropped_and_warned_of_once(
    house: House, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async with dial() as napcat:
        foreign = [message(account=20002), heartbeat(account=20002, online=False), lifecycle(20002)]
        await napcat.send(*foreign, *foreign, message("ours"))
        [event] = await house.sink.until(1)
        assert house.peers.accounts() == (Account(ACCOUNT),)
    assert event.self_id == ACCOUNT
    assert len([text for text in warnings(caplog) if "20002" in text]) == 1


async def test_no_connection_speaks_for_an_account_that_is_there_or_not(house: House, dial: Dial) -> None:
    async with dial() as napcat:
        async with dial(30003) as other:
            await napcat.send(message("for the other", account=30003), message(message_id=1))
            await house.sink.until(1)
            await other.send(message(message_id=2, account=30003))
            await house.sink.until(2)
        await house.until(lambda: house.peers.accounts() == (Account(ACCOUNT),))
        await napcat.send(lifecycle(30003), message("for the other", account=30003), message(message_id=3))
        events = await house.sink.until(3)
        assert house.peers.accounts() == (Account(ACCOUNT),)
    heard = [(event.self_id, event.message_id) for event in events if isinstance(event, MessageReceived)]
    assert heard == [(ACCOUNT, "1"), (30003, "2"), (ACCOUNT, "3")]


@pytest.mark.parametrize("introduced_within", [0.0])
async def test_a_quiet_server_is_asked_whose_it_is(house: House, dial: Dial) -> None:
    async with dial(None, role="Api") as napcat:
        call = await napcat.receive()
        assert call["action"] == "get_login_info"
        await napcat.answer(call, {"user_id": ACCOUNT, "nickname": "小助手"})
        await house.until(lambda: house.peers.accounts() == (Account(ACCOUNT),))


@pytest.mark.parametrize("introduced_within", [0.0])
@pytest.mark.parametrize("fields", [{"status": "failed", "retcode": 1404}, {"data": None}])
async def test_a_server_that_will_not_say_whose_it_is_may_still_show_it(
    house: House, dial: Dial, fields: Frame
) -> None:
    async with dial(None) as napcat:
        await napcat.answer(await napcat.receive(), **fields)
        await napcat.send(message())
        await house.sink.until(1)
        assert house.peers.accounts() == (Account(ACCOUNT),)


@pytest.mark.parametrize(("introduced_within", "deadline"), [(0.0, 0.01)])
async def test_a_server_that_does_not_answer_at_all_is_warned_of(
    house: House, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async with dial(None):
        await house.until(lambda: [text for text in warnings(caplog) if "whose" in text])


@pytest.mark.parametrize("role", ["Universal", "Api"])
@pytest.mark.parametrize("says", ["30003", "wxid_abc", "", "-7"])
async def test_its_events_or_its_answer_say_whose_it_is_whatever_its_header_says(
    house: House, dial: Dial, says: str, role: str
) -> None:
    """onebots writes its own name of the account into X-Self-ID, and another number into the events."""
    async with dial(says=says, role=role) as napcat, asyncio.TaskGroup() as group:
        assert house.peers.accounts() == (Account(ACCOUNT),)
        asking = group.create_task(house.transport.call(ACCOUNT, "get_csrf_token", {}))
        await napcat.answer(await napcat.receive(), 7)
        assert await asking == 7


async def test_before_anybody_said_whose_it_is_nothing_is_sent_over_it(house: House, dial: Dial) -> None:
    async with dial(None, says=ACCOUNT) as napcat:
        with pytest.raises(NotConnected):
            await house.transport.call(ACCOUNT, "get_csrf_token", {})
        await napcat.send(lifecycle(20002))
        await house.sink.until(1)
        assert house.peers.accounts() == (Account(20002),)


async def test_a_number_may_come_as_text(house: House, dial: Dial) -> None:
    async with dial(None) as napcat:
        await napcat.send({**message(), "self_id": str(ACCOUNT)})
        connected, said = await house.sink.until(2)
        assert house.peers.accounts() == (Account(ACCOUNT),)
    assert (type(connected), said.self_id) == (Connected, ACCOUNT)


@pytest.mark.parametrize("self_id", ["wxid_abc", None, 0, -5])
async def test_where_events_name_nobody_the_header_is_believed_at_once(
    house: House, dial: Dial, self_id: object
) -> None:
    async with dial(None, says=ACCOUNT) as napcat:
        await napcat.send({**message(), "self_id": self_id})
        _, said = await house.sink.until(2)
        assert house.peers.accounts() == (Account(ACCOUNT),)
    assert isinstance(said, MessageReceived)
    assert (said.self_id, said.conversation.platform_id) == (ACCOUNT, ACCOUNT)


async def test_where_events_and_header_name_nobody_the_server_is_asked_at_once(house: House, dial: Dial) -> None:
    async with dial(None) as napcat:
        await napcat.send({**message(), "self_id": "wxid_abc"})  # nobody could be answered in its name
        call = await napcat.receive_any()
        assert call["action"] == "get_login_info"
        assert house.sink.events == []
        await napcat.answer(call, {"user_id": ACCOUNT})
        _, first = await house.sink.until(2)
        await napcat.send({**message(message_id=2), "self_id": "wxid_abc"})
        *_, second = await house.sink.until(3)
    heard = [(said.self_id, said.message_id) for said in (first, second) if isinstance(said, MessageReceived)]
    assert heard == [(ACCOUNT, "1"), (ACCOUNT, "2")]


@pytest.mark.parametrize("introduced_within", [0.0])
@pytest.mark.parametrize("fields", [{"status": "failed", "retcode": -1}, {"data": {"user_id": "wxid_abc"}}])
async def test_a_header_is_believed_where_nothing_else_says_it_until_an_event_does(
    house: House, dial: Dial, fields: Frame
) -> None:
    async with dial(None, says=30003) as napcat:
        await napcat.answer(await napcat.receive_any(), **fields)
        await house.until(lambda: house.peers.accounts() == (Account(30003),))
        await napcat.send(message())
        await house.sink.until(3)
        assert house.peers.accounts() == (Account(ACCOUNT),)
    assert [event.self_id for event in house.sink.events] == [30003, ACCOUNT, ACCOUNT]


async def test_a_server_that_answers_nothing_is_who_its_header_says_in_the_end(
    house: House, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SAYS_WITHIN", 0.01)
    async with dial(None, says=ACCOUNT, role="Api") as napcat:
        assert (await napcat.receive_any())["action"] == "get_login_info"
        await house.until(lambda: house.peers.accounts() == (Account(ACCOUNT),))


SAYING = [source for source in AccountSource if source is not AccountSource.NOBODY]


@each_case(("first", "second"), list(product(SAYING, SAYING)))
def test_the_better_source_is_believed_and_of_equal_ones_the_first(first: AccountSource, second: AccountSource) -> None:
    identity = Identity()
    assert identity.is_news(1, first)
    identity.learn(1, first)
    assert identity.is_news(2, second) is (second > first)
    assert not identity.is_news(1, second)
    identity.learn(2, second)
    assert identity.account == (2 if second > first else 1)
    assert identity.is_settled is (max(first, second) >= AccountSource.EVENT)


def test_who_says_the_same_better_is_believed_from_then_on() -> None:
    identity = Identity()
    identity.learn(1, AccountSource.HEADER)
    identity.learn(1, AccountSource.EVENT)
    assert identity.is_settled
    assert not identity.is_news(2, AccountSource.ANSWER)


@each_case("account", [0, -1])
def test_no_account_is_no_news(account: int) -> None:
    identity = Identity()
    assert not identity.is_news(account, AccountSource.TOKEN)
    identity.learn(account, AccountSource.TOKEN)
    assert (identity.account, identity.source) == (0, AccountSource.NOBODY)
