from __future__ import annotations

import re

from bot.core.console_views import AccountState, OwnerDecision, State, WaitingCall, WaitingDraft, WaitingJoinRequest
from bot.core.conversation import Conversation
from bot.core.settlement import Settled
from frostagent.types.runs import Led
from tests.adapters.console.samples import HOSTILE
from tests.adapters.console.visiting import SAME, Place, visiting
from tests.fakes import GROUP

LED = Led(people=True, names=("<b>小明#2",), read=("web", "look"))
OLD = "别人的话（小明）"
ENGLISH = {"Accept-Language": "en"}


async def answer(place: Place, name: str, allows: str, reason: str = "", account: str = "1000") -> tuple[int, str]:
    data = {"form": await place.form(), "account": account, "name": name, "allows": allows, "reason": reason}
    status, text, _ = await place.ask("POST", "/approvals", data=data, headers=SAME | ENGLISH)
    return status, text


async def test_what_waits_is_shown_whole_and_what_people_wrote_stays_words() -> None:
    async with visiting() as place:
        await place.log_in()
        assert "Nothing is waiting." in (await place.ask("GET", "/approvals", headers=ENGLISH))[1]
        now = place.clock.now()
        place.state = State(
            calls=(
                WaitingCall(3, GROUP, HOSTILE + "x" * 5000 + "END", now + 492, "小明 (5)", HOSTILE, LED),
                WaitingCall(4, GROUP, "wipe it", now + 492, led=OLD),
                WaitingCall(5, GROUP, "wipe it", now + 492),
            ),
            petitions=(WaitingJoinRequest(2, 5, 77, HOSTILE, now + 604_800),),
        )
        _, text, _ = await place.ask("GET", "/approvals", headers=ENGLISH)
        for words in ("A3", "8 min left", "END", "R2", "5 invites the bot into the group 77", "7 d left"):
            assert words in text, words
        assert "Read before: others&#39; words (&lt;b&gt;小明#2); what tools brought (web, look)" in text
        assert (text.count("Read before: "), f"Read before: {OLD}" in text) == (2, True)
        assert '<b class="badge">4</b>' in text  # on every page
        assert text.count("alert(1)") == 3
        assert not re.search(r"<script>|<img|x{9}\"", text)
        assert "<b>R2</b>" not in (await place.ask("GET", "/", headers=ENGLISH))[1]  # three calls end before it


async def test_a_chat_is_told_by_its_name_beside_its_number_and_by_that_alone_where_it_has_none() -> None:
    async with visiting() as place:
        await place.log_in()
        now, friend = place.clock.now(), Conversation(1000, "private", 5)
        place.state = State(
            calls=(
                WaitingCall(3, GROUP, "wipe it", now + 492, group=f"学习群{HOSTILE}"),
                WaitingCall(4, friend, "wipe it", now + 492),
            )
        )
        place.drafts = (WaitingDraft(7, GROUP, "小明", "hi", "ho", now + 60, "游戏群"),)
        _, text, _ = await place.ask("GET", "/approvals", headers=ENGLISH)
        named, alone, draft = re.findall(r'<b>[AD]\d</b> <span class="quiet">(.*?) · [^·<]+ left', text, re.DOTALL)
        assert named.startswith("学习群")
        assert named.endswith(f" (group {GROUP.session_id})")
        assert "<script>" not in named
        assert alone == "private chat 5"
        assert draft == f"游戏群 (group {GROUP.session_id})"


async def test_a_word_is_passed_on_written_down_and_says_what_came_of_it() -> None:
    async with visiting() as place:
        await place.log_in()
        for name, allows in (("", "1"), ("A", "1"), ("B3", "1"), ("A3", ""), ("A3 ", "1")):
            assert (await answer(place, name, allows))[0] == 400
        for account in ("", "x", "-1", "1" * 19):
            assert (await answer(place, "A3", "1", account=account))[0] == 400
        assert "A3: allowed" in (await answer(place, "A3", "1"))[1]
        assert "R2: denied" in (await answer(place, "R2", "0", "no"))[1]
        for settled, said in (
            (Settled("over", HOSTILE), "was decided already"),
            (Settled("late", HOSTILE), "too late"),
            (Settled("busy", HOSTILE), "still waits"),
            (Settled("away", HOSTILE), "no worker has its account just now"),
            (Settled("lost", HOSTILE), "has not answered in time"),
        ):
            place.settled = settled
            text = (await answer(place, "A3", "0"))[1]
            assert said in text
            assert "<script>" not in text
        assert place.words[:2] == [
            OwnerDecision(1000, "A", 3, allows=True),
            OwnerDecision(1000, "R", 2, allows=False, reason="no"),
        ]
        assert place.journal.lines is not None
        done = [(line.action, line.object, line.outcome) for line in place.journal.lines[1:]]
        assert done[:3] == [("allow", "1000:A3", "ok"), ("deny", "1000:R2", "ok"), ("deny", "1000:A3", "over")]


async def test_drafts_are_shown_with_their_questions_and_published_changed_or_left() -> None:
    async with visiting() as place:
        await place.log_in()
        assert "Drafts" not in (await place.ask("GET", "/approvals", headers=ENGLISH))[1]
        place.drafts = (WaitingDraft(7, GROUP, "小明", HOSTILE, HOSTILE + "END", place.clock.now() + 3600),)
        _, text, _ = await place.ask("GET", "/approvals", headers=ENGLISH)
        for words in ("D7", "小明", "END", "60 min left", "3 older ones wait, too."):
            assert words in text, words
        assert text.count("alert(1)") == 2
        assert not re.search(r"<script>|<img|x{9}\"", text)
        assert "D7 is published." in (await answer(place, "D7", "1", "other words"))[1]
        assert "D7 is left." in (await answer(place, "D7", "0"))[1]
        assert place.words == [
            OwnerDecision(1000, "D", 7, allows=True, reason="other words"),
            OwnerDecision(1000, "D", 7, allows=False),
        ]


async def test_requests_of_one_number_at_two_accounts_are_told_apart_by_their_accounts() -> None:
    async with visiting() as place:
        await place.log_in()
        later, there = place.clock.now() + 492, Conversation(10002, "group", 5)
        place.state = State(
            accounts=(AccountState(10001, online=True), AccountState(10002, online=True)),
            calls=(WaitingCall(3, GROUP, "wipe it", later), WaitingCall(3, there, "wipe it", later)),
            petitions=(WaitingJoinRequest(2, 5, 77, "", later, 10001), WaitingJoinRequest(2, 5, 77, "", later, 10002)),
        )
        place.drafts = (
            WaitingDraft(7, GROUP, "小明", "hi", "ho", later),
            WaitingDraft(7, there, "小明", "hi", "ho", later),
        )
        _, text, _ = await place.ask("GET", "/approvals", headers=ENGLISH)
        named = re.findall(r'name="account" value="(\d+)"><input type="hidden" name="name" value="(\w+)"', text)
        assert named == [(account, name) for name in ("A3", "R2", "D7") for account in ("10001", "10002") for _ in "of"]
        assert re.findall(r'<b>R2</b> <span class="quiet">(\d+) · ', text) == ["10001", "10002"]
        ids = re.findall(r' id="([^"]+)"', text)
        assert len(ids) == len(set(ids))


async def test_that_others_of_a_cluster_said_nothing_is_told() -> None:
    async with visiting() as place:
        await place.log_in()
        for path in ("/approvals", "/", "/health"):
            place.state = State()
            assert "Not whole" not in (await place.ask("GET", path, headers=ENGLISH))[1]
            place.state = State(absent=3)
            assert "3 parts of the accounts have not answered" in (await place.ask("GET", path, headers=ENGLISH))[1]
