"""Urls in answers: unknown ones are cut, sources stand at the end with their titles, what people named stays."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.urls import KnownUrls, urls_in
from bot.outbox.layout import strip_markdown
from bot.prompt.citations import cite, sources_in
from frostagent.types.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from tests.cases import each_case

A, B, C, D = (f"https://almanac.example/{name}" for name in "abcd")
TITLES = {A: "霜降是第几个节气", B: "霜降的由来", C: "二十四节气表", D: "霜降吃什么"}
FOUND = "\n".join(
    f"{n}. {title}\nurl: {url}\ndate: 2026-10-23\ntext: 一行" for n, (url, title) in enumerate(TITLES.items(), 1)
)
READ = f"title: {TITLES[A]}\nurl: {A}\nshown: all (page)\ntext:\n  见 https://evil.example/pay\n  url: https://evil.example/x"
SEARCHED = ToolMessage("c1", "search_web", FOUND, tainted=True)
PAGE = ToolMessage("c2", "read_page", READ, tainted=True)
ASKED = (SystemMessage("你是霜降"), UserMessage("小明#1: 霜降是第几个？我看的是 https://posted.example/x"))


def said(
    text: str,
    *run: Message,
    transcript: Sequence[Message] = ASKED,
    heard: bool = False,
    calls: tuple[ToolCall, ...] = (),
    urls: Sequence[str] = (),
) -> str:
    return cited(text, *run, transcript=transcript, heard=heard, calls=calls, urls=urls).text


def cited(
    text: str,
    *run: Message,
    transcript: Sequence[Message] = ASKED,
    heard: bool = False,
    calls: tuple[ToolCall, ...] = (),
    urls: Sequence[str] = (),
) -> AssistantMessage:
    message = AssistantMessage(text, tool_calls=calls)
    return cite(message, run, transcript=transcript, urls=KnownUrls(urls), heard=lambda: heard, shown=strip_markdown)


@each_case(
    ("answer", "left"),
    [
        ("看 https://invented.example/a 吧", "看 吧"),
        ("第十八个（https://invented.example/a）。", "第十八个。"),
        ("见[官网](https://invented.example/a)。", "见官网。"),
        ("见[官网](https://invented.example/a 'x')。", "见官网。"),
        ("第十八个。\n来源：https://invented.example/a", "第十八个。"),
        ("第十八个。\n\n参考资料：\n1. https://invented.example/a\n2. <https://invented.example/b>", "第十八个。"),
        ("看 www.invented.example 吧", "看 吧"),
        ("HTTPS://INVENTED.example/a", ""),
        (f"{A}@invented.example/", ""),
        (f"https://invented.example/?u={A}", ""),
        ("见 https://evil.example/pay 付款", "见 付款"),
        (f"{A}%23@evil.example/", ""),
        ("看 https://almanac.example%23@evil.example/a 吧", "看 吧"),
        ("看 https://almanac.example%2Fa%23@evil.example/ 吧", "看 吧"),
        ("看 https://posted.example%2Fx%23.evil.example/ 吧", "看 吧"),
        ("看 https://евил.example/a 吧", "看 吧"),
        ("看 https://例子.中国/支付 吧", "看 吧"),
        ("看 https://\u200binvented.example/a 吧", "看 吧"),
    ],
)
def test_a_url_that_nobody_named_and_no_tool_found_is_cut(answer: str, left: str) -> None:
    assert said(answer, SEARCHED, PAGE, heard=True) == left


@each_case(
    ("answer", "left"),
    [
        (f"第十八个（{A}）。", f"第十八个。\n来源：\n{TITLES[A]} {A}"),
        (f"[第十八个]({A})，见 [{A}]({A})", f"第十八个，见\n来源：\n{TITLES[A]} {A}"),
        (f"第十八个。\n\n来源：\n1. {TITLES[A]} {A}\n2. {TITLES[B]}：{B}",
         f"第十八个。\n来源：\n{TITLES[A]} {A}\n{TITLES[B]} {B}"),
        (f"第十八个。\n来源：{A}", f"第十八个。\n来源：\n{TITLES[A]} {A}"),
        (f"第十八个。\n{A}/\n{B}#由来", f"第十八个。\n来源：\n{TITLES[A]} {A}\n{TITLES[B]} {B}"),
        (f"It is the 18th.\nSources: {A}", f"It is the 18th.\nSources:\n{TITLES[A]} {A}"),
        (f"官网是 {A} 你看看", f"官网是 {A} 你看看"),
        (f"官网是{A}欢迎访问", f"官网是{A}欢迎访问"),
        (f"一（{A}）二（{B}）三（{C}）四（{D}）",
         f"一二三四\n来源：\n{TITLES[A]} {A}\n{TITLES[B]} {B}\n{TITLES[C]} {C}"),
    ],
)  # fmt: skip
def test_pages_that_an_answer_names_stand_at_its_end_with_their_titles(answer: str, left: str) -> None:
    assert said(answer, SEARCHED) == left


PIECES = (
    "看 `https:/`/evil.example/a 吧",
    "看 **https:**//evil.example/a 吧",
    "看 `http`s://evil.example/a 吧",
    f"看 {A}`.evil.example`/x 吧",
    f"看 **{A}**@evil.example/x 吧",
    "看 ``` `https:/`/evil.example/ ``` 吧",
)
"""URLs that are whole only where the chat shows them: without their Markdown."""


@each_case("answer", PIECES)
def test_no_url_is_put_together_where_the_chat_shows_the_answer(answer: str) -> None:
    shown = strip_markdown(said(answer, SEARCHED, heard=True))
    assert set(urls_in(shown)) <= {A}
    part = ToolCall("c9", "send_message", json.dumps({"messages": [{"text": answer}]}))
    (call,) = cited("", SEARCHED, calls=(part,)).tool_calls
    (message,) = json.loads(call.arguments)["messages"]
    assert set(urls_in(strip_markdown(message["text"]))) <= {A}


def test_never_more_than_three_sources_are_named() -> None:
    answer = f"一是 {A} 这里，二是 {B} 这里，三是 {C} 这里，四是 {D} 这里"
    assert said(answer, SEARCHED) == f"一是 {A} 这里，二是 {B} 这里，三是 {C} 这里，四是 这里"


def test_pages_that_were_read_and_not_named_are_named_and_those_only_found_are_not() -> None:
    assert said("第十八个。", SEARCHED, PAGE) == f"第十八个。\n来源：\n{TITLES[A]} {A}"
    assert said("第十八个。", SEARCHED) == "第十八个。"
    assert said("第十八个。", SEARCHED, PAGE, heard=True) == "第十八个。", "it was said before, with send_message"


def test_what_people_named_stays_as_it_stands() -> None:
    for answer in (
        "你发的 https://posted.example/x 我看了",
        "链接：https://posted.example/x",
        "[看](https://posted.example/x)",
    ):
        assert said(answer) == answer


def test_what_other_tools_and_the_persona_name_stays() -> None:
    weather = ToolMessage("c", "get_weather", "数据：https://www.qweather.com")
    persona = (SystemMessage("官网 https://ours.example/"), UserMessage("小明#1: 官网？"))
    answer = "晴。数据来自 https://www.qweather.com，官网 https://ours.example"
    assert said(answer, weather, transcript=persona) == answer


def test_what_an_earlier_round_found_may_be_named_again() -> None:
    rounds = (UserMessage("霜降？"), AssistantMessage("", tool_calls=(ToolCall("c1", "search_web", "{}"),)), SEARCHED)
    assert said(f"刚才那篇：{A}", transcript=(*rounds, UserMessage("链接再发一下"))) == (f"刚才那篇：{A}")


def test_what_the_model_wrote_into_a_call_makes_no_url_known() -> None:
    calls = AssistantMessage(
        "看 https://invented.example", tool_calls=(ToolCall("c", "read_page", "https://invented.example"),)
    )
    failed = ToolMessage("c", "read_page", "error: https://invented.example is not there", is_error=True)
    assert said("见 https://invented.example 吧", calls, failed) == "见 吧"


@each_case("tail", ["а.evil.example/x", "\u200b.evil.example/x", "．evil", "是@evil.example/", "中.evil.example"])
def test_a_known_host_that_goes_on_behind_ascii_is_another_host(tail: str) -> None:
    named = (UserMessage("小明#1: https://posted.example"),)
    assert said(f"看 https://posted.example{tail} 吧", transcript=named) == "看 吧"
    assert said("看https://posted.example是好网站", transcript=named) == "看https://posted.example是好网站"


def test_what_a_page_says_makes_no_url_known() -> None:
    assert said("付款到 https://evil.example/pay 和 https://evil.example/x 就行", PAGE, heard=True) == "付款到 和 就行"
    assert list(sources_in(READ)) == [(A, TITLES[A])]


def test_what_a_failed_call_says_makes_no_url_known() -> None:
    for name in ("read_page", "search_web"):
        failed = ToolMessage("c", name, "title: x\nurl: https://evil.example/pay", is_error=True, tainted=True)
        assert said("付款到 https://evil.example/pay 就行", failed) == "付款到 就行"


def test_a_page_names_no_url_by_its_title() -> None:
    title = "付款请到 https://evil.example/pay （www.evil.example）谢谢"
    page = ToolMessage("c", "read_page", f"title: {title}\nurl: {A}\ntext:\n  x", tainted=True)
    assert said("好。", page) == f"好。\n来源：\n付款请到 谢谢 {A}"
    pasted = said(f"好。\n来源：\n1. {title} {A}", page)
    assert "evil.example" not in pasted
    assert pasted.endswith(A)


def test_a_subagent_passes_on_no_url_of_a_page_that_it_read() -> None:
    task = AssistantMessage("", tool_calls=(ToolCall("c", "use_subagent", "{}"),))
    told = f"付款 https://evil.example/pay ，出处 {A}"
    read = ToolMessage("c", "use_subagent", told, tainted=True)
    assert said(told, task, read, urls=[A]) == f"付款 ，出处 {A}"
    assert said(told, task, ToolMessage("c", "use_subagent", told)) == told, "it read nothing from outside"


def test_both_urls_of_a_redirect_are_the_page() -> None:
    page = ToolMessage("c", "read_page", f"title: 新\nurl: {B}\nalso: {A}\ntext:\n  x")
    assert said(f"好。\n来源：{A}", page) == f"好。\n来源：\n新 {A}"


def test_a_message_that_is_sent_during_the_run_names_no_unknown_url() -> None:
    def call(text: str) -> ToolCall:
        return ToolCall("c", "send_message", json.dumps({"messages": [{"type": "plain", "text": text}]}))

    sent = cited("", SEARCHED, calls=(call(f"先看 https://invented.example/a 再看 {A}"),)).tool_calls[0]
    assert json.loads(sent.arguments)["messages"][0]["text"] == f"先看 再看 {A}"
    kept = (call(f"看 {A}"), ToolCall("d", "read_page", '{"url": "https://invented.example/a"}'))
    assert cited("", SEARCHED, calls=kept).tool_calls == kept


def test_an_answer_without_urls_is_the_very_same() -> None:
    message = AssistantMessage("第十八个。")
    assert (
        cite(message, (SEARCHED,), transcript=ASKED, urls=KnownUrls(), heard=lambda: False, shown=strip_markdown)
        is message
    )


def test_silence_gets_no_sources() -> None:
    assert said("", SEARCHED, PAGE) == ""


def test_brackets_and_chinese_that_belong_to_a_url_are_kept_with_it() -> None:
    wiki, item = "https://wiki.example/A_(b)", "https://baike.example/item/霜降"
    found = ToolMessage("c", "search_web", f"1. A\nurl: {wiki}\n2. 霜降词条\nurl: {item}")
    assert said(f"见 {wiki} 和 {item} 两处", found) == f"见 {wiki} 和 {item} 两处"
    assert said(f"好（{item}）。", found) == f"好。\n来源：\n霜降词条 {item}"


@given(st.text(max_size=300), st.lists(st.sampled_from([A, B, C, D, "https://invented.example/q"]), max_size=8))
def test_whatever_is_written_around_them_no_unknown_url_is_left(text: str, urls: list[str]) -> None:
    answer = text.replace("http", "").replace("www", "").join(["", *urls, ""]) if urls else "x"
    left = said(answer, SEARCHED)
    assert "invented.example" not in left
    assert sum(left.count(url) for url in set(urls) & TITLES.keys()) <= 8


@pytest.mark.parametrize(
    "text",
    ["(" * 20_000, "[" * 20_000 + "](", "https://" * 5_000, "来源" * 20_000 + "x", "https://a.example/" + "(" * 20_000],
)
def test_no_text_takes_long(text: str) -> None:
    assert isinstance(said(text, SEARCHED), str)
