from __future__ import annotations

import pytest

from bot.core.console_views import LastFiring
from tests.adapters.console.samples import ELSEWHERE, HOSTILE, NOW, job
from tests.adapters.console.visiting import SAME, visiting
from tests.fakes import GROUP

ENGLISH = {"Accept-Language": "en"}


async def test_nothing_is_scheduled_at_first_and_the_page_says_how_it_would_be() -> None:
    async with visiting() as place:
        await place.log_in()
        _, text, _ = await place.ask("GET", "/jobs", headers=ENGLISH)
        assert "People ask for reminders in their own words" in text
        assert 'aria-current="page">Scheduled</a>' in text
        place.is_stuck = True
        assert "The journal cannot be read right now." in (await place.ask("GET", "/jobs", headers=ENGLISH))[1]


async def test_all_chats_jobs_are_on_one_page_each_with_when_how_often_whose_and_what_came_of_it() -> None:
    async with visiting() as place:
        await place.log_in()
        place.clock.time = NOW
        failed = LastFiring(at=NOW, outcome="failed", turn_id="t1")
        place.jobs = [
            job(1, HOSTILE, name=HOSTILE, last=LastFiring(at=NOW, outcome="unknown", text=HOSTILE)),
            job(2, "tidy up", where=ELSEWHERE, rule="day", kind="run", last=failed),
            job(3, "told late", due=NOW - 60, state="missed", missed=5),
            job(4, "muted", due=NOW),
            job(5, "news", kind="feed", state="firing", due=NOW + 1),
        ]
        _, text, _ = await place.ask("GET", "/jobs", headers=ENGLISH)
        assert HOSTILE not in text
        assert text.count("alert(1)") == 4  # the words, the group, the maker, the message
        assert text.count("account 10001") == 4
        for words in (
            'href="/chats/10002%3Agroup%3A9">group 9, account 10002</a> · task · 777',
            "at 1.7e+09 · every day · said 3, missed 0",
            "nobody knows whether it arrived",
            ': failed · <a href="/turns/t1">Why</a>',
            "missed; its maker is informed as soon as possible</b> · said 3, missed 5",
            "its moment has come, but it cannot be said yet",
            "· feed ·",
            "being said",
        ):
            assert words in text, words
        assert text.count("<b>") == 3  # of five jobs, these three do not just wait
        assert "提醒" in (await place.ask("GET", "/jobs", headers={"Accept-Language": "zh"}))[1]
        place.jobs = place.jobs[:1]
        assert "account 10001" not in (await place.ask("GET", "/jobs", headers=ENGLISH))[1]


async def test_later_jobs_are_on_further_pages() -> None:
    async with visiting() as place:
        await place.log_in()
        place.page_size = 2
        place.jobs = [job(number, f"job {number}.") for number in range(1, 4)]
        _, first, _ = await place.ask("GET", "/jobs", headers=ENGLISH)
        assert ("job 2." in first, "job 3." in first, "To the first ones" in first) == (True, False, False)
        assert 'href="/jobs?after=1.5-2"' in first
        _, second, _ = await place.ask("GET", "/jobs?after=1.5-2", headers=ENGLISH)
        assert ("job 2." in second, "job 3." in second, "Later" in second) == (False, True, False)
        assert 'href="/jobs">To the first ones' in second
        _, beyond, _ = await place.ask("GET", "/jobs?after=1.5-9", headers=ENGLISH)
        assert "Nothing is scheduled after these." in beyond
        for strange in ("nan-1", "inf-1", "1e9-1", "-1-1", "1", "1.5-2x", "%EF%BC%91-%EF%BC%91"):
            _, text, _ = await place.ask("GET", f"/jobs?after={strange}", headers=ENGLISH)
            assert "job 1." in text, strange


async def test_a_job_is_cancelled_by_whoever_is_logged_in_and_that_is_written_down() -> None:
    async with visiting() as place:
        await place.log_in()
        place.jobs = [job(7, "here"), job(7, "there", where=ELSEWHERE)]
        form = {"form": await place.form()}
        data = form | {"where": str(ELSEWHERE), "number": "7"}
        assert (await place.ask("POST", "/jobs", data=data))[0] == 403  # of another page
        assert (await place.ask("POST", "/jobs", data=data | {"form": "x"}, headers=SAME))[0] == 403
        status, text, _ = await place.ask("POST", "/jobs", data=data, headers=SAME | ENGLISH)
        assert (status, "Cancelled." in text, [one.where for one in place.jobs]) == (200, True, [GROUP])
        status, text, _ = await place.ask("POST", "/jobs", data=data, headers=SAME | ENGLISH)
        assert (status, "There is no such job" in text) == (400, True)
        assert (await place.ask("POST", "/jobs", data=form | {"where": "evil", "number": "7"}, headers=SAME))[0] == 400
        done = [one for one in place.journal.lines or () if one.action == "cancel"]
        assert [(one.object, one.outcome) for one in done] == [(str(ELSEWHERE), "J7"), (str(ELSEWHERE), "J7: failed")]
        assert all(one.login and one.address for one in done)


@pytest.mark.parametrize("path", ["/jobs", "/jobs?after=1.5-2"])
async def test_without_a_login_nobody_sees_what_is_scheduled(path: str) -> None:
    async with visiting() as place:
        place.jobs = [job(7)]
        status, text, _ = await place.ask("GET", path)
        assert (status, "J7" in text) == (303, False)
