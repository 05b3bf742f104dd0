from __future__ import annotations

import asyncio
import re
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from adapters.console import health
from adapters.console.health import RESTS, SHOWN
from adapters.console.language import clock, moment
from bot.core.console_views import Failure, Finding, LimitState, ModelState, OutboxState, State
from bot.core.conversation import Conversation
from bot.core.query_results import Ignored
from tests.adapters.console.samples import HOSTILE
from tests.adapters.console.visiting import SAME, SECRET, visiting
from tests.fakes import GROUP, until


async def test_models_failures_and_what_nobody_heard_are_told() -> None:
    async with visiting() as place:
        await place.log_in()
        place.state = State(
            models=(ModelState("resting", 30.0),),
            place="data/frostagent.db",
            failures=(Failure(1.0, "t9", "billing: <b>no money</b>"),),
            ignored=(Ignored(GROUP, 13, "the sender is blocked", 1.0),),
        )
        place.state = replace(
            place.state,
            outbox=(
                OutboxState(GROUP, 2, 1, 1.0),
                *(OutboxState(Conversation(7, "group", number), 1, 0, 2.0) for number in range(1, SHOWN + 2)),
            ),
        )
        place.limits = (
            LimitState("BOT_USER_RATE", "6 / 60 s"),
            LimitState("BOT_LOOP", ""),
            LimitState("/limit", "$2", "777"),
        )
        _, text, _ = await place.ask("GET", "/health", headers={"Accept-Language": "en"})
        told = "rests for 30.0 s", "data/frostagent.db", "/turns/t9", "&lt;b&gt;no money", "BOT_BLOCK"
        for words in (*told, "6 / 60 s", "no limit", "777 <code>/limit"):
            assert words in text, words
        assert f'<a href="/chats/{quote(str(GROUP), safe="")}">group {GROUP.session_id}</a>' in text
        assert "2 wait · 1 without an answer of QQ" in text
        assert (text.count("1 waits · "), "and 2 more chats" in text) == (SHOWN - 1, True)
        place.state = State()
        _, text, _ = await place.ask("GET", "/health", headers={"Accept-Language": "en"})
        assert "Every message was delivered." in text


FOUND = [
    Finding("store", "ok", "opens", ""),
    Finding("model", "problem", f"{HOSTILE} quoted {SECRET}", "Copy the key once more"),
]
ENGLISH = {"Accept-Language": "en"}


async def test_the_doctor_looks_when_he_is_asked_and_what_he_said_stays_there_with_its_time() -> None:
    async with visiting() as place:
        await place.log_in()
        place.found = FOUND
        _, text, _ = await place.ask("GET", "/health", headers=ENGLISH)
        assert "No check has been run yet." in text
        assert place.looks == 0
        status, _, answer = await place.ask(
            "POST", "/health/doctor", data={"form": await place.form()}, headers=SAME | ENGLISH
        )
        assert (status, answer.headers["Location"], place.looks) == (303, "/health#doctor", 1)
        _, text, _ = await place.ask("GET", "/health", headers=ENGLISH)
        for words in (f"Looked {moment(place.clock.now())}", "a problem:", "Copy the key once more", "<b>store</b>"):
            assert words in text, words
        assert SECRET not in text
        assert "alert(1)" in text
        assert not re.search(r"<script>|<img|x{9}", text)
        lines = await place.journal.audit(latest=1)
        assert lines is not None
        assert (lines[0].action, lines[0].outcome) == ("doctor", "1 of 2 to mend")


async def test_the_doctor_speaks_chinese_on_a_chinese_page() -> None:
    async with visiting() as place:
        await place.log_in()
        place.found = [
            Finding("store", "ok", "opens", "", said_zh="打得开"),
            Finding("model", "problem", "does not answer", "Copy the key once more", "没有答复", "请重新复制密钥"),
            Finding("strange", "warning", "said by a service", "Ask it"),
        ]
        await place.ask("POST", "/health/doctor", data={"form": await place.form()}, headers=SAME)
        for language, there, elsewhere in (
            (
                "zh",
                ("<b>数据库</b>", "打得开", "没有答复", "→ 请重新复制密钥", "said by a service", "→ Ask it"),
                "opens",
            ),
            ("en", ("<b>store</b>", "opens", "does not answer", "→ Copy the key once more", "→ Ask it"), "打得开"),
        ):
            _, text, _ = await place.ask("GET", "/health", headers={"Accept-Language": language})
            assert [words for words in there if words not in text] == []
            assert elsewhere not in text


async def test_the_doctor_looks_once_at_a_time_and_not_again_at_once() -> None:
    async with visiting() as place:
        await place.log_in()
        place.found, place.is_stuck = FOUND, True
        data = {"form": await place.form()}
        async with asyncio.TaskGroup() as group:
            first = group.create_task(place.ask("POST", "/health/doctor", data=data, headers=SAME))
            await until(lambda: place.looks == 1)
            assert (await place.ask("POST", "/health/doctor", data=data, headers=SAME))[0] == 303
            _, text, _ = await place.ask("GET", "/health", headers=ENGLISH)
            assert f"has been looking since {clock(place.clock.now())}" in text
            assert "Look again" not in text
            place.gate.set()
        assert first.result()[0] == 303
        await place.ask("POST", "/health/doctor", data=data, headers=SAME)
        assert place.looks == 1
        place.clock.time += RESTS
        await place.ask("POST", "/health/doctor", data=data, headers=SAME)
        assert place.looks == 2


async def test_a_doctor_who_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LOOKS_FOR", 0.05)
    async with visiting() as place:
        await place.log_in()
        place.is_stuck = True
        await place.ask("POST", "/health/doctor", data={"form": await place.form()}, headers=SAME)
        _, text, _ = await place.ask("GET", "/health", headers=ENGLISH)
        assert "The doctor was not done in time" in text
        assert "Look again" in text
        lines = await place.journal.audit(latest=1)
        assert lines is not None
        assert lines[0].outcome == "not finished"


async def test_where_there_is_no_doctor_nobody_is_asked() -> None:
    async with visiting() as place:
        place.found = None
        await place.log_in()
        assert "doctor" not in (await place.ask("GET", "/health", headers=ENGLISH))[1]
        data = {"form": await place.form()}
        assert (await place.ask("POST", "/health/doctor", data=data, headers=SAME))[0] == 404
