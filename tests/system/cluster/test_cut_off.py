"""A worker on a host of its own, cut off from the database, from the broker, or from both: dropped, not refused.

Another takes over meanwhile; whoever was cut off says nothing then, and nothing is lost, said twice or out of order.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from bot.policy.fallback_replies import ASK_AGAIN
from tests.apart import Host, host_apart, why_not
from tests.system.cluster.cluster import Cluster
from tests.system.processes.test_signals import ONE, PATIENCE, TWO, quoted

OUSTED = "this process ends at once: STORE_URL: the journal is in use"
LEFT = "standing by: the broker cannot be reached from here"


@pytest.fixture
async def host(cluster: Cluster) -> AsyncIterator[Host]:
    if reason := why_not():
        pytest.skip(reason)
    async with host_apart(cluster.reached) as host:
        yield host


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("lost", "ends"),
    [(("database",), OUSTED), (("broker",), LEFT), (("database", "broker"), OUSTED)],
    ids=["from the database", "from the broker", "from both"],
)
async def test_who_is_cut_off_says_nothing_while_another_has_taken_over(
    cluster: Cluster, host: Host, lost: tuple[str, ...], ends: str
) -> None:
    simulator, gate = cluster.simulator, cluster.gate
    asked = dict[str, int]()

    async def ask(token: str, group: int = ONE) -> None:
        asked[token] = await simulator.say(f"@bot plain#{token}", group_id=group)

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster.gateway())
        far_off = cluster.part_on(host.words, "worker", BOT_LANGUAGE="en", **cluster.settings_on(host))
        cut_off = await stack.enter_async_context(far_off)
        await cut_off.until("ready: over the broker")
        gate.opened.set()
        await ask("q0")
        await simulator.wait_delivered(1, timeout=PATIENCE)
        gate.opened.clear()
        gate.began.clear()
        waiting = await stack.enter_async_context(cluster.part("worker"))
        await waiting.until("standing by: other workers have all accounts")
        await ask("q1")
        await gate.began.wait()
        host.cut(*lost)
        gate.opened.set()  # what it would say is ready now
        await ask("q2", TWO)
        await waiting.until("ready: over the broker")
        await ask("q3")
        await simulator.wait_delivered(4, timeout=2 * PATIENCE)  # while it is still cut off
        host.heal(*lost)
        await cut_off.until(ends)
        await ask("q4", TWO)
        await simulator.wait_delivered(5, timeout=PATIENCE)
        waiting.send(signal.SIGTERM)
        assert await waiting.end() == 0
        if ends == LEFT:  # it had only stepped back: now it is the one that takes over
            await cut_off.until("ready: over the broker")
            await ask("q5")
            await simulator.wait_delivered(6, timeout=PATIENCE)
            cut_off.send(signal.SIGTERM)
        assert await cut_off.end() == (0 if ends == LEFT else 2)
    tokens = {str(number): token for token, number in asked.items()}
    told = [(tokens[quoted(one)], one.text) for one in simulator.delivered]
    assert sorted(token for token, _ in told) == sorted(asked)  # each once
    for token, words in told:
        # What was under way to the broker when it was cut off may have arrived: it is not said again.
        assert words == f"A:{token}" or (words in ASK_AGAIN and token == "q1" and "broker" in lost)
    for group in (("q0", "q1", "q3", "q5"), ("q2", "q4")):
        answered = [token for token, words in told if token in group and words not in ASK_AGAIN]
        assert answered == sorted(answered)
    assert not cluster.model.invalid
