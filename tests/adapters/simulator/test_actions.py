"""Every action, asked for as the bot asks for it: with a frame."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from adapters.simulator import actions
from adapters.simulator.actions import REQUEST_ACTIONS, befriend, invite, lapse
from adapters.simulator.call import Call, CallAnswer, Gesture, Params, SentMessage
from adapters.simulator.commands import obey
from adapters.simulator.server import Simulator
from adapters.simulator.wire import CallRefused, Json, mention, text
from adapters.simulator.world import Person, World, demo_world
from tests.adapters.simulator.conftest import playing
from tests.cases import each_case


def take(world: World, frame: str | bytes) -> CallAnswer:
    call = actions.read_call(frame)
    return call if isinstance(call, CallAnswer) else actions.perform(world, call)


def ask(world: World, action: str, **params: Any) -> CallAnswer:
    return take(world, json.dumps({"action": action, "params": params, "echo": "e"}))


def told(world: World, action: str, **params: Any) -> Any:
    answer = ask(world, action, **params)
    assert (answer.frame["status"], answer.frame["retcode"], answer.frame["echo"]) == ("ok", 0, "e"), answer.frame
    return answer.frame["data"]


def refused(world: World, action: str, **params: Any) -> tuple[int, str]:
    frame = ask(world, action, **params).frame
    assert (frame["status"], frame["data"], frame["message"]) == ("failed", None, frame["wording"])
    return frame["retcode"], frame["message"]


# --- frames ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "ping", "null", "[]", b"\xff"])
def test_a_frame_that_is_no_call_is_answered_without_an_echo(world: World, text: str | bytes) -> None:
    frame = take(world, text).frame
    assert (frame["retcode"], frame["echo"]) == (1400, None)


@pytest.mark.parametrize("name", ["send_carrier_pigeon", "send_group_msg_async", None, 7])
def test_an_unknown_action_is_not_supported(world: World, name: Any) -> None:
    frame = take(world, json.dumps({"action": name, "echo": 1})).frame
    assert (frame["retcode"], frame["message"], frame["echo"]) == (1404, f"不支持的Api {name}", 1)


def test_parameters_must_be_an_object(world: World) -> None:
    frame = take(world, '{"action": "get_status", "params": [1]}').frame
    assert (frame["retcode"], frame["echo"]) == (1400, None)


@pytest.mark.parametrize("echo", ["17", 0, "", {"seq": 12}, None, [1]])
def test_the_echo_comes_back_as_it_was(world: World, echo: Any) -> None:
    assert take(world, json.dumps({"action": "get_status", "echo": echo})).frame["echo"] == echo


def test_a_missing_echo_comes_back_empty(world: World) -> None:
    assert take(world, '{"action": "get_status"}').frame["echo"] == ""
    assert take(world, '{"action": "get_msg", "params": {"message_id": 1}}').frame["echo"] == ""
    assert take(world, '{"action": "get_msg"}').frame["echo"] is None


# --- saying something -----------------------------------------------------------------------------


def test_a_group_message_is_sent_and_kept(world: World) -> None:
    answer = ask(world, "send_group_msg", group_id="4242", message=[mention(20002), text(" hi")])
    message_id = answer.frame["data"]["message_id"]
    assert answer.done.sent is not None
    assert (answer.done.sent.message_id, answer.done.sent.group_id, answer.done.sent.text) == (message_id, 4242, " hi")
    assert answer.done.events == ()
    kept = told(world, "get_msg", message_id=message_id)
    assert (kept["post_type"], kept["raw_message"]) == ("message_sent", "[CQ:at,qq=20002] hi")


def test_own_messages_are_reported_when_asked_for(world: World) -> None:
    world.reports_self = True
    (event,) = ask(world, "send_group_msg", group_id=4242, message="hi").done.events
    assert (event["post_type"], event["message_sent_type"], event["target_id"]) == ("message_sent", "self", 4242)


def test_a_private_message_goes_to_a_friend_or_through_a_group(world: World) -> None:
    friend = told(world, "send_private_msg", user_id=20001, group_id=4242, message="hi")["message_id"]
    stranger = told(world, "send_private_msg", user_id="20002", group_id=4242, message="hi")["message_id"]
    assert told(world, "get_msg", message_id=friend)["sub_type"] == "friend"
    assert told(world, "get_msg", message_id=stranger)["sub_type"] == "group"


def test_a_stranger_who_came_through_a_group_is_answered_through_it(world: World) -> None:
    to = {"user_id": 777, "message": "hi"}
    assert refused(world, "send_private_msg", group_id=4242, **to)[1] == "无法获取用户信息"
    world.post([text("hello")], author=777, peer_id=777, via_group=4242)
    answer = told(world, "send_private_msg", group_id=4242, **to)["message_id"]
    assert told(world, "get_msg", message_id=answer)["sub_type"] == "group"
    assert refused(world, "send_private_msg", **to)[1] == "无法获取用户信息"
    assert refused(world, "send_private_msg", group_id=4343, **to)[1] == "无法获取用户信息"


def test_send_msg_takes_the_group_where_both_are_named(world: World) -> None:
    for params, group_id in (
        ({"group_id": 4242, "user_id": 20001}, 4242),
        ({"user_id": 20001}, None),
        ({"user_id": 20001, "group_id": 4242, "message_type": "private"}, None),
        ({"message_type": "group", "group_id": 4343}, 4343),
    ):
        sent = ask(world, "send_msg", message="hi", **params).done.sent
        assert sent is not None
        assert sent.group_id == group_id


def test_what_cannot_be_sent_is_refused(world: World) -> None:
    assert refused(world, "send_group_msg", message="hi")[0] == 1400
    assert refused(world, "send_group_msg", group_id=4242)[0] == 1400
    assert refused(world, "send_group_msg", group_id=1, message="hi") == (1200, "群聊 1 不存在")
    assert refused(world, "send_private_msg", user_id=1, message="hi") == (1200, "无法获取用户信息")
    assert refused(world, "send_group_msg", group_id=4242, message=[])[0] == 1200
    assert world.messages.history(group_id=4242) == []


def test_a_muted_account_is_refused_there_and_says_until_when(world: World) -> None:
    world.mutes.mute(4242, 60)
    code, words = refused(world, "send_group_msg", group_id=4242, message="hi")
    assert (code, '"result": 120' in words) == (1200, True)
    assert told(world, "send_group_msg", group_id=4343, message="hi")
    assert told(world, "send_private_msg", user_id=20002, group_id=4242, message="hi")
    until = told(world, "get_group_member_info", group_id=4242, user_id=10001)["shut_up_timestamp"]
    assert until == int(world.now() + 60)
    assert told(world, "get_group_member_info", group_id=4242, user_id=20001)["shut_up_timestamp"] == 0


def test_an_account_that_is_offline_sends_nothing(world: World) -> None:
    world.online = False
    assert refused(world, "send_private_msg", user_id=20001, message="hi")[0] == 1200
    assert world.messages.history(peer_id=20001) == []


def test_the_message_in_a_call_is_read_without_being_sent(world: World) -> None:
    def asked(action: str, **params: Any) -> SentMessage | None:
        call = actions.read_call(json.dumps({"action": action, "params": params}))
        assert isinstance(call, Call)
        return actions.message_in(call)

    assert asked("send_msg", group_id=1, message="hi") == SentMessage(0, (text("hi"),), 1)
    assert asked("send_private_msg", user_id=5, group_id=1, message="") == SentMessage(0, (), None, 5, 1)
    assert asked("send_group_msg", message="hi") is None
    assert asked("get_msg", message_id=1) is None


def test_a_merged_forward_can_be_read_back(world: World) -> None:
    said = told(world, "send_group_msg", group_id=4242, message="quoted")["message_id"]
    nodes = [
        {"type": "node", "data": {"user_id": "20001", "nickname": "小明", "content": [text("one")]}},
        {"type": "node", "data": {"uin": 10001, "name": "bot", "content": "two"}},
    ]
    data = told(world, "send_group_forward_msg", group_id=4242, messages=nodes)
    for asked in ({"id": data["res_id"]}, {"message_id": data["message_id"]}):
        messages = told(world, "get_forward_msg", **asked)["messages"]
        assert [(one["sender"]["nickname"], one["raw_message"]) for one in messages] == [
            ("小明", "one"),
            ("bot", "two"),
        ]
        assert {one["post_type"] for one in messages} == {"message"}
    assert refused(world, "get_forward_msg", id="1")[0] == 1200
    assert refused(world, "get_forward_msg", message_id=said)[0] == 1200
    assert ask(world, "send_private_forward_msg", user_id=20001, messages=nodes).done.sent is not None


# --- what was said --------------------------------------------------------------------------------


def test_an_unknown_message_does_not_exist(world: World) -> None:
    for action in ("get_msg", "delete_msg", "set_msg_emoji_like"):
        assert refused(world, action, message_id=5, emoji_id="76") == (1200, "消息不存在")


def test_get_msg_has_the_recorded_keys(world: World, recorded: Callable[[str], Json]) -> None:
    message_id = told(world, "send_group_msg", group_id=4242, message="hi")["message_id"]
    real = recorded("api_ok__nc_get_msg_bot_own")["data"].keys() - {"emoji_likes_list"}  # nobody liked ours
    assert told(world, "get_msg", message_id=message_id).keys() == real


def test_the_bot_takes_back_its_own_message(world: World, recorded: Callable[[str], Json]) -> None:
    message_id = told(world, "send_group_msg", group_id=4242, message="hi")["message_id"]
    (notice,) = ask(world, "delete_msg", message_id=str(message_id)).done.events
    assert notice.keys() == recorded("notice_group__nc_group_recall_by_admin").keys()
    assert (notice["operator_id"], notice["user_id"], notice["message_id"]) == (10001, 10001, message_id)
    assert refused(world, "get_msg", message_id=message_id)[0] == 1200


def test_only_an_administrator_takes_back_what_others_said(world: World) -> None:
    theirs = world.post([text("hi")], author=20002, group_id=4242).message_id
    alone = world.post([text("hi")], author=20001, peer_id=20001).message_id
    assert refused(world, "delete_msg", message_id=theirs)[0] == 1200
    assert refused(world, "delete_msg", message_id=alone)[0] == 1200
    world.add_group(1, role="admin")
    world.join(1, "x", user_id=5)
    assert told(world, "delete_msg", message_id=world.post([text("hi")], author=5, group_id=1).message_id) is None


def test_a_history_ends_with_the_named_message(world: World) -> None:
    ids = [world.post([text(str(number))], author=20001, group_id=4242).message_id for number in range(5)]
    elsewhere = world.post([text("x")], author=20001, peer_id=20001).message_id

    def history(**params: Any) -> list[str]:
        messages = told(world, "get_group_msg_history", group_id=4242, **params)["messages"]
        return [one["raw_message"] for one in messages]

    assert history() == ["0", "1", "2", "3", "4"]
    assert history(count=2) == ["3", "4"]
    assert history(count=2, message_seq=ids[2]) == ["1", "2"]
    assert history(count="2", reverse_order=True) == ["4", "3"]
    assert history(count=0) == history(message_seq=elsewhere) == []
    assert refused(world, "get_group_msg_history", group_id=4242, message_seq=1)[1] == "消息不存在"
    (alone,) = told(world, "get_friend_msg_history", user_id=20001)["messages"]
    assert alone["message_id"] == elsewhere


# --- who and where --------------------------------------------------------------------------------


def test_the_account_describes_itself(world: World, recorded: Callable[[str], Json]) -> None:
    assert told(world, "get_login_info") == {"user_id": 10001, "nickname": "bot"}
    assert told(world, "get_status") == recorded("api_ok__nc_status")["data"]
    assert told(world, "get_version_info") == recorded("api_ok__nc_version")["data"]
    assert told(world, "can_send_image") == told(world, "can_send_record") == {"yes": True}
    world.online = False
    assert told(world, "get_status")["online"] is False


def test_groups_and_members_have_the_recorded_keys(world: World, recorded: Callable[[str], Json]) -> None:
    groups = told(world, "get_group_list")
    assert [group["group_id"] for group in groups] == [4242, 4343]
    assert groups[0].keys() == recorded("api_ok__nc_group_list")["data"][0].keys()
    assert told(world, "get_group_info", group_id=4242) == groups[0]
    member = told(world, "get_group_member_info", group_id=4242, user_id="20001")
    assert member.keys() == recorded("api_ok__nc_group_member_info")["data"].keys()
    assert (member["card"], member["role"]) == ("明明", "owner")
    assert [one["user_id"] for one in told(world, "get_group_member_list", group_id=4242)] == [10001, 20001, 20002]
    assert refused(world, "get_group_member_info", group_id=4242, user_id=1) == (1200, "群(4242)成员1不存在")
    assert refused(world, "get_group_info", group_id=1)[0] == 1200


def test_friends_and_strangers_are_described(world: World) -> None:
    (friend,) = told(world, "get_friend_list")
    assert (friend["user_id"], friend["nickname"]) == (20001, "小明")
    assert told(world, "get_stranger_info", user_id=20002)["nickname"] == "user2"
    assert told(world, "get_stranger_info", user_id=1)["nickname"] == ""


# --- small things ---------------------------------------------------------------------------------


def test_messages_are_marked_as_read(world: World) -> None:
    assert told(world, "mark_msg_as_read", message_id=1) is None


def test_an_unsupported_action_is_one_the_server_does_not_know(world: World) -> None:
    world.unsupported.add("set_input_status")
    assert refused(world, "set_input_status", user_id=20001)[0] == 1404


async def test_gestures_reach_the_bot() -> None:
    async with playing("forward") as (simulator, bot):
        assert "has said nothing" in await obey(simulator, "!react")
        sent = await bot.send("hello")
        for line in ("!poke", "!typing", "!react 66"):
            await obey(simulator, line)
        await bot.until(lambda: len(bot.events) == 3)
        poke, typing, reaction = bot.events
        assert (poke["sub_type"], poke["user_id"], poke["group_id"]) == ("poke", 20001, 4242)
        assert (typing["sub_type"], typing["user_id"]) == ("input_status", 20001)
        assert reaction["message_id"] == sent["data"]["message_id"]
        assert reaction["likes"] == [{"emoji_id": "66", "count": 1}]


@each_case(
    ("line", "kind", "told"),
    [
        ("!voice 明天 下雨", "record", "voice.amr"),
        ("!file 作业.txt 第一题 第二题", "file", "作业.txt"),
        ("!card 香山 https://example.com", "json", "https://example.com"),
        ("!forward 3", "forward", "700000"),
    ],
)
async def test_things_are_shared(line: str, kind: str, told: str) -> None:
    async with Simulator(demo_world()) as simulator:
        assert await obey(simulator, line) == "shared"
        (segment,) = simulator.world.messages.find(simulator.last_said).segments
        assert segment["type"] == kind
        assert told in str(segment["data"])


async def test_a_shared_file_has_its_words_and_a_forward_its_depth() -> None:
    async with Simulator(demo_world()) as simulator:
        await obey(simulator, "!file 作业.txt 第一题 第二题")
        assert simulator.world.contents["作业.txt"].decode() == "第一题 第二题"
        await obey(simulator, "!forward 99")
        (messages,) = simulator.world.forwards.values()
        assert str(messages).count("周六去爬山吗") == 9 * 2  # in the segments and as raw_message


async def test_everybody_is_muted_and_a_robot_comes() -> None:
    async with Simulator(demo_world()) as simulator:
        assert await obey(simulator, "!muteall") == "everybody is muted"
        assert await obey(simulator, "!faults") == "muted in 4242"
        assert await obey(simulator, "!liftall") == "nobody is muted any more"
        assert await obey(simulator, "!faults") == "nothing is armed"
        assert await obey(simulator, "!robot 3") == "robot2 answers 3 times"


@pytest.mark.parametrize("action", ["send_poke", "group_poke", "friend_poke"])
def test_the_bot_hears_of_its_own_poke(world: World, action: str) -> None:
    done = ask(world, action, user_id=20002, group_id=4242).done
    (event,) = done.events
    assert (event["user_id"], event["target_id"], event["group_id"]) == (10001, 20002, 4242)
    assert done.gesture == Gesture("poke", user_id=20002, group_id=4242)
    (event,) = ask(world, action, user_id=20001).done.events
    assert "group_id" not in event


def test_a_reaction_is_made_and_taken_back(world: World, recorded: Callable[[str], Json]) -> None:
    message_id = world.post([text("hi")], author=20001, group_id=4242).message_id
    made = Gesture("reaction", 20001, 4242, message_id, "76")
    liked = ask(world, "set_msg_emoji_like", message_id=message_id, emoji_id="76")
    assert liked.frame["data"] == recorded("api_ok__nc_emoji_like")["data"]
    assert liked.done.gesture == made
    for action, more in (("set_msg_emoji_like", {"set": False}), ("unset_msg_emoji_like", {})):
        back = ask(world, action, message_id=message_id, emoji_id="76", **more).done.gesture
        assert back == Gesture("reaction", 20001, 4242, message_id, "76", taken_back=True)
    assert refused(world, "set_msg_emoji_like", message_id=message_id)[0] == 1400


def test_lagrange_has_its_own_reaction(world: World) -> None:
    message_id = world.post([text("hi")], author=20001, group_id=4242).message_id
    asked = {"group_id": 4242, "message_id": message_id, "code": "76", "is_add": True}
    assert refused(world, "set_group_reaction", **asked)[0] == 1404
    world.unsupported.clear()
    assert ask(world, "set_group_reaction", **asked).done.gesture == Gesture("reaction", 20001, 4242, message_id, "76")


def test_typing_is_seen(world: World) -> None:
    assert told(world, "set_input_status", user_id=20001, event_type=1)["result"] == 0
    done = ask(world, "set_input_status", user_id=20001, event_type=1).done
    assert done.gesture == Gesture("typing", user_id=20001)


ZHANG = Person(29001, "老张")


def test_a_request_is_answered_once_by_its_flag() -> None:
    world = World(nickname="bot")
    asked, invited = befriend(world, ZHANG, "hi"), invite(world, ZHANG, 77)
    assert (asked["request_type"], invited["sub_type"], invited["group_id"]) == ("friend", "invite", 77)
    yes = Params({"flag": asked["flag"], "approve": True})
    assert REQUEST_ACTIONS["set_friend_add_request"](world, yes).gesture == Gesture("friend", user_id=ZHANG.user_id)
    assert world.friends == {ZHANG.user_id: ZHANG}
    no = Params({"flag": invited["flag"], "approve": False, "sub_type": "invite"})
    refusal = Gesture("refusal", user_id=ZHANG.user_id, group_id=77)
    assert REQUEST_ACTIONS["set_group_add_request"](world, no).gesture == refusal
    assert world.groups == {}
    for action, params in (("set_friend_add_request", yes), ("set_group_add_request", no)):
        with pytest.raises(CallRefused):
            REQUEST_ACTIONS[action](world, params)


def test_what_qq_has_forgotten_is_refused() -> None:
    world = World(nickname="bot")
    flag = invite(world, ZHANG, 77)["flag"]
    lapse(world)
    with pytest.raises(CallRefused):
        REQUEST_ACTIONS["set_group_add_request"](world, Params({"flag": flag, "approve": True, "sub_type": "invite"}))
