from __future__ import annotations

import re

from msgspec.structs import replace

from bot.domain.books import DayCounts, UsageSum
from bot.domain.events import Conversation
from bot.domain.shown import AccountState, CostSum, ModelState, State, WaitingCall
from bot.policy.days import midnight
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
        for words in ("10001 offline", "12 entries", "model B failed too often", "#A3 waits", "8 min left"):
            assert words in text, words
        assert "usually $1.50 a day" in text  # of the days that are over
        assert f"{GROUP} is paused" in text


async def test_it_counts_what_was_answered_what_was_not_and_what_failed_today() -> None:
    async with visiting() as place:
        await place.log_in()
        for failed in (0, 2):
            place.journal.ended = (11, failed)
            _, text, _ = await place.ask("GET", "/", headers=ENGLISH)
            figures = re.findall(r"<b>(\d+)</b><span class=\"quiet\">([^<]*)", text)
            assert figures[:4] == [("2", "answered"), ("3", "questions"), ("9", "silent"), ("4", "not answered")]
            assert ("/turns?outcome=failed" in text) == bool(failed)
            assert f"<b>{failed}</b>" in text
        assert set(place.journal.since) == {midnight(place.clock.now())}


async def test_answers_that_did_not_arrive_have_tiles_of_their_own() -> None:
    async with visiting() as place:
        await place.log_in()
        for count in (0, 2):
            place.journal.counts = DayCounts(questions=9, answered=4, undelivered=count, unconfirmed=count)
            _, text, _ = await place.ask("GET", "/", headers=ENGLISH)
            for outcome, words in (("not_delivered", "not delivered"), ("unconfirmed", "not confirmed by QQ")):
                tile = f'<b>{count}</b><span class="quiet"><a href="/turns?outcome={outcome}">{words}</a>'
                assert (tile in text) == bool(count), outcome
            assert "<b>4</b>" in text


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
        assert offered[0][1].endswith(f" · {GROUP}")
        assert offered[1][1] == str(friend)
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
