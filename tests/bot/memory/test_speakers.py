from __future__ import annotations

import re
from functools import partial

from hypothesis import example, given
from hypothesis import strategies as st

from bot.core.events import Sender
from bot.core.journal import MemberNumbered
from bot.core.person_lookup import find_person
from bot.memory.speakers import FAR, Speakers
from bot.prompt.render import View, speaker
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


def test_what_is_to_be_read_anew_is_known_to_runs_that_go_on_until_it_is() -> None:
    speakers, store = known(member(1, 777, "小明"), member(2, 778, "小红"), member(5, 780, "阿澈"))
    speakers.forget()
    assert GROUP not in speakers
    assert (speakers.number(GROUP, 777), speakers.user_id(GROUP, 2), speakers.name(GROUP, 778)) == (1, 778, "小红")
    assert store.entries == []
    assert speakers.meet(GROUP, 781, "Ann") == 6
    speakers.learn(GROUP, (member(1, 777, "群主"), member(2, 0)))  # what was read when Ann was not written yet
    assert GROUP in speakers
    found = {user: speakers.name(GROUP, user) for user in (777, 778, 780, 781)}
    assert found == {777: "群主", 778: "", 780: "", 781: "Ann"}
    assert [speakers.number(GROUP, user) for user in (781, 778)] == [6, 7]


def test_who_is_forgotten_has_no_number_there_and_nobody_gets_it_again() -> None:
    speakers, store = known(member(1, 777, "小明"), member(2, 778, "小红"))
    speakers.let_go(user=778)
    assert (speakers.user_id(GROUP, 2), speakers.name(GROUP, 778), speakers.user_id(GROUP, 1)) == (None, "", 777)
    speakers.forget()
    assert speakers.meet(GROUP, 778, "小红") == 3
    speakers.let_go(group=GROUP.session_id)
    assert speakers.user_id(GROUP, 1) is None
    speakers.learn(PRIVATE, (member(1, GROUP.session_id, "?"),))
    speakers.let_go(group=GROUP.session_id)
    assert speakers.user_id(PRIVATE, 1) == GROUP.session_id
    assert len(store.entries) == 1


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


NAMES = st.lists(
    st.sampled_from(["Ann", "小明", "我", "#", "＃", "♯", "1", "2", "３", " ", "\u200b", "(", "C"]), max_size=6
)


@given(st.lists(NAMES.map("".join), min_size=1, max_size=4))
@example(["", "AnnAnn", "AnnAnn##2"])
@example(["", "Ann", "Ann#2"])
def test_whatever_people_call_themselves_nobody_is_taken_for_another(names: list[str]) -> None:
    speakers, _ = known()
    view = View(number=partial(speakers.number, GROUP))
    people = {speakers.meet(GROUP, 700 + place, name): (700 + place, name) for place, name in enumerate(names)}
    shown = {number: speaker(Sender(user, name), view) for number, (user, name) in people.items()}
    assert len(set(shown.values())) == len(people)
    for number, (user, name) in people.items():
        written = shown[number]
        assert [find_person(text, speakers, GROUP) for text in (written, f"#{number}")] == [user, user]
        assert not re.search(r"[#＃♯]", written.removesuffix(f"#{number}"))
        if not re.fullmatch(r"[#＃]\s*\d+", name.strip()):  # that is what the number is written like
            forms = {people[place][0]: {who, who.removesuffix(f"#{place}")} for place, who in shown.items()}
            alike = {one for one, written in forms.items() if _folded(name) in map(_folded, written)} | {user}
            assert find_person(name, speakers, GROUP) in {None, *alike}


def _folded(written: str) -> str:
    return re.sub(r"[\s\u200b(]", "", written.replace("＃", "#"))


def test_a_name_that_ends_in_a_number_finds_nobody_else() -> None:
    speakers, _ = known(member(1, 777, "Alice"), member(2, 778, "Carol#1"), member(3, 779, "3"), member(4, 780, "2"))
    found = {text: find_person(text, speakers, GROUP) for text in ("Carol#1", "Carol 1", "carol #2", "2", "3", "#2")}
    assert found == {"Carol#1": None, "Carol 1": None, "carol #2": 778, "2": None, "3": 779, "#2": 778}
    assert [find_person(text, speakers, GROUP) for text in ("Old name#1", "Carol#1#2", "@Alice＃1")] == [777, 778, 777]
