from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from bot.core.conversation import Conversation
from bot.policy.permissions import may_mention_all, may_write_to
from frostagent.engine.authority import may_call, must_be_confirmed
from frostagent.types.runs import Asker
from frostagent.types.traits import Audience
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE

OTHER_GROUP = Conversation(BOT, "group", 5555)
OTHER_ACCOUNT = Conversation(20002, "group", 4242)
OWNER = Asker("999", "主人", is_owner=True)

FEW = st.integers(1, 3)
CONVERSATIONS = st.builds(Conversation, FEW, st.sampled_from(["group", "private"]), FEW)


@each_case("asker", [Asker("777"), Asker("777", "主人", role="owner"), Asker("777", role="admin"), Asker("999")])
@each_case("target", [PRIVATE, OTHER_GROUP, OTHER_ACCOUNT, Conversation(BOT, "private", 4242)])
def test_no_name_role_or_number_alone_reaches_another_conversation(asker: Asker, target: Conversation) -> None:
    assert not may_write_to(asker, active=GROUP, target=target)


@each_case("asker", [Asker("777"), OWNER])
def test_everybody_may_have_the_bot_speak_where_they_are(asker: Asker) -> None:
    assert may_write_to(asker, active=GROUP, target=GROUP)
    came_through = structs.replace(PRIVATE, via_group=4242)
    assert may_write_to(asker, active=came_through, target=PRIVATE)


def test_an_owner_reaches_any_conversation_of_the_same_account_and_no_other() -> None:
    assert may_write_to(OWNER, active=GROUP, target=OTHER_GROUP)
    assert may_write_to(OWNER, active=GROUP, target=PRIVATE)
    assert not may_write_to(OWNER, active=GROUP, target=OTHER_ACCOUNT)


@given(CONVERSATIONS, CONVERSATIONS, st.booleans())
def test_nobody_ever_reaches_another_account(active: Conversation, target: Conversation, is_owner: bool) -> None:
    allowed = may_write_to(Asker("1", is_owner=is_owner), active=active, target=target)
    assert not allowed or active.platform_id == target.platform_id
    assert not allowed or is_owner or active == target


@each_case(
    ("asker", "audiences"),
    [
        (Asker("777", role="member"), {"everyone"}),
        (Asker("777", role="admin"), {"everyone", "group_admin"}),
        (Asker("777", role="owner"), {"everyone", "group_admin"}),
        (OWNER, {"everyone", "group_admin", "owner"}),
    ],
)
def test_a_tool_is_for_those_it_names_and_always_for_owners(asker: Asker, audiences: set[str]) -> None:
    assert {audience for audience in Audience if may_call(asker, audience)} == audiences


def test_words_passed_on_take_away_what_their_speaker_may_not() -> None:
    asker = structs.replace(OWNER, authority=Audience.GROUP_ADMIN)
    assert [may_call(asker, audience) for audience in Audience] == [True, True, False]
    admin = Asker("777", role="admin", authority=Audience.EVERYONE)
    assert [may_call(admin, audience) for audience in Audience] == [True, False, False]


def test_words_merely_overheard_make_a_call_one_to_be_confirmed() -> None:
    asker = structs.replace(OWNER, overheard=Audience.GROUP_ADMIN)
    assert all(may_call(asker, audience) for audience in Audience)
    assert [must_be_confirmed(asker, audience) for audience in Audience] == [False, False, True]
    assert not any(must_be_confirmed(OWNER, audience) for audience in Audience)


@each_case("authority", [Audience.GROUP_ADMIN, Audience.EVERYONE])
def test_an_owner_reaches_no_other_conversation_with_words_of_others_that_he_passes_on(authority: Audience) -> None:
    asker = Asker("999", is_owner=True, authority=authority)
    assert not may_write_to(asker, active=GROUP, target=OTHER_GROUP)
    assert may_write_to(asker, active=GROUP, target=GROUP)


def test_what_was_overheard_does_not_keep_an_owner_from_asking_to_be_asked() -> None:
    assert may_write_to(Asker("999", is_owner=True, overheard=Audience.EVERYONE), active=GROUP, target=OTHER_GROUP)


@each_case(
    ("asker", "where", "may"),
    [
        (Asker("777"), GROUP, False),
        (Asker("777", "群主", role="member"), GROUP, False),
        (Asker("777", role="admin"), GROUP, True),
        (Asker("777", role="owner"), GROUP, True),
        (Asker("777", role="owner", authority=Audience.EVERYONE), GROUP, False),
        (OWNER, GROUP, True),
        (structs.replace(OWNER, authority=Audience.EVERYONE), GROUP, False),
        (OWNER, PRIVATE, False),
    ],
)
def test_everybody_is_mentioned_in_a_group_for_its_admins_and_for_owners(
    asker: Asker, where: Conversation, may: bool
) -> None:
    assert may_mention_all(asker, where=where) is may


def test_behind_what_a_tool_brought_only_what_is_for_everybody_and_stays_here_needs_no_word() -> None:
    asker = structs.replace(OWNER, read=("read_page",))
    here, beyond = ([must_be_confirmed(asker, each, goes_beyond=far) for each in Audience] for far in (False, True))
    assert (here, beyond) == ([False, True, True], [True, True, True])
