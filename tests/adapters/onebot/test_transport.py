"""The port over real sockets: what is sent, what is asked, and what comes of it."""

from __future__ import annotations

import asyncio
import json

import pytest

from adapters.onebot.protocol import write_action
from adapters.onebot.transport import MOST_INLINE, OneBotTransport
from adapters.web.file_offers import FileOffers
from bot.core.actions import Gesture, MergedForward, React, SendMessage, ShowTyping
from bot.core.conversation import Conversation, MessageType
from bot.core.errors import ActionRefused, ActionUnanswered, ActionUnsupported, NotConnected, TransportError
from bot.core.group_admin import GroupAct, Pin, Recall
from bot.core.ports import KeptFile
from bot.core.segments import File, Forward
from frostagent.types.speech import Attachment, Text
from tests.adapters.onebot.conftest import ACCOUNT, PATIENCE, Dial, Frame, House, NapCat, message
from tests.cases import each_case

GROUP = Conversation(ACCOUNT, "group", 4242)
HELLO = SendMessage(GROUP, (Text("hello"),))
TIMED_OUT = 'Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg EventRet:\n{"result":%d}'


async def answered(napcat: NapCat, data: object = None, **fields: object) -> Frame:
    """Answer the next call; the call."""
    call = await napcat.receive()
    await napcat.answer(call, data, **fields)
    return call


async def test_a_message_is_sent_and_its_id_comes_back(house: House, dial: Dial) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        sending = group.create_task(house.transport.send(HELLO))
        call = await answered(napcat, {"message_id": -1541043078})
    assert sending.result() == "-1541043078"
    assert call["action"] == "send_group_msg"
    assert call["params"] == {"group_id": 4242, "message": [{"type": "text", "data": {"text": "hello"}}]}


async def test_two_sends_answered_in_the_wrong_order_get_their_own_ids(house: House, dial: Dial) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        first = group.create_task(house.transport.send(HELLO))
        one = await napcat.receive()
        second = group.create_task(house.transport.send(HELLO))
        two = await napcat.receive()
        await napcat.answer(two, {"message_id": 2})
        await napcat.answer(one, {"message_id": 1})
    assert (first.result(), second.result()) == ("1", "2")


async def test_an_answer_may_come_over_the_next_connection(house: House, dial: Dial) -> None:
    async with asyncio.TaskGroup() as group:
        async with dial() as napcat:
            sending = group.create_task(house.transport.send(HELLO))
            call = await napcat.receive()
        await house.until(lambda: not house.peers.accounts())
        async with dial() as napcat:
            await napcat.answer(call, {"message_id": 7})
            async with asyncio.timeout(PATIENCE):
                assert await sending == "7"


@pytest.mark.parametrize("deadline", [0.05])
async def test_a_send_without_an_answer_in_time_may_have_been_done(house: House, dial: Dial) -> None:
    async with dial() as napcat:
        with pytest.raises(ActionUnanswered):
            await house.transport.send(HELLO)
        await napcat.answer(await napcat.receive(), {"message_id": 1})  # too late, and nobody minds


@pytest.mark.parametrize("deadline", [0.2])
async def test_a_send_whose_connection_dies_is_unanswered_at_its_deadline(house: House, dial: Dial) -> None:
    async with asyncio.TaskGroup() as group, dial() as napcat:
        sending = group.create_task(outcome(house))
        await napcat.receive()
    assert isinstance(sending.result(), ActionUnanswered)


async def outcome(house: House) -> TransportError | str:
    try:
        return await house.transport.send(HELLO)
    except TransportError as error:
        return error


async def test_without_a_connection_nothing_is_written(house: House, dial: Dial) -> None:
    with pytest.raises(NotConnected, match=str(ACCOUNT)):
        await house.transport.send(HELLO)
    async with dial(20002), dial(role="Event"):
        with pytest.raises(NotConnected):
            await house.transport.send(HELLO)


@pytest.mark.parametrize(
    ("retcode", "wording", "kind"),
    [
        (1200, "消息体无法解析", ActionRefused),
        (1200, TIMED_OUT % 0, ActionUnanswered),
        (1200, TIMED_OUT % 120, ActionRefused),
        (120, "", ActionRefused),
        (200, "", ActionRefused),
    ],
)
async def test_a_refused_send_says_why(
    house: House, dial: Dial, retcode: int, wording: str, kind: type[Exception]
) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        sending = group.create_task(outcome(house))
        await answered(napcat, None, status="failed", retcode=retcode, message=wording)
    error = sending.result()
    assert type(error) is kind
    if isinstance(error, ActionRefused):
        assert (error.action, error.retcode, error.wording) == ("send_group_msg", retcode, wording)


RECALLING = (
    "Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/recallMsg "
    'ListenerName:NodeIKernelMsgListener/onMsgInfoListUpdate EventRet:\n{"result":%d,"errMsg":""}\n'
)
NOT_ADMIN: Frame = {"result": 120101005, "errMsg": "ERR_NOT_GROUP_ADMIN"}


@pytest.mark.parametrize(
    ("act", "data", "fields", "kind", "retcode"),
    [
        (Recall("7"), None, {}, None, 0),
        (Recall("7"), None, {"status": "failed", "retcode": 1200, "message": RECALLING % 0}, ActionUnanswered, 0),
        (Recall("7"), None, {"status": "failed", "retcode": 1200, "message": RECALLING % 7}, ActionRefused, 1200),
        (Pin("7"), NOT_ADMIN, {}, ActionRefused, 120101005),
        (Pin("7"), None, {"status": "ok", "retcode": 1}, ActionRefused, 1),
        (Pin("7"), None, {"status": "failed", "retcode": 404}, ActionUnsupported, 404),
    ],
)
async def test_an_act_is_done_refused_or_nobody_knows(
    house: House, dial: Dial, act: GroupAct, data: object, fields: Frame, kind: type[Exception] | None, retcode: int
) -> None:
    async def doing() -> TransportError | bool:
        try:
            return await house.transport.act(GROUP, act)
        except TransportError as error:
            return error

    async with dial() as napcat, asyncio.TaskGroup() as group:
        ending = group.create_task(doing())
        await answered(napcat, data, **fields)
    ended = ending.result()
    assert type(ended) is (kind or bool)
    if isinstance(ended, ActionRefused):
        assert ended.retcode == retcode


async def test_a_message_is_looked_up_by_its_id(house: House, dial: Dial) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        looking = group.create_task(house.transport.get_message(ACCOUNT, "-77"))
        call = await answered(napcat, message("hi", message_id=-77, post_type="message_sent", user_id=ACCOUNT))
    assert call["params"] == {"message_id": -77}
    found = looking.result()
    assert found is not None
    assert (found.message_id, found.is_own, found.segments) == ("-77", True, (Text("hi"),))


@pytest.mark.parametrize("place", [{"message_type": "group"}, {"group": True}, {"group_id": 4242}])
async def test_a_message_of_a_group_is_known_as_one_by_whatever_says_so(
    house: House, dial: Dial, place: dict[str, object]
) -> None:
    bare = {"message_id": 1, "sender": {"user_id": 5}, "message": "hi", "time": 1, **place}
    async with dial() as napcat, asyncio.TaskGroup() as group:
        looking = group.create_task(house.transport.get_message(ACCOUNT, "1"))
        await answered(napcat, bare)
    found = looking.result()
    assert found is not None
    assert found.conversation == Conversation(ACCOUNT, "group", 4242 if "group_id" in place else 0)


@pytest.mark.parametrize("message_id", ["abc", "99999999999999999999"])
async def test_an_unknown_message_is_none(house: House, dial: Dial, message_id: str) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        looking = group.create_task(house.transport.get_message(ACCOUNT, message_id))
        call = await answered(napcat, None, status="failed", retcode=1200, message="消息不存在")
    assert looking.result() is None
    assert call["params"] == {"message_id": message_id}


async def test_a_forward_is_opened(house: House, dial: Dial) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        opening = group.create_task(house.transport.get_forward(ACCOUNT, Forward("7436377759204399490")))
        call = await answered(napcat, {"messages": [message("一"), message("二")]})
    assert call["params"] == {"id": "7436377759204399490", "message_id": "7436377759204399490"}
    assert [node.segments for node in opening.result()] == [(Text("一"),), (Text("二"),)]


async def test_what_came_inside_of_a_forward_is_read_and_not_asked_for(house: House) -> None:
    inline = Forward("1", json.dumps([message("一")]))
    (found,) = await house.transport.get_forward(ACCOUNT, inline)
    assert found.segments == (Text("一"),)


async def test_any_action_can_be_called_and_its_refusal_is_typed(house: House, dial: Dial) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        calling = group.create_task(house.transport.call(ACCOUNT, "get_csrf_token", {}))
        await answered(napcat, {"token": 7})
        assert await calling == {"token": 7}
        refused = group.create_task(refusal(house))
        await answered(napcat, None, status="failed", retcode=404)
    assert refused.result().retcode == 404


async def refusal(house: House) -> ActionRefused:
    with pytest.raises(ActionRefused) as refused:
        await house.transport.call(ACCOUNT, "no_such_action", {})
    return refused.value


async def test_a_url_is_not_passed_on_to_be_fetched_unless_that_is_wanted(house: House, dial: Dial) -> None:
    link = SendMessage(GROUP, (Text("look"), Attachment("image", "http://127.0.0.1.nip.io/a.png")))
    passing = OneBotTransport(peers=house.peers, calls=house.calls, pass_urls=True)
    async with dial() as napcat, asyncio.TaskGroup() as group:
        with pytest.raises(ActionRefused, match="a url is not passed on to be fetched unchecked"):
            await house.transport.send(link)
        sending = group.create_task(passing.send(link))
        call = await answered(napcat, {"message_id": 1})
        assert call["params"]["message"][1]["data"]["file"] == "http://127.0.0.1.nip.io/a.png"
    assert sending.result() == "1"


async def test_ten_mebibytes_go_out_in_one_frame(house: House, dial: Dial) -> None:
    source = "base64://" + "A" * (10 * 2**20)
    async with dial() as napcat, asyncio.TaskGroup() as group:
        sending = group.create_task(house.transport.send(SendMessage(GROUP, (Attachment("image", source),))))
        call = await answered(napcat, {"message_id": 1})
    assert sending.result() == "1"
    assert call["params"]["message"][0]["data"]["file"] == source


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ({"file": "/app/A.png", "url": "/app/A.png", "file_name": "A.png"}, KeptFile(path="/app/A.png")),
        ({"file": "/app/A.png", "url": "/app/A.png", "base64": "iVBO"}, KeptFile("iVBO", "/app/A.png")),
        ({"file": "base64://iVBO", "url": "https://a.test/A"}, KeptFile("iVBO", url="https://a.test/A")),
        ({"file": "A.png", "url": "file:///tmp/A.png"}, KeptFile(path="/tmp/A.png")),
        ({"file": "C:\\QQ\\A.png", "url": "http://a.test/A"}, KeptFile(path="C:\\QQ\\A.png", url="http://a.test/A")),
        ({"file": "A.png", "base64": None, "url": ""}, KeptFile()),
        (None, KeptFile()),
    ],
)
async def test_a_picture_is_asked_for_by_its_name_and_found_in_every_dialect(
    house: House, dial: Dial, data: object, kept: KeptFile
) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        asking = group.create_task(house.transport.get_image(ACCOUNT, "A.png"))
        call = await answered(napcat, data)
    assert asking.result() == kept
    assert (call["action"], call["params"]) == ("get_image", {"file": "A.png"})


async def test_a_voice_is_asked_for_as_wav(house: House, dial: Dial) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        group.create_task(house.transport.get_record(ACCOUNT, "A.amr"))
        call = await answered(napcat, {"file": "/a.wav"})
    assert (call["action"], call["params"]) == ("get_record", {"file": "A.amr", "out_format": "wav"})


async def test_a_history_is_of_the_account_that_asked_and_has_nothing_empty_and_any_time(
    house: House, dial: Dial
) -> None:
    history = [
        message("later", message_id=1, account=30003, time="1776056154500"),
        message("sooner", message_id=2, time=1_776_056_153.5),
        message(message_id=3, message=[]),
    ]
    async with dial() as napcat, asyncio.TaskGroup() as group:
        asking = group.create_task(house.transport.get_history(GROUP))
        await answered(napcat, {"messages": history})
    heard = [(one.self_id, one.message_id, one.time) for one in asking.result()]
    assert heard == [(ACCOUNT, "2", 1_776_056_153.5), (ACCOUNT, "1", 1_776_056_154.5)]


async def test_a_message_that_was_asked_for_is_of_the_account_that_asked(house: House, dial: Dial) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        looking = group.create_task(house.transport.get_message(ACCOUNT, "1"))
        await answered(napcat, message(account=30003, user_id=30003))
    found = looking.result()
    assert found is not None
    assert (found.self_id, found.conversation.platform_id, found.is_own) == (ACCOUNT, ACCOUNT, False)


@pytest.mark.parametrize("fields", [{"retcode": 1200, "message": "waitForSelfEcho timeout"}, {"retcode": 0}])
async def test_a_send_that_qq_may_have_taken_is_not_refused(house: House, dial: Dial, fields: Frame) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        sending = group.create_task(outcome(house))
        await answered(napcat, None, status="failed", **fields)
    assert isinstance(sending.result(), ActionUnanswered)


@each_case("kind", ["group", "private"])
@each_case("number", [0, -5])
def test_nothing_is_sent_to_a_place_without_a_number(kind: MessageType, number: int) -> None:
    with pytest.raises(ActionRefused):
        write_action(SendMessage(Conversation(ACCOUNT, kind, number), (Text("hi"),)))
    came_through = Conversation(ACCOUNT, "private", 20002, min(number, 0))
    assert "group_id" not in write_action(SendMessage(came_through, (Text("hi"),)))[1]


@pytest.mark.parametrize(
    ("name", "gesture", "action", "params"),
    [
        (
            "NapCat.Onebot 4.18.13",
            React(GROUP, "-77", "212"),
            "set_msg_emoji_like",
            {"message_id": -77, "emoji_id": "212", "set": True},
        ),
        (
            "Lagrange.OneBot 0.0.3",
            React(GROUP, "-77", "212"),
            "set_group_reaction",
            {"group_id": 4242, "message_id": -77, "code": "212", "is_add": True},
        ),
        (
            "",
            ShowTyping(Conversation(ACCOUNT, "private", 777)),
            "set_input_status",
            {"user_id": 777, "event_type": 1},
        ),
    ],
)
async def test_a_sign_is_made_in_the_words_of_its_server(
    house: House, dial: Dial, name: str, gesture: Gesture, action: str, params: dict[str, object]
) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        house.peers.set_server(ACCOUNT, name)
        group.create_task(house.transport.gesture(gesture))
        call = await answered(napcat)
    assert (call["action"], call["params"]) == (action, params)


async def test_a_sign_that_no_server_of_this_kind_can_make_is_told_from_one_that_failed(
    house: House, dial: Dial
) -> None:
    async with dial() as napcat, asyncio.TaskGroup() as group:
        for retcode, kind in ((1404, ActionUnsupported), (1200, ActionRefused)):
            making = group.create_task(sign(house))
            await answered(napcat, None, status="failed", retcode=retcode)
            assert type(await making) is kind


async def sign(house: House) -> TransportError | None:
    try:
        await house.transport.gesture(React(GROUP, "7", "212"))
    except TransportError as error:
        return error
    return None


@each_case(("kind", "place"), [("group", "group_id"), ("private", "user_id")])
def test_a_merged_forward_is_nodes_of_text_by_the_account(kind: MessageType, place: str) -> None:
    merged = MergedForward(("一", "[CQ:at,qq=all]"), "小霜")
    name, params = write_action(SendMessage(Conversation(ACCOUNT, kind, 4242), (merged,)))
    assert name == f"send_{kind}_forward_msg"
    who = {"user_id": str(ACCOUNT), "nickname": "小霜"}
    assert params == {
        place: 4242,
        "messages": [
            {"type": "node", "data": {**who, "content": [{"type": "text", "data": {"text": text}}]}}
            for text in merged.nodes
        ],
    }


async def test_onebots_finds_the_fields_of_a_node_at_its_top(house: House, dial: Dial) -> None:
    merged = MergedForward(("一", "二"), "小霜")
    async with dial() as server, asyncio.TaskGroup() as group:
        house.peers.set_server(ACCOUNT, "onebots 0.4.96")
        sending = group.create_task(house.transport.send(SendMessage(GROUP, (merged,))))
        call = await answered(server, {"message_id": 7})
    assert sending.result() == "7"
    tops = [{key: node[key] for key in ("uin", "name", "content")} for node in call["params"]["messages"]]
    assert tops == [
        {"uin": ACCOUNT, "name": "小霜", "content": [{"type": "text", "text": text, "data": {"text": text}}]}
        for text in merged.nodes
    ]


async def test_a_private_file_is_asked_for_by_its_hash_where_the_server_told_one(house: House, dial: Dial) -> None:
    asked = []
    for where in (GROUP, Conversation(ACCOUNT, "private", 777)):
        for file in (File("a.txt", "/a"), File("a.txt", "/a", hash="h")):
            async with dial() as lagrange, asyncio.TaskGroup() as group:
                group.create_task(house.transport.get_file(where, file))
                call = await answered(lagrange, {"url": "https://a.example/a"})
            asked.append((call["action"], call["params"].get("file_hash")))
    assert asked == [
        ("get_group_file_url", None),
        ("get_group_file_url", None),
        ("get_private_file_url", None),
        ("get_private_file_url", "h"),
    ]


@pytest.mark.parametrize("deadline", [0.05])
async def test_what_is_too_large_for_a_frame_is_fetched_and_there_is_time_for_that(house: House, dial: Dial) -> None:
    offers = FileOffers("http://bot:8080/media")
    offering = OneBotTransport(peers=house.peers, calls=house.calls, offers=offers)
    film = SendMessage(GROUP, (Text("look"), Attachment("video", "base64://" + "A" * MOST_INLINE)))
    async with dial() as napcat, asyncio.TaskGroup() as group:
        sending = group.create_task(offering.send(film))
        call = await napcat.receive()
        with pytest.raises(ActionUnanswered):
            await offering.send(HELLO)
        [text, video] = call["params"]["message"]
        assert text == {"type": "text", "data": {"text": "look"}}
        address = video["data"]["file"]
        offered = offers.find(address.removeprefix("http://bot:8080/media/"))
        assert offered is not None
        assert (video, offered.url) == ({"type": "video", "data": {"file": address}}, address)
        await napcat.answer(call, {"message_id": 3})
    assert (sending.result(), offered.over) == ("3", True)


async def test_a_url_is_not_passed_on_by_who_offers_files_either(house: House, dial: Dial) -> None:
    offering = OneBotTransport(peers=house.peers, calls=house.calls, offers=FileOffers("http://bot:8080/media"))
    link = SendMessage(GROUP, (Attachment("image", "http://bot:8080/media/guessed"),))
    async with dial():
        with pytest.raises(ActionRefused, match="a url is not passed on to be fetched unchecked"):
            await offering.send(link)
