from __future__ import annotations

import html
import io
import re
from typing import Any

import aiohttp
from msgspec.structs import replace

from adapters.console.server import HEADERS
from adapters.console.trying import ANSWER_WITHIN, MAX_LINE, SENT_WITHIN
from bot.core.console_views import Chat, ChatLine, PersonaState
from bot.core.query_results import UsageSum
from bot.core.trial_group import TrialLine, TrialOptions
from frostagent.types.errors import MediaError
from tests.adapters.console.samples import HOSTILE, NOW, trace
from tests.adapters.console.trials import CEILING, ListTrial
from tests.adapters.console.visiting import SAME, Place, visiting
from tests.fakes import GROUP

ENGLISH = {"Accept-Language": "en", "Accept": "text/html"}


async def post(place: Place, path: str, **fields: Any) -> tuple[int, str, str]:
    """Status, text and where it leads."""
    data = aiohttp.FormData()
    for name, value in {"form": await place.form(), **fields}.items():
        if isinstance(value, bytes):
            data.add_field(name, io.BytesIO(value), filename='../"x', content_type="text/html")
        else:
            data.add_field(name, value)
    status, text, answer = await place.ask("POST", path, data=data, headers=SAME | ENGLISH)
    return status, text, answer.headers.get("Location", "")


async def test_nothing_is_open_before_somebody_asks_and_then_as_he_asks() -> None:
    async with visiting() as place:
        await place.log_in()
        status, text, _ = await place.ask("GET", "/try", headers=ENGLISH)
        assert (status, place.trying.wanted) == (200, [])
        assert "at most about $0.2500, 100.0k tokens or 40 requests" in text
        for path in ("/try/live", "/try/pictures/1", "/try/turns/t1", "/try/turns/t1/json", "/try/silent/x/1"):
            assert (await place.ask("GET", path))[0] == 404, path
        place.trying.made = ListTrial(place.journal)
        text = f"{HOSTILE}\r\n好"
        fields = {"model": "real", "key": "k", "persona": text, "asker": "小明", "question": "\n伞？"}
        assert await post(place, "/try/open", **fields) == (303, "", "/try#say")
        assert await post(place, "/try/open", model="demo") == (303, "", "/try#say")
        persona = text.replace("\r\n", "\n")
        first = TrialOptions(is_real=True, key="k", text=persona, asker="小明", question="伞？")
        assert place.trying.wanted == [first, TrialOptions()]
        assert await post(place, "/try/end") == (303, "", "/try")
        assert place.trying.current is None
        assert place.journal.lines is not None
        done = [(one.action, one.object, one.outcome) for one in place.journal.lines[1:]]
        assert done == [("try out", "real model", "ok"), ("try out", "demo model", "ok")]


async def test_somebody_talks_in_the_group_and_lets_things_go_wrong() -> None:
    async with visiting() as place:
        await place.log_in()
        trial, begun = place.tries(), place.trying.touched
        for fields, status in (
            ({"as": "user2", "text": "hello", "call": "1"}, 303),
            ({"as": "user1", "text": "!drop 9"}, 303),
            ({"as": "user1", "text": "", "call": "1"}, 303),  # nothing is said
            ({"as": "user1", "text": "x" * 2 * MAX_LINE, "fault": "timeout"}, 303),
            ({"as": "user1", "text": "", "fault": "slow 3"}, 303),
            ({"as": "user1", "text": "no", "fault": "drop"}, 400),
            ({"as": "bot", "text": "forged"}, 400),
            ({"as": "user1", "text": "看", "picture": b"\x89PNG"}, 303),
            ({"as": "user1", "text": "", "call": "1", "picture": b"GIF8"}, 303),
        ):
            assert (await post(place, "/try", **fields))[0] == status, fields
        assert trial.said == [
            ("user2", "@bot hello", b""),
            ("user1", "!drop 9", b""),
            ("user1", "x" * MAX_LINE, b""),
            ("user1", "看", b"\x89PNG"),
            ("user1", "@bot", b"GIF8"),
        ]
        assert trial.obeyed == ["timeout", "slow 3"]
        assert (await post(place, "/try", **{"as": "user2", "text": "x"}))[2] == "/try?as=user2#say"
        assert place.trying.touched > begun
        plain = {"form": await place.form(), "as": "user1", "text": "plain"}  # as a program sends it
        assert (await place.ask("POST", "/try", data=plain, headers=SAME))[0] == 303
        assert trial.said[-1] == ("user1", "plain", b"")


async def test_what_is_no_picture_is_said_beside_the_words_that_were_typed() -> None:
    async with visiting() as place:
        await place.log_in()
        place.tries().broken = MediaError("it is no picture but a program")
        status, text, _ = await post(place, "/try", **{"as": "user2", "text": HOSTILE, "picture": b"MZ"})
        assert (status, "no picture that can be read" in text) == (400, True)
        assert "<option selected>user2</option>" in text
        assert "alert(1)" in text
        assert "<script>" not in text


async def test_what_was_typed_while_the_group_ended_stands_ready_for_the_next_one() -> None:
    async with visiting() as place:
        await place.log_in()
        for is_open in (False, True):
            if is_open:
                trial: Any = place.tries()

                async def say(*_: object, **__: object) -> bool:
                    place.trying.current = None
                    raise RuntimeError("it is closed")

                trial.say = say
            status, text, _ = await post(place, "/try", **{"as": "user1", "text": f"a long question {HOSTILE}"})
            assert (status, "has ended meanwhile" in text, "<script>" in text) == (409, True, False)
            assert 'name="asker" value="user1"' in text
            kept = re.search(r'<textarea name="question" hidden>\n(.*?)</textarea>', text, re.DOTALL)
            assert kept
            assert "a long question" in kept[1]


async def test_what_was_typed_into_another_group_than_the_one_that_is_open_is_not_said_there() -> None:
    async with visiting() as place:
        await place.log_in()
        trial = place.tries()
        trial.name = "two"
        fields = {"as": "user2", "text": "a secret of group one", "trial": "one", "fault": "timeout"}
        status, text, _ = await post(place, "/try", **fields)
        assert (status, trial.said, trial.obeyed) == (409, [], [])
        assert "Another group was opened meanwhile" in text
        assert typed(text) == "a secret of group one"
        assert 'name="trial" value="two"' in text
        assert (await post(place, "/try", **fields | {"trial": "two"}))[0] == 303
        assert trial.said == [("user2", "a secret of group one", b"")]


async def test_whoever_has_left_says_nothing_and_the_words_are_there_still() -> None:
    async with visiting() as place:
        await place.log_in()
        trial = place.tries()
        status, text, _ = await post(place, "/try", **{"as": "gone", "text": "my words"})
        assert (status, trial.said, typed(text) == "my words") == (400, [], True)
        assert "Nobody of that name is in the group any more" in text


async def test_a_page_does_not_wait_for_a_slow_answer_for_ever_but_for_a_picture_longer() -> None:
    async with visiting() as place:
        await place.log_in()
        trial = place.tries()
        trial.is_busy = True
        for more in ({}, {"picture": b"GIF8"}):
            assert (await post(place, "/try", **{"as": "user1", "text": "a story", **more}))[0] == 303
        assert trial.patience == [ANSWER_WITHIN, SENT_WITHIN]
        assert "The bot is at it." in (await place.ask("GET", "/try", headers=ENGLISH))[1]


async def test_words_that_were_not_said_are_there_still_and_the_page_says_so() -> None:
    async with visiting() as place:
        await place.log_in()
        place.tries().is_deaf = True
        fields = {"as": "user2", "text": f"two\r\nlines {HOSTILE}", "picture": b"GIF8"}
        status, text, _ = await post(place, "/try", **fields)
        assert (status, "Nothing was said" in text, "<script>" in text) == (503, True, False)
        assert typed(text).startswith("two\nlines ")
        assert "<option selected>user2</option>" in text


async def test_a_question_of_several_lines_stands_ready_and_is_said_as_it_is() -> None:
    async with visiting() as place:
        await place.log_in()
        trial = place.tries()
        trial.propose("user1", "one\ntwo\n\nthree")
        assert typed((await place.ask("GET", "/try", headers=ENGLISH))[1]) == "one\ntwo\n\nthree"
        assert (await post(place, "/try", **{"as": "user1", "text": "one\r\ntwo\r\n\r\nthree"}))[0] == 303
        assert trial.said == [("user1", "one\ntwo\n\nthree", b"")]


def typed(text: str) -> str:
    """What stands ready to be said on a page."""
    (found,) = re.findall(r'<textarea id="text"[^>]*>\n(.*?)</textarea>', text, re.DOTALL)
    return html.unescape(str(found))


def line(message_id: str, **more: Any) -> ChatLine:
    return ChatLine(message_id=message_id, at=NOW, sender=1, name="x", text="y", **more)


def shown(text: str) -> list[str]:
    """Lines and why, as they stand on the page, without marks."""
    found = re.findall(r'class="(?:bubble|because-of|happened)[^>]*>(.*?)</(?:div|p)>', text, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", one).split()) for one in found]


async def test_each_line_says_why_it_was_answered_or_not_and_leads_to_its_trace() -> None:
    async with visiting() as place:
        await place.log_in()
        trial = place.tries(
            TrialLine("user1", "@bot 带伞吗", "1", (1,)),
            TrialLine("bot", "查一下", "2"),
            TrialLine("", "!timeout: timeout next", happened="timeout"),
            TrialLine("", "the words of the simulator", happened="missed"),
            TrialLine("", "somebody joined"),
            TrialLine("bot", "带", "3"),
            TrialLine("user2", "吃了吗", "4"),
            TrialLine("user2", "@bot 快", "5"),
            TrialLine("user2", "@bot 还没写下", "6"),
        )
        place.journal.traces.append(trace())
        lines = (
            line("1", wakes=True, reason="mention", turn_id="t1"),
            line("2", is_own=True, turn_id="t1"),
            line("3", is_own=True, turn_id="t1", state="unknown"),
            line("4", turn_id="t1"),  # the turn's prompt tells it, too
            line("5", reason="its sender asks too often"),
        )
        place.journal.talks.append(Chat(where=GROUP, group="", lines=lines))
        _, text, _ = await place.ask("GET", "/try", headers=ENGLISH)
        assert shown(text) == [
            "user1 @bot 带伞吗",
            "bot 查一下",
            "(timeout: arrives, but is not confirmed)",
            "Nobody heard that: the bot is not connected, or its account is offline.",
            "somebody joined",
            "bot 带 (nobody knows whether it arrived)",
            "why: mentioned 4.1 s $0.0038 What it did",
            "user2 吃了吗",
            "why: overheard: it was not for the bot Why",
            "user2 @bot 快",
            "why: its sender asks too often Why",
            "user2 @bot 还没写下",
        ]
        assert re.findall(r'href="(/try/(?:turns|silent)[^"]*)"', text) == [
            "/try/turns/t1",
            *(f"/try/silent/{GROUP.platform_id}%3Agroup%3A{GROUP.session_id}/{number}" for number in (4, 5)),
        ]
        assert '<img src="/try/pictures/1" alt="A picture of user1"' in text
        trial.showing = place.journal
        place.journal.lines = None  # the journal is away: what was said is there all the same
        assert len(shown((await place.ask("GET", "/try", headers=ENGLISH))[1])) == 9


async def test_a_line_whose_answer_did_not_arrive_says_so_in_red() -> None:
    for outcome, tone in (("not_delivered", "bad"), ("unconfirmed", "warn"), ("answered", "")):
        async with visiting() as place:
            await place.log_in()
            place.tries(TrialLine("user1", "@bot 带伞吗", "1"))
            one = trace()
            place.journal.traces.append(replace(one, row=replace(one.row, outcome=outcome)))
            woke = line("1", wakes=True, reason="mention", turn_id="t1")
            place.journal.talks.append(Chat(where=GROUP, group="", lines=(woke,)))
            _, text, _ = await place.ask("GET", "/try", headers=ENGLISH)
            assert re.findall(r'<span class="pill (\w+)">', text) == [tone] * bool(tone)


async def test_the_pages_of_its_turns_say_that_it_was_a_trial_and_change_nothing_of_the_bots() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.traces.append(trace())
        for path, has_it in (("/turns/t1", False), ("/try/turns/t1", False)):
            assert ((await place.ask("GET", path, headers=ENGLISH))[0] == 200) is (path == "/turns/t1"), has_it
        place.tries()
        for path, is_trial in (("/turns/t1", False), ("/try/turns/t1", True)):
            _, text, _ = await place.ask("GET", path, headers=ENGLISH)
            assert ("This turn was only tried" in text) is is_trial
            assert ('action="/pause"' in text, 'action="/try/turn"' in text) == (not is_trial, not is_trial)
            base = "/try" if is_trial else ""
            assert f'href="{base}/turns/t1/json"' in text
            assert f'<a href="{base or "/turns"}" aria-current="page"' in text
        status, text, answer = await place.ask("GET", "/try/turns/t1/json")
        assert (status, answer.content_type) == (200, "application/json")
        assert (await place.ask("GET", "/try/turns/none"))[0] == 404


async def test_a_real_model_says_what_it_took_and_when_that_is_all() -> None:
    async with visiting() as place:
        await place.log_in()
        trial = place.tries()
        trial.wanted, trial.ceiling = TrialOptions(is_real=True, key="k", text="x"), CEILING
        place.personas = [PersonaState(key="k", name="小霜", text="y")]
        trial.spent = UsageSum(4, 2900, 0, 100, 0.02)
        _, text, _ = await place.ask("GET", "/try", headers=ENGLISH)
        for words in ("So far 4 requests, 3.0k tokens, $0.0200", "real money", "An unsaved text of 小霜"):
            assert words in text
        assert "Used up" not in text
        for lacks, words in (("used_up", "Used up"), ("often", "four times"), ("spent", "money is spent")):
            trial.lacks = lacks
            text = (await place.ask("GET", "/try", headers=ENGLISH))[1]
            assert re.search(f'role="alert">[^<]*{words}', text), lacks
        status, text, _ = await post(place, "/try", **{"as": "user2", "text": f"kept {HOSTILE}"})
        assert (status, "kept " in text, "<option selected>user2</option>" in text, trial.said) == (409, True, True, [])
        trial.ceiling = replace(CEILING, unpriced=("mine",))
        assert "The price of mine is not known" in (await place.ask("GET", "/try", headers=ENGLISH))[1]
        assert "Open one" not in text
        place.trying.can_end = False
        assert 'action="/try/end"' not in (await place.ask("GET", "/try", headers=ENGLISH))[1]
        assert 'action="/try/open"' in (await place.ask("GET", "/try?new=1", headers=ENGLISH))[1]


async def test_a_picture_is_given_as_what_we_made_of_it_and_news_come_of_the_trial() -> None:
    async with visiting() as place:
        await place.log_in()
        trial = place.tries()
        trial.pictures[7] = b"\xff\xd8\xff-not-text-\xfe"
        url = f"http://{place.host}/try/pictures/7"
        async with place.session.get(url) as answer:
            assert (answer.status, answer.content_type) == (200, "image/jpeg")
            assert await answer.read() == trial.pictures[7]
            assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        for wrong in ("8", "x", "-7"):
            assert (await place.ask("GET", f"/try/pictures/{wrong}"))[0] == 404
        trial.feed.add("m1")
        async with place.session.get(f"http://{place.host}/try/live?after=0") as answer:
            assert b'"m1"' in await answer.content.readuntil(b"}\n\n")
