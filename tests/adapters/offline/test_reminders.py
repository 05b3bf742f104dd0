"""What people want of reminders, in their words."""

from __future__ import annotations

from typing import Any

from adapters.offline.brain import DemoCall, think
from adapters.offline.reminders import Reminding, read_reminding
from tests.cases import each_case

TODAY = "2026-03-14"


@each_case(
    ("text", "words", "when", "rule"),
    [
        ("明天八点提醒我交作业", "交作业", "2026-03-15T08:00", ""),
        ("后天早上七点二十提醒我赶飞机", "赶飞机", "2026-03-16T07:20", ""),
        ("十分钟后提醒我喝水", "喝水", "+10m", ""),
        ("二十五分钟之后提醒我", "", "+25m", ""),
        ("半小时后叫我", "", "+30m", ""),
        ("一个半小时后提醒我关火", "关火", "+90m", ""),
        ("提醒我下午三点半开会", "开会", "15:30", ""),
        ("今晚8点20提醒我看球", "看球", "20:20", ""),
        ("十二点提醒我吃饭", "吃饭", "12:00", ""),
        ("每天早上八点提醒我吃药", "吃药", "", "0 8 * * *"),
        ("每晚十点提醒我睡觉", "睡觉", "", "0 22 * * *"),
        ("每个工作日 9:30 提醒打卡", "打卡", "", "30 9 * * 1-5"),
        ("每周一9点提醒我开例会", "开例会", "", "0 9 * * 1"),
        ("每2小时提醒我喝水", "喝水", "", "every 2 hours"),
        ("每小时提醒我站起来", "站起来", "", "every 1 hours"),
        ("提醒我开会", "开会", "", ""),
        ("remind me in 10 minutes to stretch", "stretch", "+10m", ""),
        ("Remind me to call mom in an hour", "call mom", "+1h", ""),
        ("remind me in half an hour", "", "+30m", ""),
        ("please remind me tomorrow at 8 to hand in the report", "hand in the report", "2026-03-15T08:00", ""),
        ("remind me at 12 am to sleep", "sleep", "00:00", ""),
        ("remind me every day at 9:15 pm to sleep", "sleep", "", "15 21 * * *"),
        ("remind me every weekday at 9 to stand up", "stand up", "", "0 9 * * 1-5"),
        ("remind me every monday at 10 to write", "write", "", "0 10 * * 1"),
        ("remind me every 2 hours to drink", "drink", "", "every 2 hours"),
        ("remind me to smile", "smile", "", ""),
    ],
)
def test_a_reminder_is_read(text: str, words: str, when: str, rule: str) -> None:
    assert read_reminding(text, TODAY) == Reminding("create", words, when, rule)


@each_case(
    ("text", "wanted"),
    [
        ("我有哪些提醒", Reminding("list")),
        ("what reminders do I have", Reminding("list")),
        ("取消 J3", Reminding("cancel", number="J3")),
        ("cancel j7 please", Reminding("cancel", number="J7")),
        ("以后叫我小明", None),
        ("北京天气", None),
        ("hello", None),
    ],
)
def test_whatever_else_is_wanted_is_told_apart(text: str, wanted: Reminding | None) -> None:
    assert read_reminding(text, TODAY) == wanted


def asked(text: str) -> list[dict[str, Any]]:
    words = f"[提问 14:00]\n小明#1: {text}\n[此刻] 2026-03-14 星期六，群「摸鱼群」，提问的是普通成员"
    return [{"role": "user", "content": words}]


def test_the_demo_has_it_set_and_says_what_was_understood() -> None:
    (call,) = think(asked("明天八点提醒我"), ["remind"]).calls
    assert call == DemoCall("remind", {"action": "create", "words": "时间到了", "when": "2026-03-15T08:00"})
    made = {"id": "c", "function": {"name": "remind", "arguments": "{}"}}
    calls = {"role": "assistant", "content": "", "tool_calls": [made]}
    result = {"role": "tool", "tool_call_id": "c", "content": "已设好 J1：周日"}
    assert think([*asked("明天八点提醒我"), calls, result], ["remind"]).text == "好。已设好 J1：周日"
    assert think(asked("提醒我开会"), ["remind"]).text.startswith("什么时候？")
