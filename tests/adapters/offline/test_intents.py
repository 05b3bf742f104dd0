"""What questions are about, by example."""

from __future__ import annotations

from adapters.offline.intents import (
    Code,
    GameVersion,
    Greeting,
    Help,
    Intent,
    Opening,
    Other,
    Recap,
    SayNothing,
    SendIntent,
    Thanks,
    WeatherIntent,
    recognise,
)
from tests.cases import each_case


@each_case(
    "question",
    [
        "",
        "你好",
        "你好！",
        "早",
        "早上好",
        "在吗？",
        "hi",
        "Hello!",
        "hi there",
        "good morning everyone",
        "hello world",
        "😀",
    ],
)
def test_greetings(question: str) -> None:
    assert recognise(question) == Greeting()


@each_case(
    ("question", "intent"),
    [
        ("这张图是什么", Opening()),
        ("看看这张图片", Opening()),
        ("错过了什么", Recap()),
        ("别说话！", SayNothing()),
        ("别说话，听我说", Other()),
        ("谢谢", Thanks()),
        ("Thanks a lot", Thanks()),
        ("thank you!", Thanks()),
        ("你会什么", Help()),
        ("你能做什么？", Help()),
        ("帮助", Help()),
        ("help", Help()),
        ("/help", Help()),
        ("What can you do?", Help()),
        ("你是谁", Help()),
        ("who are you", Help()),
        ("你会写代码吗", Help()),
        ("can you code?", Help()),
        ("你是什么版本", Help()),
        ("what version are you", Help()),
        ("what is your version?", Help()),
    ],
)
def test_questions_about_the_bot(question: str, intent: Intent) -> None:
    assert recognise(question) == intent


@each_case(
    ("question", "intent"),
    [
        ("北京天气", WeatherIntent(("北京",))),
        ("weather in London", WeatherIntent(("London",))),
        ("今天天气真好", WeatherIntent(())),
        ("原神版本", GameVersion("原神")),
        ("minecraft version", GameVersion("minecraft")),
        ("现在版本是多少", GameVersion("")),
    ],
)
def test_look_ups(question: str, intent: Intent) -> None:
    assert recognise(question) == intent


@each_case(
    "question",
    [
        "写一个快速排序",
        "用python写个斐波那契",
        "帮我写一段代码",
        "write python code for the weather",
        "quicksort in python",
        "implement quick sort",
        "用 java 写 hello world",
        "give me a hello world in Rust",
        "can you write a quicksort",
    ],
)
def test_code_keeps_the_whole_task(question: str) -> None:
    assert recognise(f" {question} ") == Code(question)


@each_case(
    ("question", "picture"),
    [
        ("发张图", True),
        ("发一张图片", True),
        ("来张图", True),
        ("给我看张图片", True),
        ("send me a message with a picture", True),
        ("Show me a picture", True),
        ("发条消息", False),
        ("send me a message", False),
    ],
)
def test_messages_wanted(question: str, picture: bool) -> None:
    assert recognise(question) == SendIntent(picture)


@each_case(
    "question",
    [
        "讲个笑话",
        "写一首诗",
        "write a poem",
        "1+1=?",
        "what is in this picture?",
        "图书馆在哪",
        "给我推荐一本图书",
        "未来的图书馆",
        "hi, can you translate this",
        "你好，帮我翻译一下",
        "我们聊天气氛好一点",
    ],
)
def test_anything_else_is_not_guessed_at(question: str) -> None:
    assert recognise(question) == Other()


@each_case("unit", ["是什么", "会不会", "你好吗", "早上好", "on at ", "、", "send ", "天气", "版本的"])
def test_nobody_can_make_it_think_for_long(unit: str) -> None:
    """Where it could, this would not end within the time a test has."""
    for end in ("x", "x天气", "x版本", "x weather", "x version"):
        recognise((unit * 400)[:390] + end)
