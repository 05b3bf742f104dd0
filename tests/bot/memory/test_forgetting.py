from __future__ import annotations

import math

import pytest

from bot.core.erasure import SubjectErased
from bot.memory.forgetting import Forgetting
from bot.memory.history import History
from frostagent.types.errors import BotError
from tests.bot.commands.test_forget import Asked, Nobody, Shredder
from tests.bot.test_settings_store import Ear
from tests.cases import each_case
from tests.fakes import GROUP, PRIVATE, RecordingStore


class Place:
    """What is forgotten here, and in which order: what is `erased`, and `let_go` in memory."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.asked, self.waiting, self.ear = Asked(), Nobody(), Ear()
        self.shredder = Shredder(lambda: self.order.append("erased"))
        self.history = history = History(store=RecordingStore())
        self.people = history.speakers
        self.forgetting = Forgetting(
            self.shredder,
            history,
            cancel_questions=self.asked.forget,
            cancel_join_requests=self.waiting.forget,
            now=lambda: 100.0 + len(self.order),
            then=(lambda: self.order.append("let_go"),),
            announcer=self.ear,
        )


async def test_a_chat_is_a_group_or_the_person_it_is_with() -> None:
    place = Place()
    assert await place.forgetting.chat(GROUP) == 12
    assert await place.forgetting.chat(PRIVATE) == 12
    assert place.shredder.gone == [("group", GROUP.session_id)] * 2 + [("user", PRIVATE.session_id)] * 2
    whose = [(0, GROUP.session_id)] * 2 + [(PRIVATE.session_id, 0)] * 2
    assert place.asked.gone == whose
    assert place.waiting.gone == whose


async def test_what_is_read_while_it_is_erased_is_read_anew() -> None:
    place = Place()
    before: list[int] = []
    place.shredder.begin = lambda: before.append(place.history.times_let_go)
    await place.forgetting.person(777)
    assert (before, place.history.times_let_go) == ([1, 3], 4)


async def test_memory_lets_go_of_what_is_erased_and_what_was_begun_meanwhile_is_erased_too() -> None:
    place = Place()
    await place.forgetting.person(777)
    assert place.order == ["erased", "let_go"] * 2
    assert place.shredder.swept == 1


@each_case(("said", "since"), [(math.inf, 102.0), (5.0, math.inf)])
async def test_what_is_said_once_all_is_let_go_of_is_neither_erased_nor_dropped_the_second_time(
    said: float, since: float
) -> None:
    for whose in ("person", "group"):
        place = Place()
        await getattr(place.forgetting, whose)(777, said=said)
        assert place.shredder.since == [math.inf, 102.0]
        assert (place.asked.said, place.asked.since) == ([said, said], [math.inf, since])
        by_then, later = (None if at == math.inf else at for at in (said, since))
        assert [(one.said, one.since) for one in place.ear.notes if isinstance(one, SubjectErased)] == [
            (by_then, None),
            (by_then, later),
        ]


async def test_whoever_follows_is_told_who_is_forgotten_here_or_by_another_bot() -> None:
    place, told = Place(), list[SubjectErased]()
    place.forgetting.follow(told.append)
    await place.forgetting.person(777)
    assert [one.user for one in told] == [777] * 2
    await place.forgetting.elsewhere(SubjectErased(group=5))
    assert told[2:] == [SubjectErased(group=5)]


async def test_who_is_forgotten_has_no_number_in_a_run_that_goes_on() -> None:
    place = Place()
    place.people.learn(GROUP, ())
    for user, name in ((777, "小明"), (888, "小红")):
        place.people.meet(GROUP, user, name)
    await place.forgetting.person(777)
    assert [place.people.user_id(GROUP, number) for number in (1, 2)] == [None, 888]
    await place.forgetting.group(GROUP.session_id)
    assert place.people.user_id(GROUP, 2) is None


@each_case("times", [0, 1])
async def test_what_cannot_be_erased_is_not_let_go_of_here_or_by_others(times: int) -> None:
    place = Place()
    place.shredder.last = times
    with pytest.raises(BotError, match="disk is full"):
        await place.forgetting.person(777)
    assert place.asked.gone == place.waiting.gone == [(777, 0)] * times
    assert place.ear.notes == [SubjectErased(user=777)] * times
    assert place.order.count("let_go") == times


async def test_the_other_bots_of_a_cluster_are_told_and_let_go_without_erasing() -> None:
    here, there = Place(), Place()
    await here.forgetting.person(777)
    await here.forgetting.group(4242, said=5.0)
    once, again = SubjectErased(user=777), SubjectErased(user=777, since=102.0)
    assert here.ear.notes == [once, again] + [SubjectErased(group=4242, said=5.0)] * 2
    for note in here.ear.notes[1:3]:
        assert isinstance(note, SubjectErased)
        await there.forgetting.elsewhere(note)
    assert there.order == ["let_go"] * 2
    assert there.asked.gone == there.waiting.gone == [(777, 0), (0, 4242)]
    assert there.asked.said[1] == 5.0
    assert there.ear.notes == []
