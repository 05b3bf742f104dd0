from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.onebot.protocol import read_groups, read_member
from bot.core.conversation import Conversation
from bot.core.ports import JoinedGroup, Member
from tests.cases import each_case
from tests.fakes import BOT


@each_case(("flag", "silenced"), [(0, False), (1, True), (-1, True), (True, True), (None, None)])
def test_a_group_says_whether_all_are_silenced(flag: object, silenced: bool | None) -> None:
    data = [{"group_id": "4242", "group_all_shut": flag}, {"group_id": 0}, None]
    assert read_groups(data, account=BOT) == (JoinedGroup(Conversation(BOT, "group", 4242), silenced),)


def test_llbot_says_until_when_a_group_is_silenced_and_the_account_muted() -> None:
    data = [
        {"group_id": 4242, "shut_up_all_timestamp": 4294967295, "shut_up_me_timestamp": 0},
        {"group_id": 4343, "shut_up_all_timestamp": 0, "shut_up_me_timestamp": "1700000600"},
    ]
    assert [(one.is_silenced, one.silenced_until, one.muted_until) for one in read_groups(data, account=BOT)] == [
        (None, 4294967295.0, 0.0),
        (None, 0.0, 1700000600.0),
    ]


def test_a_group_has_the_name_that_the_list_tells() -> None:
    [named, nameless] = read_groups([{"group_id": 1, "group_name": "爬山"}, {"group_id": 2}], account=BOT)
    assert (named.name, nameless.name) == ("爬山", "")


@each_case(
    ("data", "member"),
    [
        ({"role": "admin", "shut_up_timestamp": 17, "is_robot": True}, Member("admin", 17.0, True)),
        ({"role": "member", "shut_up_timestamp": "0", "is_robot": False}, Member("member", 0.0, False)),
        ({"role": "king"}, Member(muted_until=None)),
    ],
)
def test_a_member_has_a_role_a_mute_and_perhaps_a_nature(data: object, member: Member) -> None:
    assert read_member(data) == member


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_whatever_comes_is_read(data: object) -> None:
    read_groups(data, account=BOT)
    read_member(data)
