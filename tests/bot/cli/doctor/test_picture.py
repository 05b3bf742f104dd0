"""The picture, asked of the simulator's world as over a socket, with what can go wrong on QQ."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Mapping

from adapters.onebot.protocol import ActionReply, read_frame
from adapters.simulator.faults import Fault, Faults
from adapters.simulator.server import reply_to
from adapters.simulator.wire import Json
from adapters.simulator.world import World, demo_world
from bot.cli.checks import Check, Outcome
from bot.cli.doctor.interview import PICTURE, Ask, check_picture
from bot.core.errors import ActionUnanswered, NotConnected
from tests.cases import each_case

OWNER = 20001
STRANGER = 99999


def asking(world: World, faults: Faults, change: Callable[[str, Json], Json] = lambda _, frame: frame) -> Ask:
    """Asks the simulator, without its sockets; `change` is what another server would say in its place."""

    async def ask(action: str, params: Mapping[str, object]) -> ActionReply:
        frame = reply_to(world, faults, json.dumps({"action": action, "params": params, "echo": "e"})).frame
        if frame is None:
            raise ActionUnanswered(action)
        reply = read_frame(json.dumps(change(action, frame)).encode(), account=world.self_id, now=0)
        assert isinstance(reply, ActionReply)
        return reply

    return ask


async def look(*faults: Fault, to: int = OWNER) -> Check:
    armed = Faults()
    for fault in faults:
        armed.arm(fault)
    return await check_picture(asking(demo_world(), armed), account=10001, owners={to})


def test_the_picture_is_a_small_png() -> None:
    content = base64.b64decode(PICTURE, validate=True)
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", content[16:24]) == (48, 48)
    assert len(content) < 1000


async def test_a_picture_that_arrives_is_well_and_can_be_had_back() -> None:
    world = demo_world()
    check = await check_picture(asking(world, Faults()), account=10001, owners={OWNER, 20002})
    assert check.outcome is Outcome.OK
    assert check.said == "was accepted as base64 and sent to 20001; get_image finds it"
    (stored,) = world.messages.history(peer_id=OWNER)
    words, picture = stored.segments
    assert "doctor" in words["data"]["text"]
    assert picture["data"]["file_size"] == "190"


async def test_without_an_owner_the_account_gets_it_itself() -> None:
    world = demo_world()
    check = await check_picture(asking(world, Faults()), account=10001, owners=())
    assert "sent to the account itself" in check.said
    assert len(world.messages.history(peer_id=10001)) == 1


@each_case(
    ("fault", "verdict", "fix"),
    [
        (Fault.TIMEOUT, Outcome.WARNING, "risk control"),
        (Fault.RISK, Outcome.WARNING, "risk control"),
        (Fault.SILENCE, Outcome.WARNING, "risk control"),
        (Fault.LOST, Outcome.WARNING, "risk control"),
        (Fault.NOT_FRIEND, Outcome.WARNING, "friends on QQ"),
        (Fault.BAD_MEDIA, Outcome.PROBLEM, "another machine, keep MEDIA_SEND=base64"),
        (Fault.REFUSE, Outcome.PROBLEM, "log"),
    ],
)
async def test_each_way_it_goes_wrong_names_its_mend(fault: Fault, verdict: Outcome, fix: str) -> None:
    check = await look(fault)
    assert (check.name, check.outcome) == ("picture", verdict)
    assert fix in check.fix


async def test_an_owner_who_is_no_friend_is_a_warning() -> None:
    check = await look(to=STRANGER)
    assert check.outcome is Outcome.WARNING
    assert "BOT_OWNERS" in check.fix


async def test_a_server_that_hangs_up_meanwhile_is_a_problem() -> None:
    async def gone(_action: str, _params: Mapping[str, object]) -> ActionReply:
        raise NotConnected("closed")

    assert (await check_picture(gone, account=10001, owners=())).outcome is Outcome.PROBLEM


async def test_a_server_that_drops_the_picture_and_says_ok_is_a_problem() -> None:
    def without_pictures(action: str, frame: Json) -> Json:
        if action == "get_msg":
            frame["data"]["message"] = [part for part in frame["data"]["message"] if part["type"] != "image"]
        return frame

    ask = asking(demo_world(), Faults(), without_pictures)
    check = await check_picture(ask, account=10001, owners={OWNER})
    assert check.outcome is Outcome.PROBLEM
    assert "was dropped" in check.said


@each_case("missing", ["get_msg", "get_image"])
async def test_a_server_that_shows_nothing_of_what_it_sent_is_believed(missing: str) -> None:
    def refusing(action: str, frame: Json) -> Json:
        failed = {"status": "failed", "retcode": 1404, "data": None, "wording": "unknown", "echo": "e"}
        return failed if action == missing else frame

    check = await check_picture(asking(demo_world(), Faults(), refusing), account=10001, owners={OWNER})
    assert check.outcome is Outcome.OK
    assert check.said == "was accepted as base64 and sent to 20001"
