from __future__ import annotations

import json
import re
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from adapters.console.language import language_named
from adapters.console.turns import CUT, prompt_blocks, request_outcome_text
from bot.commands.why import Explanations, explain_turn
from bot.core.console_views import UNANSWERED, Chat, CostSum, Span, TurnQuery
from bot.core.conversation import Conversation
from bot.core.query_results import UsageSum
from tests.adapters.console.samples import HOSTILE, NOW, row, silent, trace
from tests.adapters.console.visiting import SECRET, visiting
from tests.cases import each_case
from tests.fakes import GROUP

ENGLISH = {"Accept-Language": "en"}


async def test_a_filter_offers_chats_people_tools_and_models_by_their_names() -> None:
    async with visiting() as place:
        await place.log_in()
        friend, hong = Conversation(GROUP.platform_id, "private", 5), UsageSum(1)
        place.journal.traces.append(trace())
        place.journal.talks += [Chat(where=GROUP, group="学习群", lines=()), Chat(where=friend, group="", lines=())]
        place.journal.sums = {"asker": (CostSum("20003", hong, "小红"),), "model": (CostSum("fine", hong),)}
        _, text, _ = await place.ask("GET", "/turns?asker=20003&model=gone&where=1:private:9", headers=ENGLISH)
        offered = re.findall(r'<option(?: value="([^"]*)")?( selected)?>([^<]*)</option>', text)
        for value, chosen, words in (
            (str(GROUP), "", "学习群 (group 4242)"),
            (str(friend), "", "x (private chat 5)"),
            ("1:private:9", " selected", "private chat 9"),
            ("", "", "fine"),
            ("", " selected", "gone"),
        ):
            assert (value, chosen, words) in offered, words
        assert '<option value="小红 (20003)">' in text
        assert 'name="asker" list="people" autocomplete="off" value="小红 (20003)"' in text
        for typed in ("小红 (20003)", "20003", " 小红 ", "nested (a) (20003)"):
            await place.ask("GET", f"/turns?asker={quote(typed)}")
            assert place.journal.queries[-1] == TurnQuery(asker=20003), typed
        asked = len(place.journal.queries)
        _, text, _ = await place.ask("GET", "/turns?asker=%3Cscript%3E", headers=ENGLISH)
        assert "No recent asker is called &lt;script&gt;." in text
        assert len(place.journal.queries) == asked  # it is none of them, not everybody


async def test_rows_say_who_asked_what_how_it_ended_and_lead_to_the_trace() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.traces.append(trace())
        place.journal.silent.append(silent())
        place.journal.following = (7, 9)
        _, text, _ = await place.ask("GET", "/turns?where=10001:group:4242&asker=777&outcome=failed", headers=ENGLISH)
        assert place.journal.queries[-1] == TurnQuery(where="10001:group:4242", asker=777, outcome="failed")
        assert 'href="/turns/t1"' in text
        assert 'href="/silent/10001%3Agroup%3A77/-9"' in text
        assert "its sender asks too often" in text
        assert "$0.0038" in text
        assert "turn=7&amp;verdict=9" in text
        assert "where=10001%3Agroup%3A4242" in text  # the next page keeps the filters
        address = "/turns?since=2026-11-23T14:05&until=2026-11-24&cost=0.05"
        _, text, _ = await place.ask("GET", address, headers=ENGLISH)
        query = place.journal.queries[-1]
        assert (query.until - query.since, query.cost) == (9 * 3600 + 55 * 60, 0.05)
        assert "since=2026-11-23T14%3A05&amp;until=2026-11-24T00%3A00&amp;cost=0.05&amp;turn=7" in text
        for cost in ("0.00005", "100000"):  # as it was typed, on the next page, too
            assert f"cost={cost}&amp;turn=7" in (await place.ask("GET", f"/turns?cost={cost}"))[1]
        await place.ask("GET", "/turns?since=evil&until=99999-01-01&cost=1e400")
        assert place.journal.queries[-1] == TurnQuery()
        await place.ask("GET", "/turns?outcome=evil&turn=-1&verdict=9")
        assert place.journal.queries[-1] == TurnQuery(verdict=9)
        await place.ask("GET", f"/turns?outcome={UNANSWERED}")
        assert place.journal.queries[-1].outcome == UNANSWERED


@each_case("language", ["zh", "en"])
async def test_a_trace_tells_why_in_the_words_of_the_command(language: str) -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.traces.append(one := trace())
        status, text, _ = await place.ask("GET", "/turns/t1", headers={"Accept-Language": language})
        assert status == 200
        explain = Explanations(place.clock.now)
        expected = explain_turn(explain._asked(chinese=language == "zh"), one.story)
        assert len(expected) > 2
        for line in expected:
            assert f">{line}</p>" in text.replace("&#39;", "'")
        assert text.count('class="fill"') == len(one.spans)
        assert "[提问 14:02]" in text
        assert re.search(r"<button[^>]* data-copy=[^>]* hidden>", text)  # a script shows it


async def test_what_did_not_get_an_answer_has_a_page_with_the_setting_that_decides() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.silent.append(silent())
        _, text, _ = await place.ask("GET", "/silent/10001%3Agroup%3A77/-9", headers=ENGLISH)
        assert "not answered: its sender asks too often" in text
        assert "BOT_USER_RATE" in text
        assert '<p class="words">喂</p>' in text
        assert "<h1>小红" in text
        for path in ("/silent/10001%3Agroup%3A77/8", "/silent/evil/8", "/turns/none"):
            assert (await place.ask("GET", path))[0] == 404
        place.journal.lines = None
        for path in ("/silent/10001%3Agroup%3A77/-9", "/turns/t1"):
            assert (await place.ask("GET", path))[0] == 503
        assert "cannot be read" in (await place.ask("GET", "/turns", headers=ENGLISH))[1]


async def test_of_what_was_recalled_or_is_kept_no_more_no_words_are_shown() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.silent.append(silent())
        place.journal.recalled.add("-9")
        _, text, _ = await place.ask("GET", "/silent/10001%3Agroup%3A77/-9", headers=ENGLISH)
        assert "not answered: its sender asks too often" in text
        assert '<p class="words"><span class="quiet">(taken back or forgotten)</span></p>' in text
        assert "喂" not in text
        place.journal.swept.add("-9")
        _, text, _ = await place.ask("GET", "/silent/10001%3Agroup%3A77/-9", headers=ENGLISH)
        assert "<h1>not answered" in text
        assert 'class="words"' not in text


async def test_a_secret_that_a_cut_would_halve_is_masked_as_a_whole() -> None:
    async with visiting() as place:
        await place.log_in()
        before = "x" * (CUT - 7)
        place.journal.traces.append(trace(before + SECRET))
        _, text, _ = await place.ask("GET", "/turns/t1")
        assert SECRET[:6] not in text
        assert f"{before}***" in text


async def test_bodies_are_cut_until_somebody_wants_the_whole() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.traces.append(trace(long="x" * CUT + "END"))
        assert "END" not in (await place.ask("GET", "/turns/t1"))[1]
        assert "END" in (await place.ask("GET", "/turns/t1?whole=1"))[1]
        raw = json.loads((await place.ask("GET", "/turns/t1/json"))[1])
        assert raw["spans"][3]["text"].endswith("END")


@each_case("path", ["/", "/turns", "/turns/t1", "/turns/t1/json"])
async def test_what_people_write_stays_words(path: str) -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.traces.append(trace(HOSTILE))
        _, text, answer = await place.ask("GET", path)
        if answer.content_type == "application/json":
            assert json.loads(text)["row"]["text"] == HOSTILE
            return
        assert "alert(1)" in text
        assert not re.search(r"<script>|<img|</pre><s|x{9}", text)


def test_the_blocks_of_a_prompt_begin_with_headings_that_only_we_write() -> None:
    told = prompt_blocks("[群聊记录 14:00]\n小明#1: a\n  [提问]\n[提问 14:02]\n小红#2: b", len)
    assert [(one.title, one.text) for one in told] == [
        ("[群聊记录 14:00]", "小明#1: a\n  [提问]"),
        ("[提问 14:02]", "小红#2: b"),
    ]


async def test_the_script_of_a_page_gets_the_same_rows_by_the_same_filters() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.traces += [trace(HOSTILE), trace()]
        place.journal.following = (7, 9)
        page = (await place.ask("GET", "/turns?asker=5"))[1]
        assert 'data-rows="/rows?asker=5"' in page
        given = json.loads((await place.ask("GET", "/rows?asker=5", headers=ENGLISH))[1])
        assert place.journal.queries[-1] == TurnQuery(asker=5)
        assert given["following"] == "asker=5&turn=7&verdict=9"
        first = given["rows"][0]
        assert (first["said"], first["ended"], first["cost"], first["link"]) == (
            HOSTILE,
            "answered",
            "$0.0038 · 4.1 s",
            "/turns/t1",
        )
        assert len(json.loads((await place.ask("GET", "/rows?most=1"))[1])["rows"]) == 1
        place.journal.lines = None
        assert (await place.ask("GET", "/rows"))[0] == 503


async def test_what_went_wrong_is_told_by_its_kind_in_both_languages() -> None:
    async with visiting() as place:
        await place.log_in()
        for error in ("auth: the key was refused", "evil: words"):
            place.journal.silent.append(msgspec.structs.replace(row(outcome="failed"), error=error))
        text = (await place.ask("GET", "/turns", headers={"Accept-Language": "zh"}))[1]
        assert '<span class="because quiet">密钥被拒</span>' in text
        assert '<span class="because quiet">evil: words</span>' in text


async def test_what_did_not_arrive_is_red_or_in_doubt_and_can_be_looked_for() -> None:
    ends = {
        "answered": ("good", "answered", "回答了"),
        "not_delivered": ("bad", "not delivered", "没有送到"),
        "unconfirmed": ("warn", "not confirmed by QQ", "没有得到 QQ 的确认"),
    }
    for outcome, (tone, english, chinese) in ends.items():
        for language, words in (("en", english), ("zh", chinese)):
            async with visiting() as place:
                await place.log_in()
                one = trace()
                refused = replace(one.spans[-1], outcome="refused")
                one = replace(one, row=replace(one.row, outcome=outcome), spans=(*one.spans[:-1], refused))
                place.journal.traces.append(one)
                asked = {"Accept-Language": language}
                _, text, _ = await place.ask("GET", f"/turns?outcome={outcome}", headers=asked)
                assert place.journal.queries[-1].outcome == outcome
                assert f'<option value="{outcome}" selected>{words}</option>' in text
                assert f'<li class="turn {tone}">' in text
                _, text, _ = await place.ask("GET", "/turns/t1", headers=asked)
                assert f'<b class="pill {tone}">{words}</b>' in text
                assert {"en": "(refused by QQ)", "zh": "（QQ 拒绝）"}[language] in text


async def test_of_a_turn_its_own_requests_are_counted_and_drawn_and_those_on_errands_are_named_below() -> None:
    async with visiting() as place:
        await place.log_in()
        failed = [Span(kind="failed", name="m", begin=NOW + n, seconds=1.0, outcome="overloaded:500") for n in range(4)]
        errands = (
            Span(kind="model", name="m2", begin=NOW + 900, seconds=3.0, outcome="ok", run="facts"),
            Span(kind="failed", name="m2", begin=NOW + 950, seconds=3.0, outcome="timeout", run="summary"),
            Span(kind="failed", name="m2", begin=NOW + 990, seconds=3.0, outcome="rate_limit:429", run="later"),
        )
        one = trace()
        row_ = replace(one.row, outcome="failed", usage=UsageSum(), error="overloaded: x")
        place.journal.traces.append(replace(one, row=row_, spans=(*failed, *errands)))
        _, text, _ = await place.ask("GET", "/turns/t1", headers=ENGLISH)
        summary = text[text.index('<p class="summary">') :].partition("</p>")[0]
        assert "<span>4 requests · 4 failed</span>" in summary
        assert text.count('class="fill"') == 4
        assert text.count("HTTP 500: error inside the server") == 4
        assert "overloaded" not in summary
        axis = re.search(r'<div class="axis spans quiet"[^>]*>(.*?)</div>', text)
        assert axis
        assert re.findall(r"<span>([^<]*)</span>", axis[1]) == ["0 s", "2.0 s", "4.0 s"]
        below = text[text.index("Beside the answer") :]
        for words in ("Fact extraction</b> m2", "Summary</b> m2", "took too long", "After the answer</b>", "HTTP 429"):
            assert words in below, words
        place.journal.traces[:] = [replace(one, row=row_, spans=(failed[0],))]
        _, text, _ = await place.ask("GET", "/turns/t1", headers=ENGLISH)
        assert "<span>1 request · 1 failed</span>" in text
        assert "Beside the answer" not in text


@each_case(
    ("outcome", "english"),
    [
        ("overloaded:500", "HTTP 500: error inside the server"),
        ("overloaded:502", "HTTP 502: bad gateway"),
        ("overloaded:503", "HTTP 503: service unavailable"),
        ("overloaded:529", "HTTP 529: overloaded"),
        ("overloaded", "server busy or broken"),
        ("billing:402", "no money left there (HTTP 402)"),
        ("auth:401", "the key was refused (HTTP 401)"),
        ("auth:x", "auth:x"),
        ("ok", "ok"),
    ],
)
def test_a_status_is_told_in_its_own_words(outcome: str, english: str) -> None:
    assert request_outcome_text(language_named("en"), outcome) == english


async def test_a_row_that_goes_on_says_so() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.silent.append(row("t2", outcome="running"))
        assert "is running" in (await place.ask("GET", "/turns", headers=ENGLISH))[1]


async def test_a_failed_row_says_the_status_and_its_chat_by_a_name_that_people_use() -> None:
    async with visiting() as place:
        await place.log_in()
        row = replace(trace().row, outcome="failed", group="")
        cases = {
            ("overloaded: boom", "overloaded:500"): "HTTP 500: error inside the server",
            ("overloaded: boom", ""): "server busy or broken",
            ("auth: no", "overloaded:500"): "the key was refused",  # it is not what the turn failed of
        }
        for (error, refusal), words in cases.items():
            place.journal.traces[:] = [replace(trace(), row=replace(row, error=error, refusal=refusal))]
            _, text, _ = await place.ask("GET", "/turns", headers=ENGLISH)
            listed = text.partition('<ul class="turns"')[2]
            assert f'<span class="because quiet">{words}</span>' in listed
            assert f" · group {GROUP.session_id}</span>" in listed
        _, text, _ = await place.ask("GET", "/turns/t1", headers=ENGLISH)
        assert f"> · group {GROUP.session_id} · " in text


async def test_filters_that_are_set_are_named_and_their_form_is_closed_above_the_rows() -> None:
    """On a phone it is as high as the screen, and a tile of Today leads here."""
    async with visiting() as place:
        await place.log_in()
        place.journal.traces.append(trace())
        address = f"/turns?where={quote(str(GROUP))}&outcome=failed&since=2026-11-23T14:05&cost=0.05"
        _, text, _ = await place.ask("GET", address, headers=ENGLISH)
        assert '<details class="card filter">' in text
        (told,) = re.findall(r"<summary>Filter <span[^>]*>([^<]*)</span></summary>", text)
        assert re.fullmatch(r".*group 4242.*, failed, from 2026-11-23 14:05, at least \$0.05", told), told
        _, text, _ = await place.ask("GET", "/turns", headers=ENGLISH)
        assert "<summary>Filter</summary>" in text
        place.journal.traces.clear()
        _, text, _ = await place.ask("GET", address, headers=ENGLISH)
        assert '<details class="card filter" open>' in text  # there is nothing else to see
