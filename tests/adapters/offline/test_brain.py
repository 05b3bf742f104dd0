"""What the demo model does with a transcript: a table for each thing it can do."""

from __future__ import annotations

import json
from typing import Any

from adapters.offline.brain import DemoCall, Thought, think
from tests.cases import each_case

TOOLS = ("send_message", "use_subagent", "get_weather", "get_game_version")
PERSONA = {"role": "system", "content": "You are FrostAgent."}
CODER = {"role": "system", "content": "You are Coder, you write code."}


class Talk:
    """A conversation with the model, one question long: what it calls is answered by `results`, in order."""

    def __init__(self, question: str, *, tools: tuple[str, ...] = TOOLS, system: dict[str, Any] = PERSONA) -> None:
        self.tools = tools
        self.messages: list[dict[str, Any]] = [system, {"role": "user", "content": f"user1#20001: @bot {question}"}]

    def think(self) -> Thought:
        return think(self.messages, self.tools)

    def call(self) -> DemoCall:
        (call,) = self.think().calls
        return call

    def text(self) -> str:
        thought = self.think()
        assert thought.calls == ()
        return thought.text

    def answer(self, *results: str) -> Talk:
        """Let the tools it just called answer."""
        calls = [
            {"id": f"{len(self.messages)}-{number}", "type": "function",
             "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
            for number, call in enumerate(self.think().calls)
        ]  # fmt: skip
        self.messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        for call, result in zip(calls, results, strict=True):
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return self


# --- words ----------------------------------------------------------------------------------------


@each_case(
    ("question", "part"),
    [
        ("", "demo model"),
        ("hello", "demo model"),
        ("你好", "演示模型"),
        ("help", "LLM_BASE_URL"),
        ("你能做什么", "LLM_BASE_URL"),
        ("thanks", "welcome"),
        ("谢谢", "不客气"),
        ("weather?", "Which city"),
        ("天气怎么样", "哪个城市"),
        ("which version?", "Which game"),
        ("版本是多少", "哪个游戏"),
    ],
)
def test_some_questions_need_only_words(question: str, part: str) -> None:
    assert part in Talk(question).text()


@each_case("question", ["tell me a joke", "讲个笑话"])
def test_what_it_cannot_do_it_says_and_how_to_connect_a_real_model(question: str) -> None:
    words = Talk(question).text()
    assert all(name in words for name in ("LLM_BASE_URL", "LLM_API_KEY", "LLM_MODEL"))


def test_the_same_request_gets_the_same_answer() -> None:
    assert Talk("北京天气").think() == Talk("北京天气").think()


# --- looking things up ----------------------------------------------------------------------------


@each_case(
    ("question", "name", "arguments", "result", "answer"),
    [
        ("北京天气", "get_weather", {"city": "北京"}, "北京 晴 20°C", "查到了：北京 晴 20°C"),
        ("weather in London", "get_weather", {"city": "London"}, "rain", "Here is what I found: rain"),
        ("原神版本", "get_game_version", {"game": "原神"}, "5.0", "查到了：5.0"),
        ("minecraft version", "get_game_version", {"game": "minecraft"}, "1.21", "Here is what I found: 1.21"),
    ],
)
def test_a_look_up_calls_its_tool_and_passes_on_the_result(
    question: str, name: str, arguments: dict[str, str], result: str, answer: str
) -> None:
    talk = Talk(question)
    assert talk.call() == DemoCall(name, arguments)
    assert talk.answer(result).text() == answer


def test_several_cities_are_asked_for_at_once() -> None:
    talk = Talk("北京和上海的天气")
    assert talk.think().calls == (DemoCall("get_weather", {"city": "北京"}), DemoCall("get_weather", {"city": "上海"}))
    words = talk.answer("晴", "error: took too long [TOOL_TIMEOUT]").text()
    assert words == "查到了：晴\n抱歉，没有查到上海的天气：等了太久没有回应。"


@each_case(
    ("result", "answer"),
    [
        ("error: boom [TOOL_EXECUTION_FAILED]", "the tool could not do it; use other words, or try again later"),
        ("error: no [TOOL_DENIED]", "it is not allowed here"),
        ("error: no [TOOL_UNAVAILABLE]", "the tool is not available now"),
        ("error: city: required [TOOL_INVALID_ARGUMENTS]", "I did not get the request right"),
        ("error", "the tool could not do it; use other words, or try again later"),
    ],
)
def test_a_failure_becomes_a_polite_sentence(result: str, answer: str) -> None:
    words = Talk("weather in Rome").answer(result).text()
    assert words == f"Sorry, I could not find the weather in Rome: {answer}."


@each_case(
    ("question", "tool"),
    [
        ("北京天气", "get_weather"),
        ("minecraft version", "get_game_version"),
        ("发张图", "send_message"),
        ("写个快排", "use_subagent"),
    ],
)
def test_a_tool_that_is_not_there_is_named(question: str, tool: str) -> None:
    tools = tuple(name for name in TOOLS if name != tool)
    assert tool in Talk(question, tools=tools).text()


def test_results_are_told_even_when_no_tool_may_be_called_any_more() -> None:
    talk = Talk("北京天气").answer("晴")
    talk.tools = ()
    assert talk.text() == "查到了：晴"


# --- sending --------------------------------------------------------------------------------------


def test_a_picture_is_sent_with_words_and_then_confirmed() -> None:
    talk = Talk("send me a message with a picture")
    pieces = [{"type": "plain", "text": "Here is a snowflake:"}, {"type": "image", "path": "demo.png"}]
    assert talk.call() == DemoCall("send_message", {"messages": pieces})
    assert talk.answer("sent").text() == "There it is."


def test_a_message_is_sent_without_a_picture() -> None:
    (piece,) = Talk("发条消息").call().arguments["messages"]
    assert piece["type"] == "plain"


def test_a_message_that_did_not_go_out_is_regretted() -> None:
    assert Talk("发张图").answer("error: muted [TOOL_DENIED]").text() == "抱歉，没能发出去：没有权限。"


# --- code -----------------------------------------------------------------------------------------


@each_case(
    ("question", "done"),
    [("写一个快速排序", "Coder 说：\ncode"), ("quicksort in python", "Coder says:\ncode")],
)
def test_coder_is_announced_then_asked_then_passed_on(question: str, done: str) -> None:
    talk = Talk(question)
    announced = talk.call()
    assert announced.name == "send_message"
    assert "Coder" in announced.arguments["messages"][0]["text"]
    assert talk.answer("sent").call() == DemoCall("use_subagent", {"subagent_name": "Coder", "content": question})
    assert talk.answer("code").text() == done


def test_coder_is_asked_even_when_nothing_could_be_said_before() -> None:
    assert Talk("写一个快速排序").answer("error: muted [TOOL_DENIED]").call().name == "use_subagent"
    assert Talk("写一个快速排序", tools=("use_subagent",)).call().name == "use_subagent"


def test_a_coder_that_fails_is_excused() -> None:
    talk = Talk("写一个快速排序").answer("sent").answer("error: slow [TOOL_TIMEOUT]")
    assert talk.text() == "抱歉，Coder 没能写出来：等了太久没有回应。"


@each_case(
    ("task", "part"),
    [
        ("写一个快速排序", "```python\ndef quicksort"),
        ("fibonacci", "```python\ndef fibonacci"),
        ("hello world in Java", "only knows Python"),
        ("写一个操作系统程序", "只背下了几个小程序"),
        ("a compiler", "only a few small programs"),
    ],
)
def test_coder_writes_what_it_knows_and_says_what_it_does_not(task: str, part: str) -> None:
    messages = [CODER, {"role": "user", "content": task}]
    assert part in think(messages, ()).text


def test_a_greeting_is_no_task_even_for_coder() -> None:
    assert "demo model" in think([CODER, {"role": "user", "content": "hello"}], ()).text


def test_without_any_tool_it_writes_the_code_itself() -> None:
    assert "def quicksort" in Talk("写一个快速排序", tools=()).text()


def test_without_any_tool_the_rest_is_as_honest_as_ever() -> None:
    assert "get_weather" in Talk("北京天气", tools=()).text()
    assert "LLM_BASE_URL" in Talk("tell me a joke", tools=()).text()


# --- in the group ---------------------------------------------------------------------------------


@each_case(
    ("question", "call", "answer"),
    [
        ("刚才聊了些什么？", DemoCall("chat_log", {}), "之前的聊天记录：\n阿澈#1: 早"),
        ("what did I miss?", DemoCall("chat_log", {}), "This was said before:\n阿澈#1: 早"),
        ("看看这个文件 [文件 a3 作业.txt 1.2 KB]", DemoCall("look", {"id": "a3"}), "我打开看了：\n阿澈#1: 早"),
        ("这个文件讲了什么 [文件 a3 报告.docx 21 KB]", DemoCall("look", {"id": "a3"}), "我打开看了：\n阿澈#1: 早"),
        ("what does this file say? [file a3 x.pdf]", DemoCall("look", {"id": "a3"}), "I have opened it:\n阿澈#1: 早"),
        ("look at this [picture i7]", DemoCall("look", {"id": "i7"}), "I have opened it:\n阿澈#1: 早"),
    ],
)
def test_what_was_said_and_shared_is_opened(question: str, call: DemoCall, answer: str) -> None:
    talk = Talk(question, tools=("chat_log", "look"))
    assert talk.call() == call
    assert talk.answer("阿澈#1: 早").text() == answer


def test_of_a_document_only_the_beginning_is_passed_on() -> None:
    talk = Talk("这个文件讲了什么 [文件 a3 报告.docx 21 KB]", tools=("look",))
    head = "阿澈#1: [文件 a3 报告.docx]\n  shown: all (Word document)\n"
    told = f"{head}  text:\n    # 通知\n    本周五放假一天，请大家相互转告。\n    落款"
    talk.call()
    assert talk.answer(told).text() == "我打开看了：\n本周五放假一天，请大家相互转告。"


def test_what_is_not_there_is_not_opened() -> None:
    assert "LLM_BASE_URL" in Talk("这是什么", tools=("look",)).text()


def test_it_keeps_quiet_where_it_can() -> None:
    assert Talk("别说话", tools=("stay_silent",)).call() == DemoCall("stay_silent", {})


def test_a_story_is_longer_than_a_message_and_a_table_is_markdown() -> None:
    for question in ("讲个长故事", "tell me a long story"):
        assert len(Talk(question).text()) > 1500
    for question in ("画个表格", "draw a table"):
        assert "|---|" in Talk(question).text()


# --- errands --------------------------------------------------------------------------------------


def errand(mark: str, asked: str) -> str:
    return think([{"role": "system", "content": f"{mark} do it"}, {"role": "user", "content": asked}], ()).text


@each_case(
    ("mark", "asked", "words"),
    [
        ("[省流]", "14:01 小明: 去吗\n14:02 阿澈: 去\n14:03 小明: 好", "小明（2 条）：好\n阿澈（1 条）：去"),
        ("[Recap]", "14:01 Tom: hike?\n14:02 Ann: yes", "Tom (1): hike?\nAnn (1): yes"),
        ("[戳一戳]", "[戳一戳] 「小红」戳了戳你。", "诶，谁戳我？我在呢。"),
        ("[Poke]", "[Poke] Somebody poked you.", "Hey, who was that? I am here."),
        ("[插话]", "[刚才]\n14:01 小明: 好\n14:02 小红: 有人会吗", '{"number": 9, "reason": "demo"}'),
        ("[插话]", "[刚才]\n14:01 小明: 有人会吗\n14:02 小红: 有，谢谢", '{"number": 0, "reason": "demo"}'),
        ("[Chime in]", "[Just now]\n14:01 Tom: is it open?", '{"number": 6, "reason": "demo"}'),
        ("[Chime in]", "[Just now]\n14:01 Tom: ok", '{"number": 2, "reason": "demo"}'),
        ("[招呼]", "[招呼] 小红、老李 刚加入群「摸鱼群」。说一句话", "欢迎 小红、老李，随便坐！"),
        ("[Greeting]", "[Greeting] Tom just left the group 「Fish」.", "Goodbye, Tom!"),
        ("[Recap]", "(1) a hike\n(2) lunch", "a hike\nlunch"),
    ],
)
def test_it_recaps_by_who_said_how_much_and_what_last_and_greets_by_name(mark: str, asked: str, words: str) -> None:
    assert errand(mark, asked) == words


# --- the web --------------------------------------------------------------------------------------

WEB = ("search_web", "read_page")
FOUND = (
    "1. 霜降\nurl: https://a.example/1\ntext: 第十八个节气\n"
    "2. 节气表\nurl: https://a.example/2\n3. 三\nurl: https://a.example/3"
)
PAGE = (
    "title: 霜降\nurl: https://a.example/1\nshown: all (page)\ntext:\n"
    "  ## 由来\n  霜降是二十四节气中的第十八个，在十月二十三日前后。"
)


@each_case(
    ("question", "words"),
    [
        ("搜一下霜降是第几个节气", "霜降是第几个节气"),
        ("帮我上网查一下 桂花糕 怎么做？", "桂花糕 怎么做"),
        ("搜索：猫为什么打呼噜", "猫为什么打呼噜"),
        ("search for why cats purr?", "why cats purr"),
        ("please google python 3.14", "python 3.14"),
    ],
)
def test_what_is_to_be_searched_is_searched(question: str, words: str) -> None:
    assert Talk(question, tools=WEB).call() == DemoCall("search_web", {"query": words})


def test_the_first_three_pages_are_read_and_named() -> None:
    talk = Talk("搜一下霜降", tools=WEB).answer(FOUND)
    urls = [call.arguments["url"] for call in talk.think().calls]
    assert urls == ["https://a.example/1", "https://a.example/2", "https://a.example/3"]
    answer = talk.answer(PAGE, "error: gone [TOOL_EXECUTION_FAILED]", PAGE).text()
    assert "霜降是二十四节气中的第十八个" in answer
    assert answer.endswith("来源：https://a.example/1 https://a.example/2 https://a.example/3")


def test_without_a_reader_it_says_what_the_search_told() -> None:
    assert "第十八个节气" in Talk("搜一下霜降", tools=("search_web",)).answer(FOUND).text()


def test_nothing_found_and_a_search_that_fails_are_said() -> None:
    assert "没搜到“霜降”" in Talk("搜一下霜降", tools=WEB).answer("Nothing was found.").text()
    assert "搜不了" in Talk("搜一下霜降", tools=WEB).answer("error: away [TOOL_EXECUTION_FAILED]").text()


def test_a_link_is_read() -> None:
    talk = Talk("这个讲了什么 https://a.example/1。", tools=WEB)
    assert talk.call() == DemoCall("read_page", {"url": "https://a.example/1"})
    assert "第十八个" in talk.answer(PAGE).text()
    failed = Talk("看看 https://a.example/1", tools=WEB).answer("error: gone [TOOL_EXECUTION_FAILED]")
    assert "没读成" in failed.text()


@each_case(
    ("asked", "url"),
    [("这个讲了什么", "https://a.example/1"), ("what is this about", "https://a.example/1"), ("你好", "")],
)
def test_a_link_that_a_question_quotes_is_read_if_it_is_asked_about(asked: str, url: str) -> None:
    shown = "[涉及的链接] https://a.example/1 https://b.example/\n[涉及的链接] 如果是问"
    talk = Talk(f"[提问 14:00]\n小明#1: [引用 阿澈#2 的「看」] {asked}\n{shown}", tools=WEB)
    calls = talk.think().calls
    assert [call.arguments["url"] for call in calls] == ([url] if url else [])


@each_case(("mark", "said"), [("[概括网页]", "一。\n二！\n三"), ("[Sum up a page]", "一。\n二！\n三")])
def test_a_page_is_summed_up_in_three_lines(mark: str, said: str) -> None:
    def summary(page: str) -> str:
        return think([{"role": "system", "content": f"{mark} x"}, {"role": "user", "content": page}], ()).text

    assert summary("标题\n  # 由来\n  一。二！三\n  四") == said
    assert summary("标题\n  # 由来") == "NONE"


@each_case("mark", ["[概括新内容]", "[Sum up news]"])
def test_each_new_entry_of_a_feed_is_summed_up_by_its_first_sentence(mark: str) -> None:
    news = "(1) 标题\n  一。二。\n(2) 别的\n  三！四"
    told = think([{"role": "system", "content": f"{mark} x"}, {"role": "user", "content": news}], ()).text
    assert told == "1. 一。\n2. 三！"


def test_of_a_video_its_words_are_told_and_not_its_numbers() -> None:
    told = "  Statistics: 20,815 views, 96 likes\n  # Description\n  霜降是怎么来的，各地吃什么。"
    page = f"title: 霜降\nurl: https://a.example/1\ntext:\n{told}"
    answer = Talk("这个讲了什么 https://a.example/1", tools=WEB).answer(page).text()
    assert "霜降是怎么来的" in answer
    assert "Statistics" not in answer


def test_a_feed_is_subscribed_to_rather_than_read() -> None:
    talk = Talk("订阅 https://a.example/feed.xml", tools=(*WEB, "subscribe"))
    assert talk.call() == DemoCall("subscribe", {"url": "https://a.example/feed.xml"})
    assert talk.answer("已订阅 J1：新闻").text() == "好。已订阅 J1：新闻"
    summed = Talk("订阅 https://a.example/feed.xml，每条带概括", tools=("subscribe",))
    assert summed.call() == DemoCall("subscribe", {"url": "https://a.example/feed.xml", "summary": True})
    failed = Talk("subscribe to https://a.example/feed.xml", tools=("subscribe",))
    assert "could not subscribe" in failed.answer("error: no feed [TOOL_EXECUTION_FAILED]").text()


def test_without_the_tools_such_words_mean_what_they_meant() -> None:
    assert Talk("搜一下北京天气").call() == DemoCall("get_weather", {"city": "北京"})
