from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from frostagent.engine.call_checks import Quotas
from frostagent.engine.call_state import CallTotals, Executed
from frostagent.engine.toolset import Toolset
from frostagent.types.errors import ToolDenied
from frostagent.types.hooks import BeforeCall, Hook
from frostagent.types.messages import ToolCall
from frostagent.types.ports import ShadowMode
from frostagent.types.runs import Asker
from frostagent.types.tools import Tool, ToolContext
from frostagent.types.traits import Permission, Rate
from tests.fakes import ManualClock, tool_context
from tests.frostagent.toolbox import Telescope, add, broken, echo, executed_of, once, result_of


async def test_a_missing_capability_makes_a_tool_unavailable_with_the_reason() -> None:
    content, code = await result_of("look")
    assert "it needs Telescope" in content
    assert code == "TOOL_UNAVAILABLE"
    assert await result_of("look", "{}", {Telescope: object()}) == ("object", "ok")


class Twilight:
    """Falls on every chat, or on none; what it was told."""

    def __init__(self, *, falls: bool) -> None:
        self.falls = falls
        self.told: list[tuple[str, str]] = []

    def holds_back(self, conversation: str) -> bool:
        return self.falls

    def note(self, turn_id: str, call: str) -> None:
        self.told.append((turn_id, call))


async def test_in_a_shadow_only_what_reads_runs_and_the_turn_of_a_subagent_tells_the_rest() -> None:
    acts, reads = echo(side_effects="write"), echo(side_effects="read")
    shade, light = Twilight(falls=True), Twilight(falls=False)
    under = replace(tool_context({ShadowMode: shade}), run_id="t0/2")
    assert "say was not run" in (await once(acts, context=under)).message.content
    assert shade.told == [("t0", 'say {"text": "hi"}')]
    assert (await once(reads, context=under)).message.content == "hi"
    assert (await once(acts, context=tool_context({ShadowMode: light}))).message.content == "hi"
    assert (len(shade.told), light.told) == (1, [])


async def test_wrong_arguments_are_told_before_anybody_is_asked() -> None:
    assert (await result_of("ask_first", "{}"))[1] == "TOOL_INVALID_ARGUMENTS"


async def test_arguments_are_prepared_before_they_are_checked() -> None:
    prepared = echo(prepare=lambda given: {"text": given.get("message", "none")})
    assert (await once(prepared, '{"message": 3}')).message.content == "3"


async def test_a_tools_own_check_refuses_with_its_reason_and_the_body_never_runs() -> None:
    async def no_shouting(context: ToolContext, arguments: Any) -> None:
        if arguments["text"].isupper():
            raise ValueError("text: do not shout")
        if arguments["text"] == "password":
            raise ToolDenied("that stays here")

    checked = echo(check=no_shouting)
    assert (await once(checked, '{"text": "hi"}')).message.content == "hi"
    assert (await once(checked, '{"text": "HI"}')).message.content == (
        "error: text: do not shout [TOOL_INVALID_ARGUMENTS]"
    )
    assert (await once(checked.wrap(broken), '{"text": "password"}')).code == "TOOL_DENIED"
    assert (await once(checked.wrap(broken))).code == "TOOL_EXECUTION_FAILED"


async def test_what_is_required_must_be_configured() -> None:
    needy = echo(requires=("AMAP_KEY",))
    assert "it requires AMAP_KEY (not configured)" in (await once(needy)).message.content
    assert (await once(needy, configured={"AMAP_KEY"})).code == "ok"


async def test_a_rate_is_kept_over_all_runs() -> None:
    clock = ManualClock()
    tools = Toolset([echo(rate="1/60")], clock=clock)

    async def call() -> Executed:
        return await executed_of(tools, ToolCall("c", "say", ""), tool_context())

    assert (await call()).code == "ok"
    limited = await call()
    assert (limited.code, limited.details) == ("TOOL_RATE_LIMITED", {"seconds": 60})
    clock.time += 60
    assert (await call()).code == "ok"


async def test_a_denied_tool_is_never_run_whoever_denies_it() -> None:
    assert (await once(echo(permission="deny"))).code == "TOOL_DENIED"
    assert (await once(echo(), deny={"say"})).code == "TOOL_DENIED"


async def test_a_tool_is_run_for_its_audience_only() -> None:
    secret = echo(audience="owner")
    assert "only for owners" in (await once(secret)).message.content
    owner = replace(tool_context(), asker=Asker("1", is_owner=True))
    assert (await once(secret, context=owner)).code == "ok"


def test_so_many_calls_may_be_made_and_the_next_when_the_first_is_old_enough() -> None:
    quotas, rate = Quotas(), Rate(2, 60)
    assert [quotas.take("a", rate, now=now) for now in (0, 10, 20, 59)] == [0, 0, 40, 1]
    assert quotas.take("a", rate, now=60) == 0
    assert quotas.take("a", rate, now=61) == 9


def test_each_tool_has_a_quota_of_its_own() -> None:
    quotas, rate = Quotas(), Rate(1, 60)
    assert [quotas.take(name, rate, now=0) for name in "abab"] == [0, 0, 60, 60]


@given(st.lists(st.floats(0, 20), max_size=40), st.integers(1, 4), st.integers(1, 10))
def test_no_window_ever_has_more_calls_than_the_rate(waits: list[float], calls: int, seconds: int) -> None:
    quotas, rate, now = Quotas(), Rate(calls, seconds), 0.0
    made: list[float] = []
    for wait in waits:
        now += wait
        left = quotas.take("a", rate, now=now)
        assert (left == 0) == (len([at for at in made if at > now - seconds]) < calls)
        made += [now] if left == 0 else []


def test_what_the_operator_set_counts_more_than_what_the_tool_declares_and_deny_more_than_approve() -> None:
    tools = Toolset(deny={"a", "b"}, approve={"b", "c"})

    def permission(name: str, declared: Permission = Permission.ALLOW) -> Permission:
        return tools.permission_of(replace(echo(), name=name, permission=declared))

    assert [permission(name) for name in "abcd"] == ["deny", "deny", "require_approval", "allow"]
    assert permission("c", Permission.DENY) is Permission.REQUIRE_APPROVAL
    assert permission("d", Permission.DENY) is Permission.DENY


# --- order ------------------------------------------------------------------------------------------


async def told_by(offered: Tool, *arguments: str, hooks: Sequence[Hook] = ()) -> list[str]:
    """What calls of a tool give, each in a step of its own."""
    tools, totals = Toolset([offered], clock=ManualClock(), hooks=hooks), CallTotals()
    made = [ToolCall(f"c{index}", offered.name, raw) for index, raw in enumerate(arguments)]
    return [(await executed_of(tools, call, tally=totals)).message.content for call in made]


async def test_the_arguments_of_a_closed_tool_are_not_read() -> None:
    prepared: list[object] = []

    def prepare(given: dict[str, Any]) -> dict[str, Any]:
        prepared.append(given)
        return given

    told = await told_by(replace(add, prepare=prepare), "{}", "{}", "{}", '{"a": 1}')
    assert "three times in a row" in told[3]
    assert len(prepared) == 3


async def test_a_call_whose_result_is_known_takes_no_quota() -> None:
    limited = echo(rate=Rate(2, 60), side_effects="read", idempotent=True)
    first, known, second, third = await told_by(limited, *(f'{{"text": "{text}"}}' for text in ("a", "a", "b", "c")))
    assert (first, known.splitlines()[-1], second) == ("a", "a", "b")
    assert "called too often" in third


async def test_before_hooks_are_asked_about_calls_that_the_asker_may_not_make() -> None:
    seen: list[BeforeCall] = []
    (told,) = await told_by(echo(audience="owner"), "{}", hooks=[Hook(before_call=seen.append)])
    assert "only for owners" in told
    assert [event.name for event in seen] == ["say"]
