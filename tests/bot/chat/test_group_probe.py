from __future__ import annotations

from bot.chat.group_probe import ABREAST, AGAIN, MAX_GROUPS, TRIES
from bot.chat.mutes import UNCERTAIN_MUTE
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered, ActionUnsupported, NotConnected
from bot.core.events import Connected, MemberChanged, Muted, Role
from bot.core.ports import JoinedGroup, Member
from frostagent.types.errors import BotError
from tests.bot.chat.office import office
from tests.bot.hall import became
from tests.cases import each_case
from tests.fakes import BOT, GROUP, said, until

OTHERS = 20002
OTHER, HELD = Conversation(BOT, "group", 4343), Conversation(BOT, "group", 4444)
MUTED_TILL = 1_700_000_060.0


def muted_in(where: Conversation, seconds: int = 60, *, user: int = BOT) -> Muted:
    return Muted(self_id=BOT, time=0.0, conversation=where, user_id=user, operator_id=1, seconds=seconds)


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


@each_case(("role", "holds"), [("member", True), ("unknown", True), ("admin", False), ("owner", False)])
async def test_a_silenced_group_is_believed_for_a_while_unless_one_may_speak_there(role: Role, holds: bool) -> None:
    async with office() as made:
        made.transport.groups = [JoinedGroup(GROUP, is_silenced=True)]
        made.transport.members[GROUP, BOT] = Member(role)
        await made.connect()
        assert made.mutes.holds_in(GROUP) is holds
        made.clock.time += UNCERTAIN_MUTE
        assert not made.mutes.holds_in(GROUP)


@each_case(
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
        made.mutes.apply(muted_in(GROUP, -1, user=0))
        made.mutes.doubt(GROUP)
        await until(lambda: made.transport.members_asked)
        await made.settle()
        assert made.told == ([(GROUP, answer)] if isinstance(answer, Member) else [])
        assert made.mutes.holds_in(GROUP) is holds
        assert made.transport.members_asked == [(GROUP, BOT)]


@each_case(
    ("event", "answer", "holds"),
    [
        (muted_in(GROUP), Member("member"), True),
        (muted_in(GROUP, 0), Member("member", MUTED_TILL), False),
        (muted_in(GROUP, 0, user=0), Member("member", MUTED_TILL), False),
        (muted_in(GROUP, -1, user=0), Member("admin"), True),
        (became("promoted"), Member("member", MUTED_TILL), False),
        (became("demoted"), Member("admin", MUTED_TILL), False),
        (Connected(self_id=BOT, time=0.0), Member("member", MUTED_TILL), False),
    ],
)
async def test_an_answer_from_before_an_event_says_nothing_against_it_and_is_asked_for_again(
    event: Muted | MemberChanged | Connected, answer: Member, holds: bool
) -> None:
    async with office() as made:
        server, server.away = made.transport, {BOT, GROUP}
        server.members[GROUP, BOT] = answer
        made.mutes.doubt(GROUP)
        await until(lambda: server.open == [GROUP])
        match event:
            case Muted():
                made.mutes.apply(event)
            case MemberChanged():
                made.mutes.change_role(event)
            case Connected():
                made.mutes.forget(BOT)
        server.answer()
        await until(lambda: server.asked.count(GROUP) == 2)
        assert made.told == []
        assert made.mutes.holds_in(GROUP) is holds
        server.members[GROUP, BOT] = latest = Member("member", MUTED_TILL)
        server.answer()
        await made.settle()
        assert made.told == [(GROUP, latest)]
        assert made.mutes.holds_in(GROUP)


async def test_an_event_elsewhere_makes_no_answer_old() -> None:
    async with office() as made:
        server, server.away = made.transport, {GROUP}
        made.mutes.doubt(GROUP)
        await until(lambda: server.open)
        made.mutes.apply(muted_in(OTHER))
        made.mutes.forget(OTHERS)
        server.answer()
        await made.settle()
        assert made.told == [(GROUP, Member())]


@each_case("silenced", [True, False])
async def test_what_groups_say_of_a_mute_for_everybody_is_overtaken_by_an_event_too(silenced: bool) -> None:
    async with office() as made:
        server, server.away = made.transport, {BOT}
        server.groups = [JoinedGroup(GROUP, silenced), JoinedGroup(OTHER, silenced)]
        made.mutes.apply(muted_in(OTHER, -1, user=0))
        made.mutes.forget(BOT)
        await until(lambda: server.open)
        made.mutes.apply(muted_in(GROUP, 0 if silenced else -1, user=0))
        server.answer()
        await made.settle()
        assert [one.conversation for one in made.told if isinstance(one, Muted)] == [OTHER]
        assert made.mutes.holds_in(GROUP) is not silenced
        assert made.mutes.may_hold_in(OTHER) is silenced


@each_case(("silenced", "held"), [(False, False), (None, True), (True, True)])
async def test_a_mute_of_the_whole_group_that_was_lifted_meanwhile_holds_nothing_back_any_more(
    silenced: bool | None, held: bool
) -> None:
    async with office() as made:
        made.transport.groups = [JoinedGroup(GROUP, silenced), JoinedGroup(OTHER, silenced)]
        made.transport.member_failures = [ActionRefused("get_group_member_info", retcode=1200, wording="no")] * 2
        made.mutes.apply(muted_in(GROUP, -1, user=0))
        await made.connect()
        assert made.mutes.may_hold_in(GROUP) is held
        assert made.mutes.holds_in(GROUP) is (silenced is True)
        lifts = [one.conversation for one in made.told if isinstance(one, Muted) and one.seconds == 0]
        assert lifts == ([GROUP] if silenced is False else [])


@each_case(
    ("all_until", "me_until", "holds"),
    [
        (0.0, 0.0, False),
        (4294967295.0, 0.0, True),
        (1_699_999_999.0, 0.0, False),
        (0.0, MUTED_TILL, True),
        (None, None, False),
    ],
)
async def test_llbot_says_in_its_groups_until_when_nobody_or_the_bot_may_speak(
    all_until: float | None, me_until: float | None, holds: bool
) -> None:
    async with office() as made:
        group = JoinedGroup(GROUP, None, silenced_until=all_until, muted_until=me_until)
        made.transport.groups = [group]
        refused = ActionRefused("get_group_member_info", retcode=1200, wording="no")
        made.transport.member_failures = [refused]
        await made.connect()
        assert made.mutes.holds_in(GROUP) is holds
        assert made.mutes.is_own(GROUP) is bool(me_until)


async def test_of_many_groups_those_are_asked_about_where_it_matters() -> None:
    async with office() as made:
        made.transport.groups = [JoinedGroup(Conversation(BOT, "group", number)) for number in range(1, 100)]
        made.transport.groups += [JoinedGroup(GROUP), JoinedGroup(OTHER, is_silenced=True)]
        made.transport.groups += [JoinedGroup(HELD)]
        made.places.note_message(said("hi"))
        made.mutes.apply(muted_in(HELD))
        await made.connect()
        asked = [group for group, _ in made.transport.members_asked]
        assert (asked[:3], len(asked)) == ([HELD, OTHER, GROUP], MAX_GROUPS)


async def test_one_refusal_is_no_reason_to_ask_no_further_and_a_server_that_cannot_tell_is_left_alone() -> None:
    async with office() as made:
        server = made.transport
        server.groups = [JoinedGroup(Conversation(BOT, "group", number)) for number in range(1, 20)]
        server.groups.append(JoinedGroup(OTHER))
        server.members[OTHER, BOT] = Member("member", made.clock.time + 60)
        server.member_failures = [ActionRefused("get_group_member_info", retcode=1200, wording="no")]
        await made.connect()
        await until(lambda: made.mutes.holds_in(OTHER))
        assert len(server.members_asked) == 20
        unsupported = ActionUnsupported("get_group_member_info", retcode=1404, wording="no")
        server.member_failures = [unsupported] * ABREAST
        made.mutes.forget(BOT)
        await made.clock.advance(0)
        assert len(server.members_asked) == 20 + ABREAST
        await made.connect()
        assert len(server.members_asked) == 20 + ABREAST + 20


@each_case("away", [[OTHERS], [Conversation(OTHERS, "group", number) for number in range(ABREAST)]])
async def test_no_account_waits_for_the_answers_of_anothers_server(away: list[int | Conversation]) -> None:
    async with office() as made:
        server, server.away = made.transport, set(away)
        server.groups = [JoinedGroup(where) for where in away if isinstance(where, Conversation)]
        made.mutes.forget(OTHERS)
        await until(lambda: server.open == away)
        server.members[GROUP, BOT] = Member("admin")
        made.take(muted_in(GROUP, -1, user=0))
        await until(lambda: not made.mutes.holds_in(GROUP))
        assert server.open == away


async def test_no_group_waits_for_the_answer_about_another_and_a_server_is_not_asked_everything_at_once() -> None:
    async with office() as made:
        server, places = made.transport, [Conversation(BOT, "group", number) for number in range(1, 20)]
        server.groups, server.away = [JoinedGroup(where) for where in places], {places[0], places[7], places[8]}
        made.mutes.forget(BOT)
        await until(lambda: len(server.asked) == 1 + len(places) and len(made.told) == len(places) - 3)
        assert server.open == [places[0], places[7], places[8]]
        assert server.most == ABREAST
        assert [one[0] for one in made.told if not isinstance(one, Muted)] == [
            where for where in places if where not in server.away
        ]


async def test_what_was_not_answered_is_asked_again_after_a_while_and_nothing_else() -> None:
    async with office() as made:
        server = made.transport
        server.groups, server.away = [JoinedGroup(GROUP), JoinedGroup(OTHER)], {GROUP}
        made.mutes.forget(BOT)
        await until(lambda: server.open == [GROUP] and len(server.asked) == 3)
        server.answer(ActionUnanswered("too slow"))
        await made.clock.advance(AGAIN - 1)
        assert server.asked == [BOT, GROUP, OTHER]
        server.away = set()
        server.members[GROUP, BOT] = Member("member", made.clock.time + 60)
        await made.clock.advance(1)
        assert server.asked == [BOT, GROUP, OTHER, GROUP]
        assert made.mutes.holds_in(GROUP)
        await made.clock.advance(AGAIN)
        assert server.asked == [BOT, GROUP, OTHER, GROUP]


async def test_groups_that_were_not_told_are_asked_for_again() -> None:
    async with office() as made:
        server = made.transport
        server.groups, server.away = [JoinedGroup(GROUP)], {BOT}
        made.mutes.forget(BOT)
        await until(lambda: server.open)
        server.answer(ActionUnanswered("too slow"))
        server.away = set()
        await made.clock.advance(AGAIN)
        assert server.asked == [BOT, BOT, GROUP]


async def test_who_never_answers_is_left_alone_in_the_end() -> None:
    async with office() as made:
        server, server.away = made.transport, {GROUP}
        made.mutes.doubt(GROUP)
        for times in range(1, TRIES + 1):
            await made.settle()
            assert server.asked == [GROUP] * times
            server.answer(ActionUnanswered("too slow"))
            await made.clock.advance(AGAIN)
        await made.clock.advance(10 * AGAIN)
        assert server.asked == [GROUP] * TRIES


@each_case("error", [NotConnected("gone"), ActionRefused("get_group_member_info", retcode=1, wording="")])
async def test_what_is_refused_or_has_no_connection_is_not_asked_again(error: BotError) -> None:
    async with office() as made:
        made.transport.member_failures = [error]
        made.mutes.doubt(GROUP)
        await made.clock.advance(10 * AGAIN)
        assert made.transport.asked == [GROUP]


async def test_an_account_that_connects_again_waits_for_no_question_about_its_groups() -> None:
    async with office() as made:
        server, places = made.transport, [Conversation(BOT, "group", number) for number in range(ABREAST)]
        server.groups, server.away = [JoinedGroup(where) for where in places], set(places)
        for times in (1, 2, 3):
            made.mutes.forget(BOT)
            await made.settle()
            assert server.asked == [BOT, *places] * times
            assert server.open == places


@each_case("unknown", [BOT, GROUP])
@each_case("answered", [True, False])
async def test_a_new_reason_to_ask_waits_for_no_question_from_before(
    unknown: int | Conversation, answered: bool
) -> None:
    async with office() as made:
        server, server.away = made.transport, {unknown}

        def ask() -> None:
            made.mutes.forget(unknown) if isinstance(unknown, int) else made.mutes.doubt(unknown)

        ask()
        await until(lambda: server.open)
        if answered:
            server.answer(ActionUnanswered("its connection closed"))
            await made.settle()
        server.away = set()
        ask()
        await until(lambda: len(server.asked) == 2)
        await made.clock.advance(10 * AGAIN)
        server.answer()
        await made.settle()
        assert server.asked == [unknown, unknown]
        assert not server.open


async def test_a_robot_is_known_after_it_was_asked_about_and_a_person_is_none() -> None:
    async with office() as made:
        made.transport.members |= {(GROUP, 5): Member(is_robot=True), (GROUP, 6): Member(is_robot=False)}
        for user in (6, 5):
            made.robots.meet(said("hi", user=user))
        await until(lambda: made.robots.known)
        assert list(made.robots.known) == [5]


async def test_no_account_waits_to_hear_of_robots_of_anothers_server_nor_any_mute_for_that() -> None:
    async with office() as made:
        server, away = made.transport, Conversation(OTHERS, "group", 4343)
        server.away = {away}
        server.members[GROUP, 5] = Member(is_robot=True)
        for user in range(10, 11 + ABREAST):
            server.members[away, user] = Member(is_robot=False)
            made.robots.meet(said("hi", user=user, where=away))
        made.robots.meet(said("hi", user=5))
        await until(lambda: made.robots.known)
        made.mutes.doubt(muted := Conversation(OTHERS, "group", 4444))
        await until(lambda: made.told)
        assert server.asked == [away, GROUP, muted]  # and one person after the other
        assert server.open == [away]
        server.away = set()
        server.answer()
        await until(lambda: len(server.asked) == 3 + ABREAST)


@each_case("unsupported", [True, False])
async def test_a_server_that_does_not_know_robots_is_asked_no_more_until_the_next_connects(unsupported: bool) -> None:
    async with office() as made:
        if unsupported:
            made.transport.member_failures = [ActionUnsupported("get_group_member_info", retcode=1404, wording="no")]
        for user in (5, 6):
            made.robots.meet(said("hi", user=user))
        await made.settle()
        made.robots.meet(said("hi", user=8))
        await made.settle()
        assert made.transport.members_asked == [(GROUP, 5)]
        await made.connect()
        made.robots.meet(said("hi", user=7))
        await made.settle()
        assert made.transport.members_asked == [(GROUP, 5), (GROUP, 7)]
