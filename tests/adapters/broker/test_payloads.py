"""What gateways and workers write is what the others read, of both versions of an upgrade."""

from __future__ import annotations

import msgspec
import pytest

from adapters.broker.payloads import VERSION, AccountPresence, CallEnd, GatewayCall, Presence, pack, unpack
from bot.core import codec
from bot.core.conversation import Conversation
from bot.core.events import Event, MessageReceived, Sender
from frostagent.types.speech import Text
from tests.cases import each_case

HERE = Conversation(10001, "group", 4242)
SAID = MessageReceived(
    self_id=10001, time=1.5, conversation=HERE, message_id="-7", sender=Sender(20001, "小明"), segments=(Text("你好"),)
)


@each_case(
    ("kind", "value"),
    [
        (Event, SAID),
        (GatewayCall, GatewayCall(10001, "send_group_msg", {"group_id": 4242, "message": [{"type": "text"}]}, 3)),
        (CallEnd, CallEnd("answered", True, 0, {"message_id": 5})),
        (CallEnd, CallEnd("refused", retcode=1200, wording="被禁言")),
        (Presence, Presence("a", asked=(SAID,))),
        (Presence, Presence("a", (AccountPresence(10001, True, "NapCat 4", 2), AccountPresence(10002)), "too late", 4)),
    ],
)
def test_a_value_comes_back_as_it_was(kind: object, value: Event | GatewayCall | CallEnd | Presence) -> None:
    assert unpack(kind, pack(value), VERSION) == value


def test_a_field_that_only_newer_programs_know_is_passed_over() -> None:
    newer = msgspec.json.encode({"account": 1, "action": "x", "colour": "blue"})
    assert unpack(GatewayCall, newer, VERSION) == GatewayCall(1, "x")


@each_case("version", [VERSION + 1, 0, None, "1"])
def test_a_version_that_nobody_here_knows_is_refused(version: object) -> None:
    with pytest.raises(codec.Unreadable, match="version"):
        unpack(Event, pack(SAID), version)


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(codec.Unreadable):
        unpack(Event, b'{"type": "message_received"}', VERSION)
