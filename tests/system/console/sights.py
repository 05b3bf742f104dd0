"""A console with something on every page, all of it hostile where people or models wrote it."""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace
from PIL import Image

from adapters.console.http import PageOrigin, cookie_name
from bot.core.calendar_days import midnight
from bot.core.console_views import (
    AccountState,
    ApplicantRule,
    Chat,
    ChatLine,
    CostSum,
    Fact,
    Finding,
    GreetingState,
    LastFiring,
    ModelState,
    OutboxState,
    PersonaState,
    State,
    ToolAnswer,
    ToolState,
    ToolUse,
    WaitingCall,
    WaitingDraft,
    WaitingJoinRequest,
)
from bot.core.conversation import Conversation
from bot.core.query_results import UsageSum
from bot.core.trial_group import TrialLine, TrialOptions
from tests.adapters.console.samples import ELSEWHERE, NOW, job, silent, trace
from tests.adapters.console.trials import CEILING
from tests.adapters.console.visiting import Place
from tests.fakes import GROUP

WORDS = (
    "</pre></script><script src=/static/live.js?evil></script><img src=x onerror=evil()>\"'{{7*7}}"
    + "长" * 90
    + "W" * 90
)
AT = "10001%3Agroup%3A4242"
FILLED = {"number": "1", "id": "t1", "where": AT, "name": "console.css", "tool": "weather"}
TOOL = ToolState(
    name="weather",
    about=WORDS,
    reason=WORDS,
    permission="allow",
    audience="owner",
    elsewhere=((7, "owner"),),
    quota=(5, 60.0),
    unfit="",
    parameters={
        "properties": {
            WORDS: {"type": "string", "description": WORDS, "default": WORDS},
            "unit": {"enum": [WORDS, "°C"]},
            "days": {"type": "integer"},
            "more": {"type": "object"},
        },
        "required": [WORDS],
    },
)
SEARCHED = f"/turns?where={quote(WORDS)}&tool={quote(WORDS)}"
SUMS = "/cost?by=model", "/cost?by=person", "/cost?by=tool"
MORE = "/try?new=1", "/turns?asker=1", "/jobs?after=1.5-2", SEARCHED, *SUMS, "/persona/text?key=k"
GONE = "/turns/", "/silent/", "/try/", "/tools/", "/persona/", "/static/"
"""Where pages begin that are there for something: a turn, a tool."""

SILENT = "/silent/10001%3Agroup%3A77/-9"


def pages(place: Place) -> list[str]:
    """Every page of the table of routes; a new one is among them by itself."""
    gets = {route.path for route in place.routes() if route.method == "GET" and not route.is_slow}
    shown = gets - {"/silent/{where}/{id}", "/login", "/static/{version}/{name}", "/rows", "/try/silent/{where}/{id}"}
    shown -= {path for path in gets if path.endswith(("/json", "/file", "/csv", "{number}"))}
    return [
        *sorted(path.format(**FILLED) for path in shown),
        SILENT,
        f"/try{SILENT}",
        *MORE,
    ]


def bare(place: Place) -> list[str]:
    """Those of the pages that are there also where there is nothing to show."""
    return [path for path in pages(place) if "?" not in path and not path.startswith(GONE)]


def fill(place: Place) -> None:
    """Put something on every page."""
    now, journal = place.clock.now(), place.journal
    lines = tuple(
        ChatLine(
            message_id=str(number),
            at=NOW,
            sender=number,
            name=WORDS,
            text=WORDS,
            is_own=number % 2 == 1,
            begins=number == 2,
            is_gone=number == 3,
            state="unknown" if number == 1 else "",
            wakes=number == 0,
            reason="" if number else "mention",
            turn_id="" if number else "t1",
        )
        for number in range(6)
    )
    journal.traces.append(trace(WORDS, long="x" * 3000))
    journal.silent.append(replace(silent(), name=WORDS, text=WORDS))
    journal.talks.append(
        Chat(where=GROUP, group=WORDS, lines=lines, summary=WORDS, facts=(Fact(5, WORDS, "person", NOW),), next=3)
    )
    place.jobs = [
        job(1, WORDS, name=WORDS, rule=WORDS, last=LastFiring(at=NOW, outcome="unknown", text=WORDS)),
        job(2, WORDS, kind="run", state="missed", missed=1, last=LastFiring(at=NOW, outcome="failed", turn_id="t1")),
        job(3, WORDS, kind=WORDS, state=WORDS, where=ELSEWHERE),
    ]
    place.page_size = 2
    place.greetings = {
        "joined": GreetingState(change="joined", words=WORDS, source="set", at=NOW, by=WORDS),
        "left": GreetingState(change="left", words="run", source="file"),
    }
    place.applicants = (ApplicantRule(WORDS, accepts=True), ApplicantRule(WORDS, accepts=False, reason=WORDS))
    journal.uses.append(ToolUse("weather", 5, 2, WORDS, 0.5))
    cost = UsageSum(2, 2400, 1800, 100, 3.0)
    journal.sums |= {
        by: (CostSum(WORDS, cost), CostSum("x", UsageSum(1, unpriced=1))) for by in ("model", "asker", "tool")
    }
    journal.sums["conversation"] = (CostSum(str(GROUP), cost, WORDS),)
    journal.sums["day"] = tuple(CostSum(str(midnight(now, later=-n)), cost) for n in range(9))
    place.tools = [TOOL, replace(TOOL, name="wipe", unfit="effects")]
    place.answer = ToolAnswer(WORDS, WORDS, 0.5, 2)
    fill_trial(place)
    place.personas = [PersonaState(key=key, name=WORDS, text=WORDS, chats=(str(GROUP),)) for key in ("", "k")]
    place.found = [Finding(WORDS, verdict, WORDS, WORDS) for verdict in ("ok", "warning", "problem")]
    place.drafts = (WaitingDraft(7, GROUP, WORDS, WORDS, WORDS, now + 60, WORDS),)
    place.state = State(
        accounts=(AccountState(10001, online=False, server=WORDS),),
        models=(ModelState(WORDS, 90.0),),
        in_trouble=True,
        unwritten=12,
        calls=(WaitingCall(3, GROUP, WORDS, now + 492, WORDS, WORDS, "别人的话（小红）", WORDS),),
        petitions=(WaitingJoinRequest(2, 5, 77, WORDS, now + 99),),
        paused=(Conversation(10001, "group", 7),),
        outbox=(OutboxState(GROUP, 2, 1, now - 60),),
        place=WORDS,
    )


def fill_trial(place: Place) -> None:
    """Let something be tried out, with pictures, a question that stands ready, and real money."""
    trial = place.tries(
        TrialLine(WORDS, WORDS, "0", (1,)),
        TrialLine("", WORDS),
        TrialLine("bot", WORDS, "1", (1, 2)),
        TrialLine("user1", WORDS, "2"),
    )
    trial.wanted, trial.ceiling, trial.is_busy = TrialOptions(is_real=True, text=WORDS), CEILING, True
    trial.people, trial.draft = (WORDS, "user1"), TrialLine(WORDS, WORDS)
    out = io.BytesIO()
    Image.new("RGB", (900, 700), "#1d6fb8").save(out, "JPEG")
    trial.pictures[1] = out.getvalue()


async def logged_in(browser: Any, place: Place, **more: Any) -> Any:
    """A context that has the login's cookie."""
    context = await browser.new_context(**more)
    cookie = {
        "name": cookie_name(PageOrigin("http", place.host)),
        "value": place.cookie(),
        "url": f"http://{place.host}",
    }
    await context.add_cookies([cookie])
    return context
