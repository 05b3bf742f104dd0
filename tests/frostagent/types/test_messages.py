from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from frostagent.types.messages import (
    AssistantMessage,
    FinishReason,
    ModelRequest,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
    as_kept,
)
from tests.cases import each_case

TOKENS = st.integers(0, 10**6)
USAGES = st.builds(Usage, TOKENS, TOKENS, TOKENS, TOKENS, st.none() | st.integers(0, 100).map(float))


@given(USAGES, USAGES, USAGES)
def test_usages_add_up_in_any_order(one: Usage, two: Usage, three: Usage) -> None:
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert one + Usage() == one


@each_case(
    ("one", "two", "both"), [(None, None, None), (0.5, None, 0.5), (None, 0.5, 0.5), (0.5, 0.25, 0.75), (0.0, None, 0)]
)
def test_a_cost_nobody_told_is_not_a_cost_of_nothing(one: float | None, two: float | None, both: float | None) -> None:
    assert (Usage(cost=one) + Usage(cost=two)).cost == both


def test_every_kind_of_token_is_added() -> None:
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)


def test_what_is_kept_of_a_result_may_be_less_than_the_model_reads() -> None:
    told = ToolMessage("c1", "memory", "对花生过敏", sources=("5",), kept="[m1]")
    assert as_kept(told) == ToolMessage("c1", "memory", "[m1]", sources=("5",))
    whole = ToolMessage("c1", "memory", "对花生过敏")
    assert as_kept(whole) is whole


def test_a_tool_can_be_in_a_set_though_its_schema_cannot() -> None:
    one, two = ToolSpec("a", "does a", {"type": "object"}), ToolSpec("a", "does a", {"type": "array"})
    assert hash(one) == hash(two)
    assert one != two


def test_a_request_is_told_apart_by_what_it_asks_not_by_who_counts_its_attempts() -> None:
    class Never:
        step = 1
        is_first = True
        is_short = False

        def again(self) -> bool:
            return False

        def record_broken_off(self, model: str, usage: Usage) -> bool:
            raise AssertionError(model)

    asked = ModelRequest((UserMessage("hi"),))
    same = ModelRequest((UserMessage("hi"),), allowance=Never())
    assert (asked, hash(asked)) == (same, hash(same))
    assert asked != ModelRequest((UserMessage("hi"),), (ToolSpec("a", "does a", {}),))


def test_a_message_is_a_value() -> None:
    assert AssistantMessage("hi") == AssistantMessage("hi", (), None)
    assert f"{FinishReason.TOOL_CALLS}" == "tool_calls"
