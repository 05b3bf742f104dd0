from __future__ import annotations

import re
from urllib.parse import quote

from msgspec.structs import replace

from adapters.console.language import minute
from bot.core.calendar_days import midnight
from bot.core.console_views import (
    UNANSWERED,
    AccountState,
    CostSum,
    ModelState,
    State,
    WaitingCall,
    WaitingDraft,
    WaitingJoinRequest,
)
from bot.core.conversation import Conversation
from bot.core.journal import ENDINGS
from bot.core.query_results import DayCounts, UsageSum
from tests.adapters.console.samples import HOSTILE, trace
from tests.adapters.console.visiting import SAME, visiting
from tests.fakes import GROUP

ENGLISH = {"Accept-Language": "en"}


async def test_it_says_what_is_wrong_what_waits_and_what_it_cost() -> None:
    async with visiting() as place:
        await place.log_in()
        now = place.clock.now()
        place.state = State(
            accounts=(AccountState(10001, online=False, server="NapCat"),),
            models=(ModelState("a"), ModelState("model B", 90.0)),
            in_trouble=True,
            unwritten=12,
            calls=(WaitingCall(3, GROUP, "wipe it?", now + 492),),
            paused=(GROUP,),
        )
        place.journal.traces.append(trace())
        days = [CostSum(str(midnight(now, later=-n)), UsageSum(1, cost=float(n))) for n in range(3)]
        place.journal.sums["day"] = tuple(days)
        _, text, _ = await place.ask("GET", "/", headers=ENGLISH)
        for words in ("10001 offline", "12 entries", "model B failed too often", "<b>A3</b>", "wipe it?", "8 min left"):
            assert words in text, words
        assert "usually $1.50 a day" in text  # of the days that are over
        assert re.search(rf"\(group {GROUP.session_id}\) is paused|>group {GROUP.session_id} is paused", text)


def tiles_in(text: str) -> list[tuple[int, str, str]]:
    """The numbers of the page of today, each with where it leads and what it says."""
    found = re.findall(r'<b>(\d+)</b><span class="quiet">(?:<a href="([^"]*)">)?([^<]+)', text)
    return [(int(number), link.replace("&amp;", "&"), words) for number, link, words in found]


async def test_every_question_of_today_is_in_exactly_one_tile_whatever_became_of_it() -> None:
    """A new outcome is among them by itself, and one that a newer version wrote."""
    async with visiting() as place:
        await place.log_in()
        since = quote(minute(midnight(place.clock.now())))
        counts = {str(ending): 3 + number for number, ending in enumerate(ENDINGS)} | {"of_tomorrow": 50}
        place.journal.counts = DayCounts(turns=(*counts.items(),), dropped=(("rate", 4), ("muted", 100)))
        _, text, _ = await place.ask("GET", "/", headers=ENGLISH)
        (whole, link, words), *tiles = tiles_in(text)
        assert (whole, link, words) == (sum(counts.values()) + 104, f"/turns?since={since}", "questions today")
        assert sum(number for number, _, _ in tiles) == whole
        assert {link: number for number, link, _ in tiles} == {
            **{f"/turns?outcome={ending}&since={since}": counts[ending] for ending in ENDINGS},
            f"/turns?outcome={UNANSWERED}&since={since}": 104,
            "": 50,
        }
        for _, link, words in tiles:
            assert words == words.strip()
            if link:  # and the list is of the same hours
                await place.ask("GET", link)
                asked = place.journal.queries[-1]
                assert asked.since == midnight(place.clock.now())
                assert f"outcome={asked.outcome}&" in link
        assert len({words for _, _, words in tiles}) == len(tiles)


async def test_of_what_there_was_none_there_is_no_tile_but_of_answers() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.counts = DayCounts()
        assert tiles_in((await place.ask("GET", "/", headers=ENGLISH))[1]) == [
            (0, f"/turns?since={quote(minute(midnight(place.clock.now())))}", "questions today"),
            (0, "", "answered"),
        ]
        place.journal.counts = DayCounts(turns=(("running", 1),))
        (_, _, words), *_ = tiles_in((await place.ask("GET", "/", headers=ENGLISH))[1])
        assert words == "question today"


async def test_what_waits_is_allowed_where_it_is_seen_three_at_most_and_more_are_told() -> None:
    async with visiting() as place:
        await place.log_in()
        now = place.clock.now()
        calls = tuple(
            WaitingCall(
                number,
                GROUP,
                '#A1 wipe {"disk": "sda"}',
                now + 500 - number,
                "小明 (5)",
                HOSTILE,
                action=f"wipe {number}",
                arguments=(("disk", f"sda {HOSTILE}"), ("how", "2")),
            )
            for number in range(1, 12)
        )
        place.state = State(calls=calls, petitions=(WaitingJoinRequest(2, 5, 77, HOSTILE, now + 1, 1000),))
        place.drafts = (WaitingDraft(7, GROUP, "x", "y", "z", now + 60),)
        _, text, _ = await place.ask("GET", "/", headers=ENGLISH)
        first = re.findall(r"<b>([AR]\d+)</b>", text)
        assert first == ["A11", "A10", "R2"]  # those whose time ends first
        for name in first:
            form = text.partition(f'name="name" value="{name}">')[2].partition("</form>")[0]
            assert re.findall(r'name="allows" value="(\d)"[^>]*>([^<]*)<', form) == [("1", "Allow"), ("0", "Deny")], (
                name
            )
        assert '<a class="button" href="/approvals">10 more</a>' in text
        assert "<dt><code>how</code></dt><dd>2</dd>" in text
        assert "<b>小明 (5):</b> " in text
        assert '{"disk"' not in text.replace("&#34;", '"')
        assert not re.search(r"<script>|<img|x{9}", text)
        _, text, _ = await place.ask("GET", "/approvals", headers=ENGLISH)
        assert len(re.findall(r'<button class="main" name="allows" value="1">', text)) == 13
        place.state, place.drafts = State(calls=calls[:3]), ()
        text = (await place.ask("GET", "/", headers=ENGLISH))[1]
        assert ("more</a>" in text, "A3" in text) == (False, True)
        place.state = State()
        assert "Waiting for your approval" not in (await place.ask("GET", "/", headers=ENGLISH))[1]


async def test_a_chat_can_be_paused_and_that_is_written_down() -> None:
    async with visiting() as place:
        await place.log_in()
        form = await place.form()
        place.journal.traces.append(trace())
        _, text, _ = await place.ask("GET", "/turns/t1")
        assert f'name="where" value="{GROUP}"><button name="silent" value="1"' in text
        for where, silent, status in ((str(GROUP), "1", 303), (str(GROUP), "0", 303), ("evil", "1", 400)):
            data = {"form": form, "where": where, "silent": silent}
            assert (await place.ask("POST", "/pause", data=data, headers=SAME))[0] == status
        assert place.paused == [(GROUP, True), (GROUP, False)]
        assert place.journal.lines is not None
        assert [(line.action, line.object) for line in place.journal.lines[1:]] == [
            ("pause", str(GROUP)),
            ("go on", str(GROUP)),
        ]


async def test_of_the_chats_where_something_was_asked_lately_one_can_be_chosen_to_be_paused() -> None:
    async with visiting() as place:
        await place.log_in()
        assert 'id="pause"' not in (await place.ask("GET", "/", headers=ENGLISH))[1]
        friend, paused = Conversation(1000, "private", 5), Conversation(1000, "group", 7)
        row = replace(trace().row, where=GROUP, group=f"学习群{HOSTILE}")
        rows = (row, replace(row, group="old name"), replace(row, where=friend, name=""), replace(row, where=paused))
        place.journal.traces += [replace(trace(), row=one) for one in rows]
        place.state = State(paused=(paused,))
        _, text, _ = await place.ask("GET", "/", headers=ENGLISH)
        offered = re.findall(r'<option value="([^"]+)">([^<]*)</option>', text)
        assert [where for where, _ in offered] == [str(GROUP), str(friend)]
        assert offered[0][1].startswith("学习群")
        assert offered[0][1].endswith("(group 4242, account 10001)")  # there are two accounts
        assert offered[1][1] == "private chat 5, account 1000"
        assert "(group 7, account 1000) is paused" in text
        data = {"form": await place.form(), "where": str(friend), "silent": "1"}
        assert (await place.ask("POST", "/pause", data=data, headers=SAME))[0] == 303
        assert place.paused == [(friend, True)]


async def test_nobody_connected_and_nothing_asked_are_said() -> None:
    async with visiting() as place:
        await place.log_in()
        _, text, _ = await place.ask("GET", "/", headers=ENGLISH)
        assert "No OneBot server" in text
        assert "No questions yet" in text
        place.journal.lines = None
        assert "cannot be read" in (await place.ask("GET", "/", headers=ENGLISH))[1]
