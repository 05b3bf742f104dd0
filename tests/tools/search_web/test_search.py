"""Searching: what is asked once, who is left alone, how often a question may, and what is paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bot.core.ports import WebResponse
from frostagent.types.errors import InvalidArguments, ToolDenied, ToolFailed
from tests.adapters.fetching.replay import Replay, StoppedClock
from tests.tools.search_web.bodies import URL, found, path_of
from tests.tools.search_web.conftest import SearchWeb
from tools.search_web import search_web
from tools.search_web.search import MOST_SEARCHES, WebSearch
from tools.search_web.services import SearchQuery

QUERY = SearchQuery(words="霜降", count=2)


async def test_an_equal_search_within_ten_minutes_is_made_once(
    server: Replay, ask: SearchWeb, clock: StoppedClock
) -> None:
    server.tell(path_of("tavily"), found("tavily"))
    await ask("tavily")
    clock.time += 599
    await ask("tavily")
    assert len(server.asked) == 1
    await ask("tavily", count=2)
    assert len(server.asked) == 2
    clock.time += 2
    await ask("tavily")
    assert len(server.asked) == 3


async def test_equal_searches_at_the_same_time_are_one(server: Replay, make_search: Callable[..., WebSearch]) -> None:
    gate = asyncio.Event()
    server.tell(path_of("tavily"), found("tavily"), gate=gate)
    search = make_search("tavily")
    async with asyncio.TaskGroup() as group:
        both = [group.create_task(search.search(QUERY, run_id=run)) for run in ("a", "b")]
        await server.arrived.wait()
        gate.set()
    assert both[0].result() == both[1].result()
    assert len(server.asked) == 1


async def test_a_service_whose_quota_is_used_up_is_left_alone_for_ten_minutes(
    server: Replay, make_search: Callable[..., WebSearch], clock: StoppedClock
) -> None:
    server.tell(path_of("tavily"), {"detail": {"error": "limit"}}, status=432)
    search = make_search("tavily")
    for words in ("a", "b"):
        with pytest.raises(ToolFailed, match="used up"):
            await search.search(SearchQuery(words=words, count=1), run_id="r")
    assert len(server.asked) == 1
    server.tell(path_of("tavily"), found("tavily"))
    clock.time += 601
    assert await search.search(QUERY, run_id="r")


async def test_an_error_that_may_pass_is_tried_again(server: Replay, make_search: Callable[..., WebSearch]) -> None:
    server.tell(path_of("tavily"), "oops", status=500)
    search = make_search("tavily")
    with pytest.raises(ToolFailed, match="Tavily answered 500"):
        await search.search(QUERY, run_id="r")
    server.tell(path_of("tavily"), found("tavily"))
    assert await search.search(QUERY, run_id="r")


async def test_a_question_searches_six_times_and_another_one_still_may(
    server: Replay, make_search: Callable[..., WebSearch]
) -> None:
    server.tell(path_of("tavily"), found("tavily"))
    search = make_search("tavily")
    for number in range(MOST_SEARCHES):
        await search.search(SearchQuery(words=str(number), count=1), run_id="r")
    for run_id in ("r", "r/2/c1"):  # the question itself, and a subagent of its
        with pytest.raises(ToolDenied, match="answer with what was found"):
            await search.search(SearchQuery(words="one more", count=1), run_id=run_id)
    assert await search.search(SearchQuery(words="0", count=1), run_id="r"), "what is kept costs nothing"
    assert await search.search(SearchQuery(words="one more", count=1), run_id="another")


async def test_what_is_answered_is_paid_for_and_what_is_refused_or_kept_is_not(
    server: Replay, make_search: Callable[..., WebSearch]
) -> None:
    billed: list[bool] = []

    async def pay(call: Callable[[], Awaitable[WebResponse]], is_billed: Callable[[WebResponse], bool]) -> WebResponse:
        answer = await call()
        billed.append(is_billed(answer))
        return answer

    search = make_search("tavily", pay=pay)
    server.tell(path_of("tavily"), {"detail": {"error": "bad"}}, status=400)
    with pytest.raises(ToolFailed):
        await search.search(QUERY, run_id="r")
    server.tell(path_of("tavily"), found("tavily"))
    await search.search(QUERY, run_id="r")
    await search.search(QUERY, run_id="r")
    assert billed == [False, True]


async def test_searches_of_the_day_are_counted_with_what_was_kept_and_the_last_failure(
    server: Replay, make_search: Callable[..., WebSearch], clock: StoppedClock
) -> None:
    server.tell(path_of("tavily"), found("tavily"))
    search = make_search("tavily")
    for run in ("a", "b"):
        await search.search(QUERY, run_id=run)
    assert (search.today.done, search.today.reused, search.today.error, search.rests) == (1, 1, "", 0.0)
    server.tell(path_of("tavily"), {"detail": {"error": "limit"}}, status=432)
    for run in ("c", "d"):
        with pytest.raises(ToolFailed):
            await search.search(SearchQuery(words="x", count=1), run_id=run)
    assert (search.today.done, search.rests) == (1, 600.0)
    assert search.today.error.startswith("the quota or balance at Tavily is used up")
    assert search.today.failed_at == clock.now()
    clock.time += 599
    assert search.rests == 1.0
    clock.time += 86_400
    assert (search.today.done, search.rests) == (0, 0.0)


@pytest.mark.parametrize("site", ["localhost", "a b.example", "192.168.0.1", "x" * 80, "-.example"])
async def test_a_site_that_is_no_host_is_refused(site: str, ask: SearchWeb, server: Replay) -> None:
    with pytest.raises(InvalidArguments, match="is no host"):
        await ask("tavily", site=site)
    assert server.asked == []


async def test_words_are_needed_and_a_long_query_is_cut(ask: SearchWeb, server: Replay) -> None:
    with pytest.raises(InvalidArguments, match="no words"):
        await ask("tavily", query=" \n ")
    server.tell(path_of("zhipu"), found("zhipu"))
    await ask("zhipu", query="霜" * 500)
    assert server.asked[-1].json()["search_query"] == "霜" * 70


def test_what_it_finds_is_not_trusted_and_it_changes_nothing() -> None:
    assert not search_web.trusted_result
    assert search_web.side_effects.is_harmless


async def test_the_prompt_says_when_to_search_and_when_not_to() -> None:
    said = " ".join(search_web.description.split())
    assert "Search when the answer may have changed" in said
    assert "Do not search for small talk, opinions, arithmetic, translation" in said
    assert len(said) < 700, "it is in every prompt"


async def test_results_are_as_many_as_were_asked_for(ask: SearchWeb, server: Replay) -> None:
    rows = [(f"t{n}", f"{URL}/{n}", "", "") for n in range(20)]
    server.tell(path_of("searxng"), found("searxng", *rows))
    assert (await ask("searxng", count=8)).count("url: ") == 8
