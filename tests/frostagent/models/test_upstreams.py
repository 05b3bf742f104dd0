from __future__ import annotations

from msgspec.structs import replace

from frostagent.models.compaction import prompt_room, shrink_request
from frostagent.models.prices import Price
from frostagent.models.request_repairs import without_pictures
from frostagent.models.tokens import estimate
from frostagent.models.upstreams import BLIND, NARROW, TOOLLESS, Upstream
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    ModelRequest,
    Reasoning,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from tests.cases import each_case
from tests.fakes import ScriptedModel, words

PRICE = Price(prompt=2, cached=1, completion=10)
TOOL = ToolSpec("f", "Does it.", {"type": "object", "properties": {}})
REQUEST = ModelRequest((UserMessage("look", images=("data:image/png;base64,AAAA",)),), (TOOL,))


def test_a_request_is_left_as_it_is_until_something_was_refused() -> None:
    assert Upstream(ScriptedModel()).fit(REQUEST, now=0) is REQUEST


def test_refused_tools_are_not_sent_for_a_while() -> None:
    upstream = Upstream(ScriptedModel())
    upstream.refuse_tools(now=10)
    assert upstream.fit(REQUEST, now=10) == replace(REQUEST, tools=())
    assert upstream.fit(REQUEST, now=10 + TOOLLESS) is REQUEST


def test_refused_pictures_are_not_sent_for_a_while() -> None:
    upstream = Upstream(ScriptedModel())
    upstream.refuse_pictures(now=10)
    assert upstream.fit(REQUEST, now=10) == without_pictures(REQUEST)
    assert upstream.fit(REQUEST, now=10 + BLIND) is REQUEST


def test_calls_are_told_as_text_after_their_results_were_cut_to_the_window() -> None:
    call, result = AssistantMessage("", (ToolCall("c", "f", "{}"),)), ToolMessage("c", "f", "很长 " * 4000)
    upstream = Upstream(ScriptedModel(), window=2000)
    upstream.refuse_calls(now=10)
    fitting = upstream.fit(ModelRequest((UserMessage("look"), call, result)), now=10)
    [told] = fitting.messages
    assert isinstance(told, UserMessage)
    assert told.text.startswith("look\n\nYou called the tool f with {}, and its result was:\n| 很长")
    assert estimate(fitting) < 2000


def test_there_is_a_line_for_each_key_and_the_name_is_the_models() -> None:
    upstream = Upstream(ScriptedModel(), ScriptedModel(), window=1000)
    assert len(upstream.lines) == 2
    assert (upstream.name, upstream.window) == ("scripted", 1000)


def test_what_it_counts_corrects_how_long_requests_are() -> None:
    upstream = Upstream(ScriptedModel())
    assert upstream.measure(REQUEST) == round(estimate(REQUEST))
    upstream.learn(REQUEST, replace(words("a"), usage=Usage(prompt=round(2 * estimate(REQUEST)))))
    assert upstream.measure(REQUEST) == round(2 * estimate(REQUEST))
    upstream.learn(REQUEST, replace(words("a"), usage=None))
    assert upstream.measure(REQUEST) == round(2 * estimate(REQUEST))


ROUND = (UserMessage("q" * 500), AssistantMessage("a" * 500))
LONG = ModelRequest((*ROUND * 20, UserMessage("now?")))


def test_a_request_is_no_longer_than_the_window_without_the_answer() -> None:
    assert Upstream(ScriptedModel()).fit(LONG, now=0) is LONG
    assert Upstream(ScriptedModel(), window=10_000).fit(LONG, now=0) is LONG
    upstream = Upstream(ScriptedModel(), window=2000)
    assert upstream.fit(LONG, now=0) == shrink_request(LONG, to=prompt_room(2000))
    upstream.learn(LONG, replace(words("a"), usage=Usage(prompt=round(2 * estimate(LONG)))))
    assert upstream.fit(LONG, now=0) == shrink_request(LONG, to=prompt_room(2000) / upstream.scale.factor)


def test_a_request_that_was_too_long_is_made_half_as_long_or_as_short_as_its_window() -> None:
    half = estimate(LONG) / 2
    assert Upstream(ScriptedModel()).shrink(LONG) == shrink_request(LONG, to=half)
    assert Upstream(ScriptedModel(), window=100_000).shrink(LONG) == shrink_request(LONG, to=half)
    assert Upstream(ScriptedModel(), window=1000).shrink(LONG) == shrink_request(LONG, to=prompt_room(1000))
    assert Upstream(ScriptedModel()).shrink(ModelRequest((UserMessage("q" * 500),))) is None


def test_a_window_that_a_refusal_named_counts_for_a_while() -> None:
    for known in (None, 10_000):
        upstream = Upstream(ScriptedModel(), window=known)
        upstream.learn_window(2000, now=10)
        upstream.learn_window(4000, now=10)
        assert upstream.window == 2000
        assert upstream.fit(LONG, now=9 + NARROW) == shrink_request(LONG, to=prompt_room(2000))
        assert upstream.fit(LONG, now=10 + NARROW) is LONG
        assert upstream.window == known


@each_case(
    ("price", "usage", "cost"),
    [
        (PRICE, Usage(prompt=1_000_000, completion=100_000, cached=400_000), 0.6 * 2 + 0.4 * 1 + 1),
        (PRICE, Usage(10, 5, cost=0.0), 0.0),
        (None, Usage(10, 5), None),
    ],
)
def test_an_answer_says_what_it_cost_unless_the_vendor_did(price: Price | None, usage: Usage, cost: float) -> None:
    answer = replace(words("a"), usage=usage)
    assert Upstream(ScriptedModel(), price=price).counted(REQUEST, answer) == replace(
        answer, usage=replace(usage, cost=cost)
    )


def test_what_was_read_is_never_free_and_what_was_said_is_not_either() -> None:
    upstream, request = Upstream(ScriptedModel()), ModelRequest((UserMessage("how are you?"),))
    for figures in (Usage(prompt=0, completion=7), Usage(prompt=7, completion=0)):
        usage = upstream.counted(request, replace(words("fine"), usage=figures)).usage
        assert usage is not None
        assert min(usage.prompt, usage.completion) > 0
        assert 7 in {usage.prompt, usage.completion}
    empty = Completion(AssistantMessage(""), FinishReason.STOP, usage=Usage(prompt=7, completion=0))
    assert upstream.counted(request, empty) is empty


def test_of_a_model_that_was_asked_twice_both_times_count() -> None:
    upstream, request = Upstream(ScriptedModel(), price=PRICE), ModelRequest((UserMessage("how are you?"),))
    silent = upstream.counted(request, replace(words("fine"), usage=None, asked_twice=True)).usage
    once = upstream.counted(request, replace(words("fine"), usage=None)).usage
    assert once is not None
    assert silent == once + once
    told = upstream.counted(request, replace(words("fine"), usage=Usage(7, 3), asked_twice=True)).usage
    assert told == Usage(7, 3, cost=PRICE.of(Usage(7, 3))) + once


def test_what_was_read_is_not_free_whatever_a_vendor_counts() -> None:
    upstream, thoughts = Upstream(ScriptedModel(), price=PRICE), Reasoning("让我想一想再说" * 40)
    thinking = AssistantMessage("", reasoning=thoughts)
    for told, message, most in (
        (Usage(prompt=50), thinking, 50),
        (Usage(), thinking, upstream.measure(LONG)),
        (None, thinking, upstream.measure(LONG)),
        (Usage(prompt=50), AssistantMessage("很长的回答" * 60), 50),
    ):
        answer = Completion(message, FinishReason.STOP, told)
        usage = upstream.counted(LONG, answer).usage
        assert usage is not None
        assert usage.prompt == most
        assert 100 < usage.completion < 400
        assert usage.cost == PRICE.of(replace(usage, cost=None))
    for nothing in (AssistantMessage(), replace(thinking, reasoning=None)):
        answer = Completion(nothing, FinishReason.STOP, Usage(prompt=50))
        assert upstream.counted(LONG, answer).usage == Usage(prompt=50, cost=PRICE.of(Usage(prompt=50)))
    assert upstream.taken(Usage(completion=7), LONG).prompt == upstream.measure(LONG)


def test_an_answer_that_says_nothing_of_what_it_took_counts_as_much_as_is_estimated() -> None:
    upstream = Upstream(ScriptedModel(), price=PRICE)
    counted = upstream.counted(LONG, replace(words("很长的回答" * 20), usage=None), reserved=7).usage
    assert counted is not None
    assert (counted.prompt, counted.reserved) == (upstream.measure(LONG), 7)
    assert 60 < counted.completion < 200
    assert counted.cost == PRICE.of(counted)
