"""Who may come in, and as whom; over real sockets, since a token that nobody is held to is none."""

from __future__ import annotations

import asyncio
import logging

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import InvalidStatus
from websockets.http11 import Request

from adapters.onebot.accounts import Account
from adapters.onebot.auth import Admission, Admitted, TokenRefused
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.errors import NotConnected
from bot.core.events import Connected, MessageReceived
from frostagent.types.speech import Text
from tests.adapters.onebot.conftest import ACCOUNT, Dial, House, lifecycle, message
from tests.cases import each_case

OWN, OTHERS, COMMON = "own-token-of-10001", "own-token-of-30003", "everybodys-token"
ACCOUNTS = {ACCOUNT: OWN, 30003: OTHERS}


def request(token: str, *, path: str = "/") -> Request:
    return Request(path, Headers({"Authorization": f"Bearer {token}"} if token else {}))


@each_case(
    ("token", "verdict"),
    [
        (COMMON, Admitted()),
        (OWN, Admitted(ACCOUNT)),
        (OTHERS, Admitted(30003)),
        ("", TokenRefused.NO_TOKEN),
        ("wrong", TokenRefused.WRONG_TOKEN),
        (OWN[:-1], TokenRefused.WRONG_TOKEN),
        (f"{ACCOUNT}:{OWN}", TokenRefused.WRONG_TOKEN),
    ],
)
def test_a_token_says_whose_it_is(token: str, verdict: Admitted | TokenRefused) -> None:
    assert Admission(COMMON, ACCOUNTS).judge(request(token)) == verdict


def test_a_path_that_is_no_address_is_refused_like_any_other() -> None:
    for path in ("//[", "//[::1"):
        assert Admission(COMMON).judge(request("", path=path)) is TokenRefused.NO_TOKEN
        assert Admission(COMMON).judge(request("", path=f"{path}?access_token={COMMON}#x")) == Admitted()


def test_without_a_common_token_only_accounts_come_in() -> None:
    only = Admission("", {ACCOUNT: OWN})
    assert not only.is_open
    assert only.judge(request("")) is TokenRefused.NO_TOKEN
    assert only.judge(request(OWN)) == Admitted(ACCOUNT)
    assert only.judge(request(COMMON, path=f"/?access_token={OWN}")) == Admitted(ACCOUNT)
    assert Admission("").judge(request("whatever")) == Admitted()


# --- over real sockets ----------------------------------------------------------------------------

WITH_COMMON = pytest.mark.parametrize("tokens", [(COMMON, ACCOUNTS)])


@WITH_COMMON
async def test_who_comes_with_the_token_of_an_account_is_that_account_at_once(house: House, dial: Dial) -> None:
    async with dial(None, says=30003, token=OWN) as napcat:
        [connected] = await house.sink.until(1)
        assert (type(connected), connected.self_id) == (Connected, ACCOUNT)
        assert house.peers.accounts() == (Account(ACCOUNT),)
        await napcat.send(lifecycle(), message())
        assert [type(event) for event in await house.sink.until(2)] == [Connected, MessageReceived]


@WITH_COMMON
async def test_who_comes_with_the_token_of_an_account_is_no_other(
    house: House, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async with dial(None, token=OTHERS) as napcat:
        await napcat.send(lifecycle(), message("as another"), message("as itself", account=30003))
        *_, said = await house.sink.until(2)
        with pytest.raises(NotConnected):
            await house.transport.send(SendMessage(Conversation(ACCOUNT, "group", 4242), (Text("hello"),)))
        assert house.peers.accounts() == (Account(30003),)
    assert isinstance(said, MessageReceived)
    assert (said.self_id, said.segments) == (30003, (Text("as itself"),))
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


@WITH_COMMON
async def test_everybodys_token_is_not_enough_for_an_account_that_has_its_own(
    house: House, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async with dial(None, token=OWN) as napcat:
        await house.sink.until(1)
        for _ in range(2):
            async with dial(None, token=COMMON) as rogue:
                await rogue.send(lifecycle(), message("in your name"))
                assert await rogue.closed() == 1013
        await napcat.send(message("mine"))
        *_, said = await house.sink.until(2)
        assert napcat.socket.close_code is None
    assert isinstance(said, MessageReceived)
    assert said.segments == (Text("mine"),)
    [warning] = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert str(ACCOUNT) in warning
    assert "ONEBOT_ACCESS_TOKEN" in warning
    assert OWN not in warning


@WITH_COMMON
async def test_everybodys_token_is_enough_for_the_others(house: House, dial: Dial) -> None:
    async with dial(40004, token=COMMON):
        assert house.peers.accounts() == (Account(40004),)


@WITH_COMMON
@pytest.mark.parametrize("introduced_within", [0.0])
async def test_neither_an_answer_nor_a_header_gets_round_it(house: House, dial: Dial) -> None:
    async with dial(None, says=ACCOUNT, token=COMMON) as rogue:
        await rogue.answer(await rogue.receive_any(), None, status="failed", retcode=1404)
        assert await rogue.closed() == 1013
    async with dial(None, token=COMMON) as rogue:
        await rogue.answer(await rogue.receive_any(), {"user_id": ACCOUNT})
        assert await rogue.closed() == 1013
    assert house.sink.events == []


@pytest.mark.parametrize("tokens", [("", ACCOUNTS)])
async def test_without_a_common_token_nobody_else_comes_in(dial: Dial) -> None:
    for token in ("", COMMON):
        with pytest.raises(InvalidStatus):
            async with dial(None, token=token):
                pass


@WITH_COMMON
async def test_a_send_that_waits_is_not_given_to_another(house: House, dial: Dial) -> None:
    hello = SendMessage(Conversation(ACCOUNT, "group", 4242), (Text("hello"),))
    async with dial(None, says=ACCOUNT, token=OTHERS), dial(None, says=ACCOUNT, token=OWN) as napcat:
        await house.sink.until(2)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(house.transport.send(hello))
            await napcat.answer(await napcat.receive(), {"message_id": 1})
    assert sending.result() == "1"
