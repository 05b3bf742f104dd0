from __future__ import annotations

import hashlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bot.core.codec import Unreadable
from bot.core.conversation import NOWHERE, Conversation
from bot.core.run_ids import number_of, place_of, read_run, write_run
from frostagent.types.messages import ToolCall
from frostagent.types.runs import Asker
from frostagent.types.suspension import digest_call
from tests.cases import each_case
from tests.data import journal
from tests.fakes import GROUP, tool_context

NUMBERS = st.integers(0, 2**63 - 1)


@given(st.builds(Conversation, NUMBERS, st.sampled_from(["group", "private"]), NUMBERS), NUMBERS)
def test_what_goes_into_the_engine_comes_out_as_it_was(where: Conversation, user_id: int) -> None:
    asker = Asker(str(user_id))
    context = replace(tool_context(), conversation=str(where), asker=asker)
    assert (place_of(context), number_of(context.asker)) == (where, user_id)
    left = read_run(write_run(replace(journal.RUN, conversation=str(where), asker=asker), where))
    assert (left.conversation, left.asker) == (str(where), asker)


@each_case("session", ["", "ann", "1:channel:2"])
def test_in_a_session_of_the_library_a_tool_is_in_no_chat(session: str) -> None:
    context = replace(tool_context(), conversation=session, asker=Asker("ann"))
    assert (place_of(context), number_of(context.asker)) == (NOWHERE, 0)


def test_a_suspended_run_is_stored_with_numbers_as_ever() -> None:
    stored = (journal.HERE / "run.json").read_text("utf-8")
    assert read_run(stored) == journal.RUN
    there = Conversation(10001, "private", 777, via_group=4242)
    old, new = json.loads(stored), json.loads(write_run(journal.RUN, there))
    assert new["conversation"] == old["conversation"]
    assert new["asker"]["user_id"] == old["asker"]["user_id"] == 777
    assert list(new)[:3] == list(old)[:3]


def test_a_wait_that_was_bound_to_a_number_is_bound_to_it_still() -> None:
    bound = json.dumps(["t1", 777, "c1", "mail", "{}"])
    mail = ToolCall("c1", "mail", "{}")
    assert digest_call(mail, run_id="t1", asker="777") == hashlib.sha256(bound.encode()).hexdigest()
    others = {digest_call(mail, run_id="t1", asker=asker) for asker in ("777", "", "ann", "7" * 5000)}
    assert len(others) == 4


@each_case("change", [{"conversation": "10001:group:4242"}, {"asker": {"user_id": "777"}}, {"messages": 1}])
def test_what_is_not_of_that_form_is_unreadable(change: dict[str, object]) -> None:
    stored = msgspec.json.decode(write_run(journal.RUN, GROUP)) | change
    with pytest.raises(Unreadable):
        read_run(msgspec.json.encode(stored).decode())
