from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.events import Conversation
from bot.domain.run import Asker
from bot.policy.permission import may_write_to
from tests.fakes import BOT, GROUP, PRIVATE

OTHER_GROUP = Conversation(BOT, "group", 5555)
OTHER_ACCOUNT = Conversation(20002, "group", 4242)
OWNER = Asker(999, "主人", is_owner=True)

FEW = st.integers(1, 3)
CONVERSATIONS = st.builds(Conversation, FEW, st.sampled_from(["group", "private"]), FEW)


@pytest.mark.parametrize("asker", [Asker(777), Asker(777, "主人", role="owner"), Asker(777, role="admin"), Asker(999)])
@pytest.mark.parametrize("target", [PRIVATE, OTHER_GROUP, OTHER_ACCOUNT, Conversation(BOT, "private", 4242)])
def test_no_name_role_or_number_alone_reaches_another_conversation(asker: Asker, target: Conversation) -> None:
    assert not may_write_to(asker, active=GROUP, target=target)


@pytest.mark.parametrize("asker", [Asker(777), OWNER])
def test_everybody_may_have_the_bot_speak_where_they_are(asker: Asker) -> None:
    assert may_write_to(asker, active=GROUP, target=GROUP)
    came_through = dataclasses.replace(PRIVATE, via_group=4242)
    assert may_write_to(asker, active=came_through, target=PRIVATE)


def test_an_owner_reaches_any_conversation_of_the_same_account_and_no_other() -> None:
    assert may_write_to(OWNER, active=GROUP, target=OTHER_GROUP)
    assert may_write_to(OWNER, active=GROUP, target=PRIVATE)
    assert not may_write_to(OWNER, active=GROUP, target=OTHER_ACCOUNT)


@given(CONVERSATIONS, CONVERSATIONS, st.booleans())
def test_nobody_ever_reaches_another_account(active: Conversation, target: Conversation, is_owner: bool) -> None:
    allowed = may_write_to(Asker(1, is_owner=is_owner), active=active, target=target)
    assert not allowed or active.platform_id == target.platform_id
    assert not allowed or is_owner or active == target
