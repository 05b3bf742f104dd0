from __future__ import annotations

from contextlib import suppress
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from bot.core.conversation import MAX_ID, Conversation, NotAConversation
from bot.core.events import Event, Muted, Sender, read_id
from bot.core.segments import Segment
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, said

NUMBERS = st.integers(0, 10**12)
CONVERSATIONS = st.builds(Conversation, NUMBERS, st.sampled_from(["group", "private"]), NUMBERS, NUMBERS)


@given(CONVERSATIONS)
def test_a_conversation_is_read_back_from_its_text(conversation: Conversation) -> None:
    assert Conversation.parse(str(conversation)) == conversation


@given(CONVERSATIONS, NUMBERS)
def test_the_group_a_private_session_came_through_is_no_part_of_its_identity(
    conversation: Conversation, group: int
) -> None:
    other = structs.replace(conversation, via_group=group)
    assert other == conversation
    assert hash(other) == hash(conversation)
    assert str(other) == str(conversation)


@each_case("other", [Conversation(1, "group", 4242), Conversation(BOT, "private", 4242), str(GROUP)])
def test_another_account_or_kind_is_another_conversation(other: object) -> None:
    assert other != GROUP


def test_blank_space_around_a_conversation_is_forgiven() -> None:
    assert Conversation.parse(" 10001:group:4242\n") == GROUP


def test_a_group_is_a_group_and_a_person_is_none() -> None:
    assert (GROUP.is_group, PRIVATE.is_group) == (True, False)


@each_case(
    "text",
    [
        "", "10001", "10001:group", "10001:group:", ":group:1", "10001:group:4242:5", "a:group:1", "1:group:b",
        "-1:group:1", "1:group:-1", "1:group:1.5", "1:group:1e3", "1:group:1_000", "1:group: 1", "+1:group:1",
        "1:Group:1", "1:channel:1", "1::1", "1:group:４２", "①:group:1", "1 group 1", "1：group：1",
        "9" * 5000 + ":group:1", "1:group:" + "9" * 21,
        "1:group:" + "9" * 20, f"1:group:{2**63}", f"{2**63}:private:1",
    ],
)  # fmt: skip
def test_anything_else_is_not_a_conversation(text: str) -> None:
    with pytest.raises(NotAConversation) as caught:
        Conversation.parse(text)
    assert len(str(caught.value)) < 300


def test_the_largest_id_is_what_64_bits_hold() -> None:
    assert (read_id(str(MAX_ID)), read_id(str(MAX_ID + 1))) == (2**63 - 1, None)
    assert Conversation.parse(f"1:group:{MAX_ID}").session_id == MAX_ID


def test_nobody_has_the_number_0() -> None:
    assert [read_id(text) for text in ("0", "00", "0" * 19, "-0", "+0", " 0", "０", "")] == [None] * 8
    assert (read_id("1"), read_id("0010001")) == (1, 10001)


@given(st.text())
def test_reading_a_conversation_raises_nothing_else(text: str) -> None:
    with suppress(NotAConversation):
        Conversation.parse(text)


@each_case(
    ("sender", "name"),
    [
        (Sender(5, "nick", "card"), "card"),
        (Sender(5, "nick"), "nick"),
        (Sender(5), "5"),
    ],
)
def test_people_see_the_card_then_the_nickname_then_the_number(sender: Sender, name: str) -> None:
    assert sender.name == name


def test_the_same_message_has_the_same_identity_when_it_comes_again() -> None:
    first = said("hi", message_id="7")
    again = structs.replace(first, time=first.time + 60, group_name="renamed", sender=Sender(777, "新名字"))
    assert again.identity == first.identity


@each_case(
    "other",
    [
        said("hi", message_id="8"),
        said("hi", message_id="7", where=PRIVATE),
        said("hi", message_id="7", where=Conversation(BOT, "group", 4243)),
        said("hi", message_id="7", where=Conversation(BOT, "private", 4242)),
        structs.replace(said("hi", message_id="7"), self_id=20002),
    ],
)
def test_an_id_is_only_an_identity_in_its_own_conversation_and_account(other: object) -> None:
    assert getattr(other, "identity", None) != said("hi", message_id="7").identity


def test_a_message_of_the_bots_own_account_is_its_own() -> None:
    assert said("hi", user=BOT).is_own
    assert not said("hi", user=777).is_own


@each_case(("user", "mutes"), [(0, True), (BOT, True), (777, False)])
def test_the_bot_is_muted_by_its_number_or_with_the_whole_group(user: int, mutes: bool) -> None:
    muted = Muted(self_id=BOT, time=0.0, conversation=GROUP, user_id=user, operator_id=1, seconds=60)
    assert muted.mutes_the_bot is mutes


@each_case("union", [Segment, Event])
def test_every_member_of_a_union_is_frozen_and_has_a_tag_of_its_own(union: object) -> None:
    members = get_args(union)
    tags = [member.__struct_config__.tag for member in members]
    assert len(set(tags)) == len(members)
    assert tags == [member.type for member in members]
    assert all(member.__struct_config__.frozen for member in members)


@each_case(
    ("one", "other", "before"),
    [
        ((1.0, "9"), (2.0, "8"), True),
        ((2.0, "8"), (1.0, "9"), False),
        ((1.0, "9"), (1.0, "10"), True),
        ((1.0, "10"), (1.0, "9"), False),
        ((1.0, "9"), (1.0, "9"), False),
        ((1.0, ""), (1.0, "9"), False),
        ((1.0, "9"), (1.0, "x"), False),
    ],
)
def test_what_was_said_before_is_known_by_time_and_within_a_second_by_number(
    one: tuple[float, str], other: tuple[float, str], before: bool
) -> None:
    first, second = (structs.replace(said("x"), time=time, message_seq=seq) for time, seq in (one, other))
    assert first.was_before(second) is before
