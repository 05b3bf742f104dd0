from __future__ import annotations

from msgspec.structs import replace

from bot.chat.mutes import MAX_MUTE, MAX_PLACES, UNCERTAIN_MUTE, Mutes
from bot.core.conversation import Conversation
from bot.core.events import Muted, Role
from bot.core.ports import Member
from tests.cases import each_case
from tests.fakes import BOT, GROUP, ManualClock

OTHER = Conversation(BOT, "group", 4343)


def mute(seconds: int, *, user: int = BOT) -> Muted:
    return Muted(self_id=BOT, time=0.0, conversation=GROUP, user_id=user, operator_id=1, seconds=seconds)


def suspect(mutes: Mutes) -> None:
    mutes.suspect(GROUP, since=mutes.news)


@each_case(
    ("event", "lasts"),
    [
        (mute(60), 60),
        (mute(10**9), MAX_MUTE),
        (mute(-1), UNCERTAIN_MUTE),
        (mute(3600, user=0), UNCERTAIN_MUTE),
    ],
)
def test_a_mute_holds_for_its_time_and_one_without_a_certain_end_not_long(event: Muted, lasts: float) -> None:
    clock = ManualClock()
    mutes = Mutes(clock=clock)
    mutes.apply(event)
    clock.time += lasts - 1
    assert mutes.holds_in(GROUP)
    assert mutes.until(GROUP) == clock.time + 1
    clock.time += 2
    assert not mutes.holds_in(GROUP)


def test_a_mute_of_somebody_else_is_none_and_a_lift_ends_one() -> None:
    mutes = Mutes(clock=ManualClock())
    mutes.apply(mute(60, user=5))
    assert not mutes.holds_in(GROUP)
    mutes.apply(mute(60))
    mutes.apply(mute(0, user=5))
    assert mutes.holds_in(GROUP)
    mutes.apply(mute(0))
    assert not mutes.holds_in(GROUP)
    assert mutes.until(GROUP) == 0


@each_case("user", [0, BOT])
def test_a_lift_for_everybody_is_none_for_the_account_itself_nor_the_other_way_round(user: int) -> None:
    mutes = Mutes(clock=ManualClock())
    mutes.apply(mute(-1, user=0))
    mutes.apply(mute(60))
    mutes.apply(mute(0, user=user))
    assert mutes.holds_in(GROUP)
    assert mutes.is_own(GROUP) is (user == 0)
    mutes.apply(mute(0, user=BOT - user))
    assert not mutes.may_hold_in(GROUP)


async def test_a_suspicion_holds_for_a_while_and_has_somebody_ask_once() -> None:
    clock = ManualClock()
    mutes = Mutes(clock=clock)
    mutes.suspect(Conversation(BOT, "private", 777), since=mutes.news)
    mutes.apply(mute(60))
    suspect(mutes)  # it is known
    mutes.apply(mute(0))
    assert not mutes.may_hold_in(GROUP)
    suspect(mutes)
    suspect(mutes)
    clock.time += UNCERTAIN_MUTE - 1
    assert mutes.holds_in(GROUP)
    clock.time += 2
    assert not mutes.holds_in(GROUP)
    mutes.forget(BOT)
    assert [await mutes.next_unknown(), await mutes.next_unknown()] == [GROUP, BOT]


@each_case(
    ("member", "lasts"),
    [
        (Member(role="member", muted_until=1060.0), 60.0),  # its own, and no other
        (Member(role="member", muted_until=0.0), UNCERTAIN_MUTE),  # then everybody's
        (Member(role="admin", muted_until=0.0), 0.0),  # nor that: it was refused for something else
        (Member(role="member", muted_until=None), UNCERTAIN_MUTE),  # the server does not say
    ],
)
def test_what_the_server_says_of_a_suspicion_is_believed(member: Member, lasts: float) -> None:
    clock = ManualClock(1000.0)
    mutes = Mutes(clock=clock)
    suspect(mutes)
    mutes.learn(GROUP, member)
    clock.time += lasts - 1
    assert mutes.holds_in(GROUP) is (lasts > 0)
    clock.time += 2
    assert not mutes.holds_in(GROUP)


def test_who_may_speak_again_is_suspected_no_more() -> None:
    mutes = Mutes(clock=ManualClock(1000.0))
    suspect(mutes)
    mutes.apply(mute(0))
    mutes.learn(GROUP, Member(role="member", muted_until=0.0))
    assert not mutes.may_hold_in(GROUP)
    suspect(mutes)
    mutes.forget(BOT)
    mutes.learn(GROUP, Member(role="member", muted_until=0.0))
    assert not mutes.may_hold_in(GROUP)


def test_a_suspicion_that_is_over_tells_nothing_of_the_whole_group() -> None:
    clock = ManualClock(1000.0)
    mutes = Mutes(clock=clock)
    suspect(mutes)
    clock.time += UNCERTAIN_MUTE
    mutes.learn(GROUP, Member(role="member", muted_until=0.0))
    assert not mutes.may_hold_in(GROUP)


@each_case("news", ["lift", "forgotten", "elsewhere", "none"])
async def test_a_suspicion_from_before_a_newer_word_is_none(news: str) -> None:
    clock = ManualClock()
    mutes = Mutes(clock=clock)
    mutes.apply(mute(60))
    since = mutes.news
    match news:
        case "lift":
            mutes.apply(mute(0))
        case "forgotten":
            mutes.forget(BOT)
        case "elsewhere":
            mutes.apply(replace(mute(60), conversation=OTHER))
        case _:
            pass
    clock.time += 60
    mutes.suspect(GROUP, since=since)
    assert mutes.holds_in(GROUP) is (news in ("elsewhere", "none"))
    mutes.doubt(OTHER)
    assert await mutes.next_unknown() == {"lift": OTHER, "forgotten": BOT}.get(news, GROUP)


@each_case("user", [0, BOT])
@each_case("answer", [None, Member("member", None), Member("member"), Member("member", 1_700_000_060.0)])
def test_a_lift_ends_what_was_suspected_whatever_mute_it_was(user: int, answer: Member | None) -> None:
    mutes = Mutes(clock=ManualClock())
    suspect(mutes)
    if answer is not None:
        mutes.learn(GROUP, answer)
    mutes.apply(mute(0, user=user))
    known = {0: Member("member", 1_700_000_060.0), BOT: Member("member")}[user]
    assert mutes.may_hold_in(GROUP) is (answer == known)  # an answer tells which it is


def test_a_mute_of_the_whole_group_is_what_was_suspected() -> None:
    mutes = Mutes(clock=ManualClock())
    suspect(mutes)
    mutes.apply(mute(-1, user=0))
    assert mutes.holds_in(GROUP)
    assert not mutes.is_own(GROUP)
    mutes.apply(mute(0, user=0))
    assert not mutes.may_hold_in(GROUP)


@each_case("role", ["member", "admin"])
@each_case(
    ("muted_until", "lasts"),
    [
        (1_699_996_460.0, 60.0),  # its clock is an hour behind ours
        (1_700_000_000.0, 60.0),
        (1_700_000_030.0, 30.0),
        (1_700_000_090.0, 90.0),
        (0.0, 0.0),  # by whatever clock
        (None, 60.0),
    ],
)
def test_a_mute_that_was_told_of_is_not_over_for_the_clock_of_the_server(
    role: Role, muted_until: float | None, lasts: float
) -> None:
    clock = ManualClock()
    begin = clock.time
    mutes = Mutes(clock=clock)
    mutes.apply(mute(60))
    mutes.learn(GROUP, Member(role, muted_until))
    assert mutes.until(GROUP) == (begin + lasts if lasts else 0)


@each_case("told", [False, True])
def test_a_time_that_passed_ends_a_mute_that_the_server_itself_told_of_and_one_from_before(told: bool) -> None:
    mutes = Mutes(clock=ManualClock())
    if told:
        mutes.learn(GROUP, Member("member", 1_700_000_060.0))
    else:
        mutes.apply(mute(60))
        mutes.forget(BOT)
    assert mutes.may_hold_in(GROUP)
    mutes.learn(GROUP, Member("member", 1_699_999_999.0))
    assert not mutes.may_hold_in(GROUP)


def test_a_mute_from_before_a_connection_holds_back_what_waits_for_it_and_no_new_question() -> None:
    clock = ManualClock()
    mutes = Mutes(clock=clock)
    mutes.apply(mute(60))
    mutes.forget(20002)
    assert mutes.holds_in(GROUP)
    assert not mutes.holds_in(Conversation(BOT, "group", 1))
    mutes.forget(BOT)
    assert not mutes.holds_in(GROUP)
    assert (mutes.until(GROUP), mutes.may_hold_in(GROUP)) == (clock.time + 60, True)
    clock.time += 60
    assert not mutes.may_hold_in(GROUP)


@each_case(("first", "second"), [(BOT, 0), (0, BOT)])
def test_a_mute_that_nobody_confirms_after_connections_is_not_believed_longer_than_one_without_an_end(
    first: int, second: int
) -> None:
    clock = ManualClock()
    mutes = Mutes(clock=clock)
    mutes.apply(mute(3600, user=first))
    mutes.forget(BOT)
    end = clock.time + UNCERTAIN_MUTE
    clock.time += 60
    mutes.forget(BOT)
    mutes.apply(mute(-1, user=second))
    assert mutes.until(GROUP) == clock.time + UNCERTAIN_MUTE
    mutes.forget(BOT)
    assert mutes.until(GROUP) == clock.time + UNCERTAIN_MUTE
    mutes.apply(mute(0, user=second))
    assert mutes.until(GROUP) == end


def muted_twice_before_the_connection(clock: ManualClock) -> Mutes:
    """Itself for 100 s, and with the whole group; the connection came 60 s ago."""
    mutes = Mutes(clock=clock)
    mutes.apply(mute(100))
    mutes.apply(mute(-1, user=0))
    mutes.forget(BOT)
    clock.time += 60
    return mutes


@each_case(("event", "until"), [(mute(0), 600), (mute(0, user=0), 100), (mute(50), 600), (mute(-1, user=0), 660)])
def test_what_is_told_after_a_connection_is_told_of_one_kind_of_mute(event: Muted, until: float) -> None:
    clock = ManualClock()
    begin = clock.time
    mutes = muted_twice_before_the_connection(clock)
    mutes.apply(event)
    assert mutes.until(GROUP) == begin + until
    assert mutes.holds_in(GROUP) is (event.seconds != 0)


@each_case(
    ("answer", "until", "holds"),
    [
        (Member("member", 1_700_000_200.5), 600, True),
        (Member("member"), 600, False),
        (Member("unknown"), 600, False),
        (Member("admin", 1_700_000_200.5), 200.5, True),
        (Member("owner"), 0, False),
        (Member("admin", None), 100, False),
        (Member("admin", 2e9), 60 + MAX_MUTE, True),
    ],
)
def test_an_answer_settles_what_it_tells_of(answer: Member, until: float, holds: bool) -> None:
    clock = ManualClock()
    begin = clock.time
    mutes = muted_twice_before_the_connection(clock)
    mutes.learn(GROUP, answer)
    assert mutes.until(GROUP) == (begin + until if until else 0)
    assert mutes.holds_in(GROUP) is holds


def test_of_thousands_of_groups_the_latest_mutes_are_known_before_and_after_a_connection() -> None:
    mutes = Mutes(clock=ManualClock())
    places = [Conversation(BOT, "group", number) for number in range(MAX_PLACES + 2)]
    for where in places[:-1]:
        mutes.apply(replace(mute(600), conversation=where))
    assert [mutes.may_hold_in(where) for where in (*places[:3], places[-2])] == [False, True, True, True]
    mutes.forget(BOT)
    mutes.apply(replace(mute(600), conversation=places[-1]))
    assert [mutes.may_hold_in(where) for where in (*places[:3], *places[-2:])] == [False, True, True, True, True]
    mutes.forget(BOT)
    assert [mutes.may_hold_in(where) for where in (*places[:3], *places[-2:])] == [False, False, True, True, True]


def test_of_thousands_of_groups_the_latest_news_are_known() -> None:
    mutes = Mutes(clock=ManualClock())
    places = [Conversation(BOT, "group", number) for number in range(MAX_PLACES + 1)]
    for where in places:
        mutes.apply(replace(mute(0), conversation=where))
    assert [mutes.is_overtaken(where, since=0) for where in (*places[:2], places[-1])] == [False, True, True]
    assert [mutes.is_overtaken(where, since=mutes.news - 1) for where in places[-2:]] == [False, True]


def test_when_a_mute_of_its_own_ends_is_told_by_the_clock_on_the_wall() -> None:
    class Apart(ManualClock):
        def now(self) -> float:
            return self.time + 1_000_000  # the other clock began with the machine

    mutes = Mutes(clock=(clock := Apart()))
    assert mutes.end(GROUP) == 0
    mutes.apply(mute(60))
    assert mutes.end(GROUP) == clock.now() + 60
    clock.time += 20
    assert mutes.end(GROUP) == clock.now() + 40
    mutes.apply(mute(60, user=0))  # nobody knows the end of that
    assert mutes.end(GROUP) == 0
    mutes.apply(mute(0, user=0))
    assert mutes.end(GROUP) == clock.now() + 40
    clock.time += 40
    assert mutes.end(GROUP) == 0


def test_of_what_is_only_suspected_no_end_is_told() -> None:
    mutes = Mutes(clock=ManualClock())
    suspect(mutes)
    assert (mutes.holds_in(GROUP), mutes.end(GROUP)) == (True, 0)
