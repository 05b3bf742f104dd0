from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.policy.fallback_replies import OURS
from bot.prompt.echo_detection import is_echo, is_greeting, repeats_whole
from frostagent.engine.answer_filter import ECHO, KnownTexts, is_call_error
from frostagent.text.similarity import is_similar, letters_only
from tests.cases import each_case


@each_case(
    ("question", "answer", "said_back"),
    [
        ("北京明天的天气怎么样？", "北京明天的天气怎么样", True),
        ("北京明天的天气怎么样？", "北京明天的天气怎么样呢？", True),
        ("北京 明天 的 天气，怎么样 ？", "北京明天的天气怎么样", True),
        ("How is the weather in Beijing tomorrow?", "how is the weather in beijing tomorrow", True),
        ("北京明天的天气怎么样？", "北京明天的天气不怎么样，有大雨", False),
        ("你好，北京明天的天气怎么样？", "你好，北京明天的天气怎么样？", True),
        ("请问一下，北京明天白天和晚上的天气怎么样？", "北京明天白天和晚上的天气怎么样？", False),  # 88 % of it
        ("在吗", "在吗", False),
        ("他是不是明天来北京开会", "他是明天来北京开会", False),
        ("周六的聚会改到晚上七点了吗？", "周六的聚会改到晚上七点了", False),
        ("谁是这次比赛的冠军队伍", "他是这次比赛的冠军队伍", False),
        ("#Q0000001", "#Q0000001...............", False),
        ("13800138000", "13800138000", False),
        ("小明明天下午不来学校上课", "小明明天下午来学校上课", False),
        ("珠穆朗玛峰的高度是8848米", "珠穆朗玛峰的高度是8849米", False),
        ("The meeting starts at 3 pm in room 204", "The meeting starts at 4 pm in room 204", False),
        ("格式化 select a, b from t where c", "SELECT a, b\nFROM t\nWHERE c", False),
        ("加标点 今天天气很好我们去公园玩吧", "今天天气很好，我们去公园玩吧。", False),
        ("祝大家新年快乐万事如意", "祝大家新年快乐万事如意！", False),
        ("跟我说：今天的风儿好喧嚣啊", "跟我说：今天的风儿好喧嚣啊", False),
        ("Repeat after me: the sky is blue", "Repeat after me: the sky is blue", False),
        ("念：我爱北京天安门广场", "我爱北京天安门广场", False),
        (
            "发一句: 今晚八点半开会不要迟到，带上电脑和充电器，还有上周的表",
            "今晚八点半开会不要迟到，带上电脑和充电器，还有上周的表。",
            False,
        ),
        ("Print: the quick brown fox jumps over the lazy dog", "The quick brown fox jumps over the lazy dog.", False),
        ("念：我爱北京天安门广场", "念：我爱北京天安门广场", True),
        ("问题：北京明天白天和晚上的天气怎么样？", "北京明天白天和晚上的天气怎么样？", True),
        ("python 怎么读环境变量", "python 怎么读环境变量。", True),  # asks how to read, not to read it out
        ("怎么翻译「今天天气很好」这句话", "今天天气很好，怎么翻译这句话", False),
        ("see you later!", "See you later!", False),
        ("Goodbye, see you all tomorrow!", "Goodbye, see you all tomorrow!", False),
        ("", "", False),
    ],
)
def test_a_question_said_back_is_no_answer_unless_it_is_a_greeting_or_asked_for(
    question: str, answer: str, said_back: bool
) -> None:
    assert is_echo(answer, question) is said_back


@each_case(
    ("text", "greets"),
    [
        *(("晚安啦", True), ("好的，谢谢你", True), ("see you later all", True), ("good night!", True)),
        *(
            ("what do you think?", False),
            ("你好，明天几点集合", False),
            ("see the new year plan", False),
            ("几点？", False),
            ("", False),
        ),
    ],
)
def test_a_greeting_says_hardly_anything_else(text: str, greets: bool) -> None:
    assert is_greeting(text) is greets


def test_a_part_of_what_we_told_it_is_said_back_and_few_letters_are_not() -> None:
    told = "until: '2026 Monday' is no time; write 14:02, 2026-11-22 14:02 or 2026-11-22"
    notices = KnownTexts("Answer now, in words.", told)
    assert notices.has("14:02, 2026-11-22 14:02 or 2026-11-22.")
    assert not notices.has("14:02")
    assert not notices.has("at 14:02, 2026-11-22, I think")
    ours = KnownTexts(*OURS)
    assert not any(map(ours.has, ("Delivered.", "I was restarted.", "请稍后再试。")))
    assert ours.has("My last answer could not be delivered.")
    assert ours.has("这次没能回答上来")
    assert is_call_error(f"error: {told} [TOOL_INVALID_ARGUMENTS]")
    assert not is_call_error("error: unexpected token [1, 2]")


@given(st.lists(st.text(alphabet="ab天", min_size=8, max_size=12), min_size=1, max_size=6))
def test_nearly_all_of_what_we_told_it_is_found_whatever_was_looked_for_before(told: list[str]) -> None:
    ours = KnownTexts(*told)
    for text in (*told, *(f"{one}!{one}" for one in told)):  # of lengths that some of them are near to
        ours.has(text)
    nearly = [f"{one[:6]}9{one[6:]}" for one in told]
    for text in (*told, *nearly, *(one[2:] for one in told)):
        assert ours.has(text) is KnownTexts(*told).has(text)
    assert KnownTexts(*told).has(nearly[0]) is is_similar(letters_only(nearly[0]), *told, least=ECHO) & (
        weight(nearly[0]) >= 24
    )


def weight(text: str) -> int:
    """In letters: a Chinese character is three."""
    return sum(3 if char == "天" else 1 for char in text)


@each_case(
    ("answer", "is_all"),
    [
        ("[2026-11-22 Sunday, group 「Friends」, a member is asking]", True),
        ("2026-11-22 Sunday, group Friends, a member is asking.", True),
        ("2026-11-22 Sunday", False),
        ("Today is 2026-11-22, a Sunday.", False),
        ("This is the group Friends, and you are a member of it.", False),
        ("", False),
    ],
)
def test_all_that_was_told_of_the_moment_is_no_answer_and_a_part_of_it_is_one(answer: str, is_all: bool) -> None:
    assert repeats_whole(answer, "2026-11-22 Sunday, group 「Friends」, a member is asking") is is_all


def test_where_nothing_was_told_of_the_moment_every_answer_is_one() -> None:
    assert not repeats_whole("fine", "")
    assert not repeats_whole("11:20", "11:20")  # too short to be more than chance
