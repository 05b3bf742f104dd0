"""Turns and jobs as the console shows them, and hostile words in every place."""

from __future__ import annotations

from bot.core.console_views import UNANSWERED, JobRow, LastFiring, Span, Trace, TurnRow
from bot.core.conversation import Conversation
from bot.core.query_results import Story, UsageSum
from tests.fakes import BOT, GROUP

NOW = 1_700_000_000.0
ELSEWHERE = Conversation(10002, "group", 9)
HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{'x'*9}}"


def row(turn_id: str = "t1", *, words: str = "今天要带伞吗", outcome: str = "answered") -> TurnRow:
    return TurnRow(
        turn_id=turn_id,
        message_id="5",
        where=GROUP,
        group=words,
        asker=777,
        name=words,
        text=words,
        at=NOW,
        outcome=outcome,
        seconds=4.1,
        error=words if outcome == "failed" else "",
        usage=UsageSum(2, 2400, 1800, 120, 0.0038, 0),
    )


def silent(reason: str = "its sender asks too often") -> TurnRow:
    return TurnRow(
        turn_id="",
        message_id="-9",
        where=Conversation(BOT, "group", 77),
        group="",
        asker=1,
        name="小红",
        text="喂",
        at=NOW,
        outcome=UNANSWERED,
        reason=reason,
    )


def trace(words: str = "晴", *, long: str = "") -> Trace:
    spans = (
        Span(kind="wait", name="", begin=NOW - 1, seconds=1.0),
        Span(kind="failed", name=words, begin=NOW, seconds=0.5, outcome="timeout"),
        Span(
            kind="model",
            name=words,
            begin=NOW + 0.5,
            seconds=1.0,
            outcome="tool_calls",
            text=words,
            thought=words,
            usage=UsageSum(1, 2400, 1800, 120, 0.0021, 0),
        ),
        Span(
            kind="tool", name="get_weather", begin=NOW + 1.5, seconds=0.4, outcome="ok", text=words + long, asked=words
        ),
        Span(kind="model", name="coder", begin=NOW + 2, seconds=0.5, outcome="ok", text=words, run="t1/1/c1"),
        Span(kind="send", name="final", begin=NOW + 3, seconds=0.2, outcome="confirmed", text=words),
    )
    story = Story(asker=777, wakes=True, reason="mention", turn_id="t1", stop="answered", opened=NOW, closed=NOW + 4)
    prompt = f"[群聊记录 14:00]\n小明#1: {words}\n[提问 14:02]\n小红#2: {words}"
    return Trace(row=row(words=words), story=story, prompt=prompt, spans=spans)


def job(
    number: int,
    words: str = "喝水",
    *,
    where: Conversation = GROUP,
    rule: str = "",
    due: float = NOW + 60,
    state: str = "waiting",
    kind: str = "text",
    missed: int = 0,
    name: str = "",
    last: LastFiring | None = None,
) -> JobRow:
    return JobRow(
        where=where,
        group=name,
        number=number,
        maker=777,
        name=name,
        words=words,
        kind=kind,
        rule=rule,
        zone="",
        due=due,
        state=state,
        fired=3,
        missed=missed,
        last=last,
    )
