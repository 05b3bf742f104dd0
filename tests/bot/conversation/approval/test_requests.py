from __future__ import annotations

from bot.policy.approval import TOO_MANY
from frostagent.types.suspension import Allow, Deny
from tests.bot.desk import QUESTION, Desk, desk, waiting


async def test_numbers_count_on_and_stay_with_their_calls() -> None:
    async with desk() as at:
        run = at.wait(waiting("mail", "dig"))
        assert [pending.number for pending in run.pending] == [1, 2]
        assert at.requests.number(run) == run
        (third,) = at.wait(waiting("mail", run_id="t2")).pending
        assert third.number == 3


async def test_of_one_asker_three_requests_wait_and_more_are_denied_unasked() -> None:
    async with desk() as at:
        at.wait(waiting("a", "b", run_id="t1"))
        at.wait(waiting("c", "d", "e", run_id="t2"))
        await at.outbox.wait_idle()
        assert at.resumed == [("t2", {"c1": Deny(TOO_MANY), "c2": Deny(TOO_MANY)})]
        asked = [text for text in at.transport.texts if text.startswith("#A")]
        assert [text.split(" ")[1] for text in asked] == ["a", "b", "c"]
        at.wait(waiting("f", run_id="t3", asker=778))
        assert at.owner_says("同意 A1")
        at.wait(waiting("g", run_id="t4"))
        at.wait(waiting("h", run_id="t5"))
        await at.outbox.wait_idle()
        asked = [text for text in at.transport.texts if text.startswith("#A")]
        assert [text.split(" ")[1] for text in asked] == ["a", "b", "c", "f", "g"]
        assert at.resumed[-1] == ("t5", {"c0": Deny(TOO_MANY)})


async def test_a_stored_number_that_was_given_away_meanwhile_becomes_another_one() -> None:
    """The store could not be read at the start, and runs of this process waited before those of the last one."""
    before = Desk().requests.number(waiting("dig", run_id="t0"))
    async with desk() as at:
        at.wait(waiting("mail"))
        (pending,) = at.approvals.restore(before, QUESTION).pending
        assert pending.number == 2
        assert at.owner_says("同意 A2")
        assert at.resumed == [("t0", {"c0": Allow()})]


async def test_requests_that_ended_count_by_how() -> None:
    async with desk() as at:
        at.wait(waiting("a", "b", "c"))
        assert at.owner_says("同意 A1")
        assert at.owner_says("拒绝 A2 不行")
        at.approvals.close("t1")
        assert at.requests.ended == {"allowed": 1, "denied": 1, "withdrawn": 1, "expired": 0}
        at.wait(waiting("d", run_id="t2"))
        at.clock.time += 1e6
        at.approvals.expire("t2")
        assert at.requests.ended["expired"] == 1
