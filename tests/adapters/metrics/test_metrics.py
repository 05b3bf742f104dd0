from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from prometheus_client import generate_latest

from adapters.metrics import metrics as module
from adapters.metrics.cluster import GatewayCollector, GatewayVitals, WorkCollector
from adapters.metrics.exposition import DiskCollector, VitalsCollector, registry_of
from adapters.metrics.metrics import Count, Family, Metrics, Times, Today, Vitals, kinds_of
from adapters.metrics.work import Work
from bot.core.actions import SendMessage
from bot.core.events import Event, MessageReceived
from bot.core.journal import (
    Judged,
    MessageObserved,
    MessageOverheard,
    RunResumed,
    SendChanged,
    SendQueued,
    SendState,
    TurnClosed,
    TurnOpened,
    Undelivered,
)
from frostagent.types.messages import Attempt, ToolCall, ToolMessage, Usage, UserMessage
from frostagent.types.runs import Asker, Outcome, RunFinished, RunStarted, StepFinished, Stop, ToolFinished
from frostagent.types.speech import Text
from tests.fakes import GROUP, ManualClock, said, words

DEPLOY = Path(__file__).parents[3] / "deploy"
DASHBOARD = DEPLOY / "grafana" / "dashboards" / "frostagent.json"
ALERTS = DEPLOY / "alerts.yml"


class Desk:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.metrics = Metrics(tools=["get_weather"], reasons={"too often": "rate"}, clock=self.clock)

    def value(self, name: str, **labels: str) -> float | None:
        return registry_of(self.metrics).get_sample_value(f"frostagent_{name}", labels)

    def shown(self) -> bytes:
        return generate_latest(registry_of(self.metrics))

    def answered(self, usage: Usage | None) -> None:
        answer = replace(words("hello"), usage=usage)
        self.metrics.asked(Attempt("scripted", "ok", 4.0, answer))

    def send(self, send_id: str, state: SendState) -> None:
        self.metrics.see(SendChanged(send_id=send_id, state=state, at=0))

    def call(self, name: str, code: str, seconds: float = 0.1) -> None:
        call = ToolCall("c0", name, "{}")
        result = ToolMessage("c0", name, "", is_error=code != "ok")
        self.metrics.notice(
            ToolFinished(run_id="t1", step=1, call=call, result=result, code=code, seconds=seconds, waited=2.0)
        )


def opened(question: MessageReceived) -> TurnOpened:
    return TurnOpened(turn_id="t1", question=question, user=UserMessage(""), at=0)


# --- runs -----------------------------------------------------------------------------------------


def test_runs_count_by_their_outcome_and_steps_as_they_are() -> None:
    desk = Desk()
    desk.metrics.notice(RunStarted(run_id="t1", conversation=str(GROUP), asker=Asker("1")))
    for step in (1, 2):
        desk.metrics.notice(StepFinished(run_id="t1", step=step, completion=words("hi"), seconds=1))
    for stop in (Stop.ANSWERED, Stop.ANSWERED, Stop.FAILED):
        outcome = Outcome(stop, "", (), Usage(), 2)
        desk.metrics.notice(RunFinished(run_id="t1", outcome=outcome, seconds=2.5))
    assert desk.value("runs_total", outcome="answered") == 2
    assert desk.value("runs_total", outcome="failed") == 1
    assert desk.value("runs_total", outcome="silent") == 0
    assert desk.value("steps_total") == 2
    assert desk.value("run_seconds_sum") == 7.5


def test_tool_errors_count_by_name_and_code() -> None:
    desk = Desk()
    desk.call("get_weather", "ok")
    desk.call("get_weather", "TOOL_TIMEOUT")
    desk.call("made_up", "TOOL_NOT_FOUND")
    assert desk.value("tool_error_total", tool="get_weather", code="TOOL_TIMEOUT") == 1
    assert desk.value("tool_error_total", tool="unknown", code="TOOL_NOT_FOUND") == 1
    assert desk.value("tool_error_total", tool="get_weather", code="ok") is None


def test_tool_calls_count_by_name_and_outcome() -> None:
    desk = Desk()
    desk.call("get_weather", "ok", 0.25)
    desk.call("get_weather", "TOOL_TIMEOUT", 60)
    assert desk.value("tool_calls_total", tool="get_weather", outcome="ok") == 1
    assert desk.value("tool_calls_total", tool="get_weather", outcome="timeout") == 1
    assert desk.value("tool_error_total", tool="get_weather", code="TOOL_TIMEOUT") == 1
    assert desk.value("tool_error_total", tool="get_weather", code="ok") is None
    assert desk.value("tool_seconds_sum", tool="get_weather") == 60.25
    waited = [desk.value(f"tool_wait_seconds_{figure}", tool="get_weather") for figure in ("sum", "count")]
    assert waited == [2.0 * (waited[1] or 0), desk.value("tool_seconds_count", tool="get_weather")]


def test_what_nobody_asked_for_counts_by_what_it_was() -> None:
    desk = Desk()
    for outcome in ("said", "said", "missed"):
        desk.metrics.fired("feed", outcome)
    for step in ("judged", "judged", "begun"):
        desk.metrics.chimed(step)
    desk.metrics.greeted("left")
    assert [desk.value("jobs_total", kind="feed", outcome=one) for one in ("said", "missed")] == [2, 1]
    assert [desk.value("chime_ins_total", step=one) for one in ("judged", "begun")] == [2, 1]
    assert [desk.value("greetings_total", change=one) for one in ("joined", "left")] == [None, 1]


def test_names_that_a_model_made_up_do_not_become_labels() -> None:
    desk = Desk()
    for index in range(100):
        desk.call(f"made_up_{index}", "TOOL_NOT_FOUND")
    assert desk.value("tool_calls_total", tool="unknown", outcome="not_found") == 100
    assert b"made_up" not in desk.shown()


# --- the journal ----------------------------------------------------------------------------------


def test_the_queue_is_timed_from_the_message_to_its_turn() -> None:
    desk, question, other = Desk(), said("hi"), said("not for you")
    desk.metrics.see(MessageObserved(question, overheard=False))
    desk.metrics.see(MessageObserved(other, overheard=False))
    desk.metrics.see(MessageObserved(said("talk"), overheard=True))
    desk.clock.time += 2
    desk.metrics.see(MessageOverheard(other))
    desk.metrics.see(opened(question))
    assert (desk.value("queue_seconds_count"), desk.value("queue_seconds_sum")) == (1, 2)
    desk.metrics.see(opened(other))
    desk.metrics.see(opened(question))
    assert desk.value("queue_seconds_count") == 1


def test_sends_count_by_state_and_are_timed_from_their_turn_to_their_end() -> None:
    desk = Desk()
    action = SendMessage(GROUP, (Text("hi"),))
    desk.metrics.see(SendQueued(send_id="a", turn_id="", action=action, final=True, at=0, state=SendState.SENDING))
    desk.clock.time += 1
    desk.send("a", SendState.QUEUED)  # it never reached the wire
    desk.clock.time += 100
    desk.send("a", SendState.SENDING)
    desk.clock.time += 3
    desk.send("a", SendState.CONFIRMED)
    desk.send("b", SendState.SENDING)
    desk.send("b", SendState.WITHDRAWN)
    assert (desk.value("send_seconds_count"), desk.value("send_seconds_sum")) == (1, 3)
    for end in (SendState.REFUSED, SendState.UNKNOWN):
        desk.send("c", SendState.SENDING)
        desk.send("c", end)
    assert desk.value("send_seconds_count") == 3
    states = {state.value: desk.value("sends_total", state=state) for state in SendState}
    expected = {"queued": 1, "sending": 5, "confirmed": 1, "withdrawn": 1, "refused": 1, "unknown": 1, "dropped": 0}
    expected |= dict.fromkeys(("draft", "published", "reworded"), 0)
    assert states == expected


def test_turns_count_by_what_their_askers_got_beside_the_runs_as_they_ended() -> None:
    desk = Desk()
    desk.metrics.notice(RunFinished(run_id="t1", outcome=Outcome(Stop.ANSWERED, "", (), Usage(), 1), seconds=1))
    closed = TurnClosed(turn_id="t1", stop=Stop.ANSWERED, round=(), usage=Usage(), steps=1, at=2.0)
    ends: list[Undelivered | None] = [None, *Undelivered, Undelivered.NOT_DELIVERED]
    for undelivered in ends:
        desk.metrics.see(msgspec.structs.replace(closed, undelivered=undelivered))
    desk.metrics.see(msgspec.structs.replace(closed, stop=Stop.FAILED))
    expected = {"answered": 1, "not_delivered": 2, "unconfirmed": 1, "failed": 1, "silent": 0}
    assert {name: desk.value("turns_total", outcome=name) for name in expected} == expected
    assert desk.value("runs_total", outcome="answered") == 1


def test_what_became_of_an_unconfirmed_answer_counts_once_it_is_known() -> None:
    desk = Desk()
    for outcome in (Undelivered.NOT_DELIVERED, Stop.ANSWERED, Undelivered.NOT_DELIVERED, Stop.FAILED):
        desk.metrics.settled("t1", outcome)
    expected = {"answered": 1, "not_delivered": 2}
    assert {name: desk.value("late_deliveries_total", outcome=name) for name in expected} == expected
    assert desk.value("turns_total", outcome="not_delivered") == 0


def test_other_entries_are_nothing_to_count() -> None:
    desk = Desk()
    before = re.sub(rb"(?m)^(process|python)_.*$", b"", desk.shown())
    desk.metrics.see(RunResumed("t1"))
    assert re.sub(rb"(?m)^(process|python)_.*$", b"", desk.shown()) == before


def test_what_never_ends_does_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 3)
    desk = Desk()
    questions = [said(str(number)) for number in range(4)]
    for question in questions:
        desk.metrics.see(MessageObserved(question, overheard=False))
    for question in questions:
        desk.metrics.see(opened(question))
    assert desk.value("queue_seconds_count") == 1


# --- what is shown --------------------------------------------------------------------------------


def test_an_answer_counts_with_its_tokens_its_cost_and_its_time() -> None:
    desk = Desk()
    desk.answered(Usage(100, 20, cached=60, cost=0.5))
    assert desk.value("model_requests_total", endpoint="scripted", outcome="ok") == 1
    assert [desk.value("tokens_total", kind=kind) for kind in ("prompt", "completion", "cached")] == [100, 20, 60]
    assert desk.value("cost_total", currency="usd") == 0.5
    assert desk.value("first_token_seconds_sum") == 4
    desk.metrics.asked(Attempt("scripted", "ok", 4.0, replace(words("hello"), first_token=1.5, usage=None)))
    assert desk.value("first_token_seconds_sum") == 5.5


def test_a_request_that_fails_counts_under_its_class_and_as_nothing_else() -> None:
    desk = Desk()
    desk.metrics.asked(Attempt("scripted", "rate_limit", 4.0))
    assert desk.value("model_requests_total", endpoint="scripted", outcome="rate_limit") == 1
    assert desk.value("first_token_seconds_count") == 0


def test_a_model_that_counts_nonsense_cannot_break_a_counter() -> None:
    desk = Desk()
    desk.answered(Usage(-1, 5, cost=-0.5))
    assert (desk.value("tokens_total", kind="prompt"), desk.value("cost_total", currency="usd")) == (0, None)
    assert desk.value("tokens_total", kind="completion") == 5
    assert desk.value("answers_total", cost="unknown") == 1


def test_an_unknown_cost_is_no_cost_of_zero() -> None:
    desk = Desk()
    for usage in (Usage(10, 5), None):
        desk.answered(usage)
    assert desk.value("cost_total", currency="usd") is None
    assert (desk.value("answers_total", cost="unknown"), desk.value("answers_total", cost="known")) == (2, 0)
    desk.answered(Usage(10, 5, cost=0.0))  # a free model is known to be
    desk.answered(Usage(10, 5, cost=0.25))
    assert desk.value("cost_total", currency="usd") == 0.25
    assert (desk.value("answers_total", cost="unknown"), desk.value("answers_total", cost="known")) == (2, 2)


def test_what_is_not_answered_counts_by_why_and_what_is_not_at_all() -> None:
    desk = Desk()

    def judged(reason: str, *, wakes: bool = False) -> Judged:
        return Judged(conversation=GROUP, message_id="1", sender=1, wakes=wakes, reason=reason)

    for verdict in (judged("mention", wakes=True), judged("too often"), judged("new here")):
        desk.metrics.see(MessageObserved(said("@bot hi"), not verdict.wakes, verdict))
    assert (desk.value("unanswered_total", reason="rate"), desk.value("unanswered_total", reason="other")) == (1, 1)
    desk.metrics.see(judged("too often"))  # a question that waited
    assert desk.value("unanswered_total", reason="rate") == 2


def test_the_dashboard_shows_an_unknown_cost_as_unknown() -> None:
    panels = [panel for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"] if "Cost" in panel["title"]]
    assert len(panels) == 2
    for panel in panels:
        assert panel["fieldConfig"]["defaults"]["noValue"] == "unknown"
        assert any('cost="unknown"' in target["expr"] for target in panel["targets"])


def test_the_process_is_measured_too_and_nothing_says_since_when() -> None:
    shown = Desk().shown()
    assert b"\nprocess_resident_memory_bytes " in shown
    assert b"\npython_info{" in shown
    assert b"_created" not in shown


def test_the_kinds_of_a_union_are_the_tags_of_its_members() -> None:
    kinds = kinds_of(Event)
    assert {"message_received", "heartbeat", "noticed"} < set(kinds)
    assert len(kinds) == len(set(kinds))


def strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from strings(item)
        case list():
            for item in value:
                yield from strings(item)
        case _:
            pass


def test_every_figure_of_the_dashboard_is_one_of_ours() -> None:
    desk = Desk()
    desk.answered(Usage(1, 1, cost=0.1))
    desk.call("get_weather", "ok")
    desk.metrics.fired("text", "said")
    desk.metrics.chimed("judged")
    desk.metrics.greeted("joined")
    vitals = Vitals(
        lanes=0,
        queued=0,
        online=0,
        offline=0,
        duplicates=0,
        overflow=0,
        reconnects=0,
        withheld=0,
        waiting={"call": 0},
        ended={"expired": 0},
        commands={"usage": 0},
        servers={"files": True},
        jobs=0,
        today=Today(cost=0, tokens=0, reserved=0, rung=0, used=0),
    )
    gateway = GatewayVitals(online=0, offline=0, reconnects=0, published=0, waiting=0, lost=0, refused=0, is_up=True)
    work = Work(1, {0: lambda: gateway.is_up})
    parts = VitalsCollector(vitals), DiskCollector(0), GatewayCollector(gateway), WorkCollector(work)
    shown = (*registry_of(desk.metrics).collect(), *(metric for part in parts for metric in part.collect()))
    ours = {sample.name: set(sample.labels) for metric in shown for sample in metric.samples}
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(expressions) > 20
    alerts = re.findall(r"^ +expr: (.+)", ALERTS.read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"frostagent_\w+", " ".join(alerts))) <= ours.keys()
    expressions += alerts
    used = {name for text in strings(dashboard) for name in re.findall(r"\b(?:frostagent|process|python)_\w+", text)}
    assert used <= ours.keys()
    never_shown = {name for name in ours if name.startswith("frostagent_") and not name.endswith(("_count", "_sum"))}
    assert used >= never_shown
    for expression in expressions:
        for name, labels in re.findall(r"\b(frostagent_\w+)\{([^}]*)\}", expression):
            asked = set(re.findall(r"(\w+)\s*[!=]", labels)) - {"job", "instance"}
            assert asked <= ours[name], expression
        for labels in re.findall(r"by \(([\w, ]+)\)", expression):
            known = set().union(*(ours[name] for name in re.findall(r"\bfrostagent_\w+", expression)))
            assert set(labels.split(", ")) <= known | {"instance"}, expression


def test_a_run_inside_another_one_counts_by_its_steps_alone() -> None:
    desk = Desk()
    desk.metrics.notice(StepFinished(run_id="t1/1/c0", parent="t1", step=1, completion=words("hi"), seconds=1))
    outcome = Outcome(Stop.ANSWERED, "", (), Usage(), 1)
    desk.metrics.notice(RunFinished(run_id="t1/1/c0", parent="t1", outcome=outcome, seconds=2.5))
    assert desk.value("steps_total") == 1
    assert desk.value("runs_total", outcome="answered") == 0


def test_stalls_of_the_loop_are_counted() -> None:
    desk = Desk()
    desk.metrics.stalled(1.5)
    desk.metrics.stalled(2.5)
    assert (desk.value("stalls_total"), desk.metrics.stalls) == (2, 2)


def test_times_count_up_to_their_bounds_and_those_with_them() -> None:
    times = Times((0.5, 1))
    for seconds in (0.5, 0.75, 1.0, 7.0):
        times.observe(seconds)
    assert times.buckets() == [(0.5, 1), (1, 3), (float("inf"), 4)]
    assert times.sum == 9.25


def test_an_instrument_is_there_from_the_first_time_it_is_asked_for() -> None:
    family = Family("calls", "Calls.", ("tool",), Count)
    assert family.members == {}
    family.labels("a").inc()
    family.labels("a").inc(2)
    assert {values: count.value for values, count in family.members.items()} == {("a",): 3}
