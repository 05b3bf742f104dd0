from __future__ import annotations

from bot.domain.journal import MemberNumbered
from bot.memory.speakers import FAR, Speakers
from tests.fakes import GROUP, PRIVATE, RecordingStore


def member(number: int, user_id: int, name: str = "") -> MemberNumbered:
    return MemberNumbered(conversation=GROUP, number=number, user_id=user_id, name=name)


def known(*members: MemberNumbered) -> tuple[Speakers, RecordingStore]:
    store = RecordingStore()
    speakers = Speakers(store=store)
    speakers.learn(GROUP, members)
    return speakers, store


def test_a_person_has_one_number_in_a_conversation_and_it_is_written_down_once() -> None:
    speakers, store = known()
    speakers.learn(PRIVATE, ())
    assert [speakers.meet(GROUP, user, name) for user, name in ((777, "小明"), (99, "Ann"), (777, "小明"))] == [1, 2, 1]
    assert speakers.number(PRIVATE, 99) == 1
    assert store.entries[:2] == [member(1, 777, "小明"), member(2, 99, "Ann")]
    assert len(store.entries) == 3
    assert [speakers.user_id(GROUP, number) for number in (1, 2, 3)] == [777, 99, None]


def test_a_new_name_is_the_same_person_and_the_name_last_seen() -> None:
    speakers, store = known(member(1, 777, "小明"))
    assert speakers.meet(GROUP, 777, "群主") == 1
    assert speakers.meet(GROUP, 777, "") == 1
    assert speakers.name(GROUP, 777) == "群主"
    assert store.entries == [member(1, 777, "群主")]


def test_no_number_is_used_again_also_of_who_was_forgotten() -> None:
    speakers, _ = known(member(1, 777), member(4, 0))
    assert speakers.number(GROUP, 99) == 5
    assert speakers.user_id(GROUP, 4) is None


def test_where_the_store_cannot_be_read_a_person_has_the_same_far_number_in_every_process() -> None:
    one, two = Speakers(store=RecordingStore()), Speakers(store=RecordingStore())
    assert GROUP not in one
    far = one.number(GROUP, 777)
    assert far == one.number(GROUP, 777) == two.number(GROUP, 777) >= FAR
    assert one.number(GROUP, 99) != far
    one.learn(GROUP, [member(1, 777), member(2, 5)])
    assert GROUP in one
    assert (one.number(GROUP, 777), one.user_id(GROUP, far)) == (1, 777)
    assert one.number(GROUP, 6) == 3


def test_what_is_let_go_is_read_anew() -> None:
    speakers, _ = known(member(1, 777))
    speakers.forget()
    assert GROUP not in speakers
    assert speakers.user_id(GROUP, 1) is None
