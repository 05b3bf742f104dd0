from __future__ import annotations

from bot.chat.group_admin import NOT_ABOVE, NOT_ASKER, NOT_BOT, NOT_EQUALS, NOT_ITSELF, Roles, against
from bot.core.group_admin import GroupAct, Mute, Pin, Recall, SetCard
from tests.cases import each_case

MUTE, CARD, RECALL, PIN = Mute(5, 60), SetCard(5, "x"), Recall("1"), Pin("1")
ALL = (MUTE, CARD, RECALL, PIN)


@each_case("act", ALL)
def test_the_roles_of_bot_and_asker_must_reach(act: GroupAct) -> None:
    assert against(act, Roles("admin", "admin", "member")) == ""
    assert against(act, Roles("admin", "member", "member", is_owner=True)) == ""
    assert against(act, Roles("admin", "member", "member")) == NOT_ASKER
    assert against(act, Roles("admin", "unknown", "member")) == NOT_ASKER
    assert against(act, Roles("member", "admin", "member")) == NOT_BOT
    assert against(act, Roles("unknown", "owner", "member")) == NOT_BOT


@each_case("act", [MUTE, CARD, RECALL])
def test_nothing_is_done_to_whom_the_bot_or_the_asker_is_not_above(act: GroupAct) -> None:
    assert against(act, Roles("admin", "owner", "admin")) == NOT_ABOVE
    assert against(act, Roles("owner", "admin", "admin")) == NOT_EQUALS
    assert against(act, Roles("owner", "owner", "admin")) == ""
    assert against(act, Roles("owner", "member", "admin", is_owner=True)) == ""
    assert against(act, Roles("owner", "admin", "admin", is_askers=True)) == ""
    assert against(PIN, Roles("admin", "admin", "owner")) == ""


def test_the_bots_own_message_and_card_need_no_right_of_the_bot_and_it_mutes_not_itself() -> None:
    own = Roles("member", "admin", "member", is_bots=True)
    assert [against(act, own) for act in ALL] == [NOT_ITSELF, "", "", NOT_BOT]
