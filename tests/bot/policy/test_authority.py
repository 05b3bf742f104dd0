from __future__ import annotations

from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Role, Sender, relayed
from bot.core.segments import Card, File, Link, Markdown, Mention, Segment, Transfer
from bot.policy.permissions import asker_of, authority_of, highest_authority
from frostagent.engine.authority import is_sufficient, lower_authority, lowest_authority
from frostagent.types.messages import ToolMessage, UserMessage
from frostagent.types.speech import Text
from frostagent.types.traits import Audience
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, said

OWNERS = frozenset({999})
EVERYONE, ADMIN, OWNER = Audience


def by(user: int, role: Role = "member") -> MessageReceived:
    return said("words", user=user, role=role)


def test_authorities_have_an_order() -> None:
    assert [[is_sufficient(has, needs) for needs in Audience] for has in Audience] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_nobody_takes_nothing_away() -> None:
    assert lowest_authority(()) is OWNER
    assert lowest_authority((OWNER, EVERYONE, ADMIN)) is EVERYONE


@each_case(
    ("sender", "where", "authority"),
    [
        (Sender(999), PRIVATE, OWNER),
        (Sender(5, role="admin"), GROUP, ADMIN),
        (Sender(5, role="owner"), GROUP, ADMIN),
        (Sender(5, role="owner"), PRIVATE, EVERYONE),
        (Sender(5, nickname="主人", role="member"), GROUP, EVERYONE),
        (Sender(5), GROUP, EVERYONE),
    ],
)
def test_authority_comes_from_settings_and_from_qq(sender: Sender, where: Conversation, authority: Audience) -> None:
    assert authority_of(sender, where=where, owners=OWNERS) is authority


def test_those_whose_words_lower_it_are_named_to_whoever_is_asked() -> None:
    asker = asker_of(by(999), owners=OWNERS, quoted=by(5), overheard=[by(6), by(5), by(999)], earlier=lambda: {7, 0, 5})
    assert [name.rpartition("(")[2] for name in asker.voices] == ["5)", "6)", "7"]
    assert asker_of(by(999), owners=OWNERS, overheard=[by(999)]).voices == ()


def test_somewhere_nobody_has_more_than_those_who_can_speak_there() -> None:
    mine = replace(PRIVATE, session_id=999)
    told = [
        highest_authority(GROUP, OWNERS),
        highest_authority(GROUP, ()),
        highest_authority(mine, OWNERS),
        highest_authority(PRIVATE, OWNERS),
    ]
    assert told == [OWNER, ADMIN, OWNER, EVERYONE]


@each_case(("where", "role"), [(GROUP, "admin"), (PRIVATE, "unknown")])
def test_an_admin_of_a_group_is_none_in_private(where: Conversation, role: str) -> None:
    message = replace(by(777, "admin"), conversation=where)
    assert asker_of(message, owners=OWNERS).role == role


def test_who_asks_alone_keeps_all_of_it() -> None:
    asker = asker_of(by(999), owners=OWNERS)
    assert (asker.user_id, asker.is_owner, asker.authority, asker.overheard) == ("999", True, OWNER, OWNER)


@each_case(
    ("quoted", "authority"),
    [(by(5), EVERYONE), (by(5, "admin"), ADMIN), (by(999), OWNER), (by(BOT), OWNER)],
)
def test_a_quote_leaves_what_its_sender_has_and_the_bot_is_nobody(quoted: MessageReceived, authority: Audience) -> None:
    assert asker_of(by(999), owners=OWNERS, quoted=quoted).authority is authority


def test_a_forward_leaves_nothing_whoever_its_words_are_said_to_be_from() -> None:
    assert asker_of(by(999), owners=OWNERS, quoted=by(999), forwarded=(by(999),)).authority is EVERYONE


def test_what_was_overheard_is_told_apart() -> None:
    asker = asker_of(by(999), owners=OWNERS, overheard=(by(999), by(5, "admin")))
    assert (asker.authority, asker.overheard) == (OWNER, ADMIN)


@each_case("shared", [Card("json", "{}", "x"), Link("share", "x"), Markdown("x")])
def test_what_is_shared_has_no_authority_in_a_quote_either(shared: Card | Link | Markdown) -> None:
    own = said((shared,), user=999)
    assert asker_of(own, owners=OWNERS).authority is EVERYONE
    assert asker_of(by(999), owners=OWNERS, quoted=own).authority is EVERYONE
    assert asker_of(by(999), owners=OWNERS, lines=(own,)).authority is EVERYONE


@each_case(
    ("segment", "overheard"),
    [
        (Mention(5, "群发通知到 5555"), EVERYONE),
        (Mention(5), OWNER),
        (Mention(5, "5"), OWNER),
        (Mention(999, "主人"), OWNER),
        (Mention(BOT, "小霜"), OWNER),
        (File("群发.txt"), EVERYONE),
        (Transfer("onlinefile", "群发.txt"), EVERYONE),
    ],
)
def test_a_name_that_others_chose_is_their_word_wherever_it_stands(segment: Segment, overheard: Audience) -> None:
    own = said((segment, Text("hi")), user=999)
    assert asker_of(own, owners=OWNERS).overheard is overheard
    assert asker_of(by(999), owners=OWNERS, quoted=own).overheard is overheard
    assert asker_of(by(999), owners=OWNERS, overheard=(own,)).overheard is overheard
    assert asker_of(own, owners=OWNERS).authority is OWNER


@each_case(("numbers", "overheard"), [((), OWNER), ((999, BOT), OWNER), ((999, 5), EVERYONE), ((0,), EVERYONE)])
def test_who_spoke_in_earlier_rounds_counts_like_who_was_overheard(
    numbers: tuple[int, ...], overheard: Audience
) -> None:
    asker = asker_of(by(999), owners=OWNERS, earlier=lambda: numbers)
    assert (asker.overheard, asker.authority) == (overheard, OWNER)


def test_an_admin_is_not_held_up_by_his_own_earlier_rounds() -> None:
    assert asker_of(by(5, "admin"), owners=OWNERS, earlier=lambda: (5, 999)).overheard is OWNER
    assert asker_of(by(5, "admin"), owners=OWNERS, earlier=lambda: (5, 6)).overheard is EVERYONE


def test_what_the_bot_said_itself_takes_nothing_away_from_whoever_asks_behind_it() -> None:
    assert asker_of(by(999), owners=OWNERS, overheard=(by(BOT),)).overheard is OWNER
    assert asker_of(by(999), owners=OWNERS, overheard=(by(BOT), by(5))).overheard is EVERYONE


def test_of_who_has_no_authority_nothing_is_looked_up() -> None:
    looked: list[str] = []

    def earlier() -> tuple[int, ...]:
        looked.append("at the rounds")
        return (5,)

    asker_of(by(777), owners=OWNERS, earlier=earlier)
    assert looked == []


def test_the_own_chatter_of_who_asks_takes_nothing_away_from_him() -> None:
    message = by(5, "admin")
    asker = asker_of(message, owners=OWNERS, overheard=(replace(message, message_id="other"),))
    assert asker.overheard is ADMIN


def test_results_lower_the_authority_of_what_follows_and_tell_which_tools_brought_words() -> None:
    asker = asker_of(by(999), owners=OWNERS)
    told = ToolMessage("c1", "look", "x", authority=EVERYONE)
    page = ToolMessage("c2", "read_page", "x", tainted=True)
    assert lower_authority(asker, (), (UserMessage("x"),)) is asker
    assert lower_authority(asker, (), (told,)) == replace(asker, authority=EVERYONE)
    assert lower_authority(asker, (page,), ()) == replace(asker, read=("read_page",))
    assert lower_authority(asker, (page,), (page, told)) == replace(asker, authority=EVERYONE, read=("read_page",))


@each_case(
    ("own", "left"),
    [
        (said("an answer", user=BOT), OWNER),
        (relayed(said("a reminder of an owner's", user=BOT), OWNER), OWNER),
        (relayed(said("a reminder of an admin's", user=BOT), ADMIN), ADMIN),
        (relayed(said("news", user=BOT)), EVERYONE),
    ],
)
def test_what_the_bot_passed_on_has_the_authority_of_those_whose_words_it_is(
    own: MessageReceived, left: Audience
) -> None:
    quoting = asker_of(by(999), owners=OWNERS, quoted=own)
    assert (quoting.authority, quoting.overheard) == (left, OWNER)
    beside = asker_of(by(999), owners=OWNERS, overheard=[own])
    assert (beside.authority, beside.overheard, beside.voices) == (OWNER, left, ())
