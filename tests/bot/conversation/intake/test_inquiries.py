from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.conversation.intake.inquiries import MAX_GROUPS, Inquiries
from bot.conversation.intake.mutes import UNCERTAIN_MUTE, Mutes
from bot.conversation.intake.places import Places
from bot.conversation.intake.robots import Robots
from bot.domain.errors import ActionRefused, ActionUnsupported
from bot.domain.events import Conversation, Muted, Role
from bot.domain.ports import JoinedGroup, Member
from bot.wiring.background import background
from tests.fakes import BOT, GROUP, ManualClock, RecordingTransport, said, until

OTHER, HELD = Conversation(BOT, "group", 4343), Conversation(BOT, "group", 4444)


def muted_in(where: Conversation, seconds: int = 60, *, user: int = BOT) -> Muted:
    return Muted(self_id=BOT, time=0.0, conversation=where, user_id=user, operator_id=1, seconds=seconds)


class Office:
    """Inquiries between fakes."""

    def __init__(self) -> None:
        self.clock, self.transport = ManualClock(), RecordingTransport()
        self.mutes, self.robots = Mutes(clock=self.clock), Robots()
        self.told: list[Muted | tuple[Conversation, Member]] = []
        self.places = Places(arrive=lambda _: None, clock=self.clock)
        self.inquiries = Inquiries(
            transport=self.transport,
            told=self,
            mutes=self.mutes,
            robots=self.robots,
            places=self.places,
            clock=self.clock,
        )

    def take(self, event: Muted) -> None:
        """Somebody was muted, or may speak again; as the room above does, it is asked about that."""
        self.told.append(event)
        self.mutes.take(event)
        if self.mutes.holds_in(event.conversation):
            self.mutes.doubt(event.conversation)

    def learn(self, where: Conversation, member: Member) -> None:
        """The server said so."""
        self.told.append((where, member))
        self.mutes.learn(where, member)

    async def connect(self) -> None:
        """The account connects, and all that it asks then is answered."""
        self.mutes.forget(BOT)
        asked = len(self.transport.members_asked)
        await until(lambda: len(self.transport.members_asked) >= asked + min(len(self.transport.groups), MAX_GROUPS))
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@asynccontextmanager
async def office() -> AsyncIterator[Office]:
    made = Office()
    async with asyncio.timeout(5), background(made.inquiries.run()):
        yield made


async def test_a_mute_that_was_there_before_the_connection_is_known_after_it() -> None:
    async with office() as made:
        made.transport.groups = [JoinedGroup(GROUP), JoinedGroup(OTHER)]
        made.transport.members[GROUP, BOT] = Member("admin", made.clock.time + 60.5)
        made.transport.members[OTHER, BOT] = Member("member", made.clock.time - 1)
        await made.connect()
        assert made.told == [(place, made.transport.members[place, BOT]) for place in (GROUP, OTHER)]
        assert made.mutes.holds_in(GROUP)
        assert not made.mutes.holds_in(OTHER)
        made.clock.time += 60
        assert made.mutes.holds_in(GROUP)
        made.clock.time += 1
        assert not made.mutes.holds_in(GROUP)


@pytest.mark.parametrize(("role", "holds"), [("member", True), ("unknown", True), ("admin", False), ("owner", False)])
async def test_a_silenced_group_is_believed_for_a_while_unless_one_may_speak_there(role: Role, holds: bool) -> None:
    async with office() as made:
        made.transport.groups = [JoinedGroup(GROUP, is_silenced=True)]
        made.transport.members[GROUP, BOT] = Member(role)
        await made.connect()
        assert made.mutes.holds_in(GROUP) is holds
        made.clock.time += UNCERTAIN_MUTE
        assert not made.mutes.holds_in(GROUP)


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        (Member("member"), True),
        (Member("admin"), False),
        (Member("admin", 1_700_000_059.5), True),
        (Member("unknown"), True),
        (ActionRefused("get_group_member_info", retcode=1200, wording="no"), True),
    ],
)
async def test_where_a_whole_group_is_muted_it_is_asked_whether_the_bot_is_one_of_its_admins(
    answer: Member | ActionRefused, holds: bool
) -> None:
    async with office() as made:
        if isinstance(answer, Member):
            made.transport.members[GROUP, BOT] = answer
        else:
            made.transport.member_failures = [answer]
        made.mutes.take(muted_in(GROUP, -1, user=0))
        made.mutes.doubt(GROUP)
        await until(lambda: made.transport.members_asked)
        await made.settle()
        assert made.told == ([(GROUP, answer)] if isinstance(answer, Member) else [])
        assert made.mutes.holds_in(GROUP) is holds
        assert made.transport.members_asked == [(GROUP, BOT)]


@pytest.mark.parametrize(("silenced", "held"), [(False, False), (None, True), (True, True)])
async def test_a_mute_of_the_whole_group_that_was_lifted_meanwhile_holds_nothing_back_any_more(
    silenced: bool | None, held: bool
) -> None:
    async with office() as made:
        made.transport.groups = [JoinedGroup(GROUP, silenced), JoinedGroup(OTHER, silenced)]
        made.transport.member_failures = [ActionRefused("get_group_member_info", retcode=1200, wording="no")] * 2
        made.mutes.take(muted_in(GROUP, -1, user=0))
        await made.connect()
        assert made.mutes.may_hold_in(GROUP) is held
        assert made.mutes.holds_in(GROUP) is (silenced is True)
        lifts = [one.conversation for one in made.told if isinstance(one, Muted) and one.seconds == 0]
        assert lifts == ([GROUP] if silenced is False else [])


async def test_of_many_groups_those_are_asked_about_where_it_matters() -> None:
    async with office() as made:
        made.transport.groups = [JoinedGroup(Conversation(BOT, "group", number)) for number in range(1, 100)]
        made.transport.groups += [JoinedGroup(GROUP), JoinedGroup(OTHER, is_silenced=True)]
        made.transport.groups += [JoinedGroup(HELD)]
        made.places.hear(said("hi"))
        made.mutes.take(muted_in(HELD))
        await made.connect()
        asked = [group for group, _ in made.transport.members_asked]
        assert (asked[:3], len(asked)) == ([HELD, OTHER, GROUP], MAX_GROUPS)


async def test_one_refusal_is_no_reason_to_ask_no_further_and_a_server_that_cannot_tell_is_left_alone() -> None:
    async with office() as made:
        made.transport.groups = [JoinedGroup(GROUP), JoinedGroup(OTHER)]
        made.transport.members[OTHER, BOT] = Member("member", made.clock.time + 60)
        made.transport.member_failures = [ActionRefused("get_group_member_info", retcode=1200, wording="no")]
        await made.connect()
        assert made.mutes.holds_in(OTHER)
        made.transport.member_failures = [ActionUnsupported("get_group_member_info", retcode=1404, wording="no")]
        made.mutes.forget(BOT)
        await made.settle()
        assert len(made.transport.members_asked) == 3
        made.mutes.forget(BOT)
        await until(lambda: len(made.transport.members_asked) == 5)


async def test_a_robot_is_known_after_it_was_asked_about_and_a_person_is_none() -> None:
    async with office() as made:
        made.transport.members |= {(GROUP, 5): Member(is_robot=True), (GROUP, 6): Member(is_robot=False)}
        for user in (6, 5):
            made.robots.meet(said("hi", user=user))
        await until(lambda: made.robots.known)
        assert list(made.robots.known) == [5]


@pytest.mark.parametrize("unsupported", [True, False])
async def test_a_server_that_does_not_know_robots_is_asked_no_more_until_the_next_connects(unsupported: bool) -> None:
    async with office() as made:
        if unsupported:
            made.transport.member_failures = [ActionUnsupported("get_group_member_info", retcode=1404, wording="no")]
        for user in (5, 6):
            made.robots.meet(said("hi", user=user))
            await made.settle()
        assert made.transport.members_asked == [(GROUP, 5)]
        await made.connect()
        made.robots.meet(said("hi", user=7))
        await made.settle()
        assert made.transport.members_asked == [(GROUP, 5), (GROUP, 7)]
