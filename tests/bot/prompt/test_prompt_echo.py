from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from bot.prompt.compose import Question, now_facts, now_line, system_prompt, user_message
from bot.prompt.echo_detection import LONGEST, MOST_COLONS, PromptEcho, example_rounds, line_beginnings, repeated_answer
from bot.prompt.frame_removal import FrameRemover
from bot.prompt.participants import Participants
from bot.prompt.prompt_language import WORDINGS
from bot.prompt.wording import Wording
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from frostagent.text.similarity import letters_only
from frostagent.types.messages import AssistantMessage, UserMessage
from tests.bot.prompt import VIEW
from tests.cases import each_case
from tests.data.speech import entries
from tests.fakes import said

TALK = UserMessage(
    "[2026-11-24 星期二]\n[群聊记录 10:15-10:16]\n阿澈#1: 那就周六九点，东门见\n十七#2: 下周三是橘子的生日\n"
    "Alice#3: I have the tickets, Ray has the food\n小明#4 ↩阿澈#1「那就周六」: 太早了吧\n"
    "[提问 10:16]\n小明#4: 最后是怎么定下来的呢？"
)
READ = PromptEcho(
    (system_prompt("你是小霜，一只雪狐。", name="小霜", words=ZH), TALK),
    now="2026-11-24 星期二，群「我们的群」，提问的是普通成员",
    day="2026-11-24 星期二",
    place="我们的群",
    twice="东门集合，记得带水",
)


@each_case(
    "answer",
    [
        *(
            "17#2: 下周三是橘子的生日",
            "[10:22] Alice: I have the tickets, Ray has the food.",
            "阿澈：那就周六九点，东门见。",
        ),
        *(
            "那就周六九点，东门见",
            "阿澈: 那就周六九点，东门见\n十七: 下周三是橘子的生日",
            "小红: 最后是怎么定下来的呢？",
        ),
        *(
            "（已回答）",
            "(yes, thank you)",
            " [我们的群] ",
            "【收到】",
            "(小明 ↩阿澈: 好)",
            "小明 ↩阿澈「那就周六」: 好",
        ),
        *(
            "我们的群",
            "2026-11-24 星期二",
            "普通成员。",
            "群「我们的群」，提问的是普通成员",
            "谢谢(02-11-24 星期二，我们的群)",
        ),
        *(
            "我是小霜，提问的是普通成员。",
            "前面不写名字，名字后面不带号码。",
            "好，你上一次的回答是空的。现在用文字回答。",
        ),
        "东门集合，记得带水",
    ],
)
def test_what_a_small_model_said_back_of_its_prompt_is_doubted(answer: str) -> None:
    """As one of 0.5 B said it in groups."""
    assert READ.has(answer)


@each_case(
    "answer",
    [
        *("周六九点，东门见", "阿澈说周六九点，东门见", "九点", "2026-12-01 星期二", "是星期二", "不客气", "好的", ""),
        *(
            "第一周潜水员\n第二周阿飞\n第三周蒜蓉\n第四周沉舟",
            "小明: 去\n阿澈: 不去",
            "(a) 和 (b) 都行",
            "（笑）好",
            "好（笑）",
        ),
        *(
            "阿澈: 那就周六九点，东门见\n所以是九点",
            "大家都在我们的群里",
            "名字后面不带号码",
            "f(x): 定义域是全体实数",
            "12:30 见",
        ),
        *(
            "Alice has the tickets, Ray has the food",
            "东门",
            "下周三",
            "时间: 周六九点，东门见",
            "who: the tickets, Ray has",
        ),
    ],
)
def test_an_answer_of_its_own_is_not(answer: str) -> None:
    assert not READ.has(answer)


def test_few_honest_answers_are_doubted_and_which() -> None:
    """Each of them costs a request more, and none is lost (`tests/frostagent/engine/test_answer_filter.py`)."""
    assert {answer for answer in entries("honest.txt") if READ.has(answer)} == {
        "（未提及）",
        "(没有人知道他去了哪里)",
        "星期二。",
        "这里是「我们的群」。",
    }


@each_case("words", WORDINGS)
def test_the_moment_and_the_lines_we_render_are_doubted_in_either_language(words: Wording) -> None:
    view, message = replace(VIEW, words=words), said("what did they decide in the end?", at=False)
    prompt = user_message(Question(message), view)
    doubts = PromptEcho((prompt,), now=now_facts(message, view), day=view.date(message.time), place=message.group_name)
    for answer in (
        now_facts(message, view),
        now_line(now_facts(message, view), words),
        prompt.text.splitlines()[-1],
        *words.roles.values(),
    ):
        assert doubts.has(answer), answer


def test_where_nothing_was_read_nothing_but_brackets_are_doubted() -> None:
    assert not PromptEcho(()).has("九点")
    assert not PromptEcho(()).has("")
    assert PromptEcho(()).has("(noted)")


@given(st.text(alphabet="（()）:：\n↩a九 ", max_size=2 * LONGEST))
@example(":aaaaaa" * (LONGEST // 7))
@example("a: aaaaaa\n" * (LONGEST // 10))
@example("aaaaaa:" * LONGEST)
def test_a_line_of_an_answer_is_looked_for_a_few_times_however_it_goes_round(answer: str) -> None:
    """And in one that is longer than all that is said back, none."""
    said = replace(READ, read=(UserMessage(f"a: {answer}"),)).has(answer)
    assert not said or len(answer.strip()) <= LONGEST
    for line in answer.splitlines():
        sought = list(line_beginnings(line, letters_only(line)))
        assert len(sought) <= 1 + MOST_COLONS
        assert all("\n" not in one for one in sought)  # or it could begin in one message and end in the next


def test_what_is_looked_for_is_looked_for_in_each_text() -> None:
    assert list(line_beginnings("b: aaaaaa", letters_only("b: aaaaaa"))) == [": b: aaaaaa", ": aaaaaa"]
    read = (UserMessage("c: 1"), UserMessage("a: aaaaaa"), UserMessage("d: 2"))
    assert replace(READ, read=read).has("b: aaaaaa")
    assert not replace(READ, read=(UserMessage("a: "), UserMessage("aaaaaa"))).has("b: aaaaaa")


def test_who_asks_when_may_be_told_todays_day() -> None:
    for answer in ("2026-11-24 星期二", "星期二。"):
        assert READ.has(answer)
        for asked in ("今天几号", "周几？", "项目截止呢？", "When is it?"):
            assert not replace(READ, asked=asked).has(answer)
            assert replace(READ, asked=asked).has(READ.now)


@each_case(
    ("answers", "twice"), [("", ""), ("a", ""), ("ab", ""), ("aab", ""), ("baa", "a"), ("a_a", "a"), ("aaa", "a")]
)
def test_who_goes_round_has_said_it_twice_in_a_row(answers: str, twice: str) -> None:
    rounds = [(UserMessage("?"), AssistantMessage(one.strip("_"))) for one in answers]
    assert repeated_answer([message for round_ in rounds for message in round_]) == twice


@each_case(
    ("asked", "answer", "doubted"),
    [
        *(
            ("谢谢", "谢谢。", True),
            ("thanks!", "Thanks!", True),
            ("几点？", "几点", True),
            ("谢谢", "不客气～", False),
        ),
        *(
            ("晚安", "晚安～", False),
            ("good morning", "Good morning!", False),
            ("what do you say?", "What do you say", True),
            ("早", "早！", False),
        ),
    ],
)
def test_who_is_asked_says_no_question_back_but_greets_as_he_is_greeted(asked: str, answer: str, doubted: bool) -> None:
    assert replace(READ, asked=asked).has(answer) is doubted


@each_case(
    ("asked", "answer", "doubted"),
    [
        *(
            ("谁订蛋糕？", "十二天。", True),
            ("who has them?", "Fourteen.", True),
            ("去吗？", "去", False),
            ("表情", "哈哈", False),
        ),
        *(("谢谢", "不客气", False), ("晚安", "晚安", False), ("good night", "good night", False)),
    ],
)
def test_the_third_time_the_same_is_doubted_but_for_greetings_and_a_yes(asked: str, answer: str, doubted: bool) -> None:
    assert replace(READ, asked=asked, twice=answer).has(answer) is doubted


def test_the_name_of_the_group_in_our_signs_is_an_answer_to_who_asks_for_it() -> None:
    assert replace(READ, asked="你好").has("这里是「我们的群」。")
    for asked in ("这是什么群？", "这里叫什么", "我们在哪儿", "What is this group called?"):
        assert not replace(READ, asked=asked).has("这里是「我们的群」。")
        for answer in ("我们的群", "「我们的群」", "群「我们的群」"):
            assert READ.has(answer)
            assert not replace(READ, asked=asked).has(answer)
    assert not replace(READ, asked="你好", place="").has("「」")
    assert replace(READ, asked="这是什么群？").has("2026-11-24 星期二，群「我们的群」")


@each_case("asked", ["我是什么身份", "我是谁？", "我是管理员吗", "What's my role?", "Who am I here?"])
def test_who_asks_who_he_is_may_be_told_so(asked: str) -> None:
    for answer in ("普通成员", "提问的是普通成员。", "你就是提问的人，提问的是普通成员。"):
        assert replace(READ, asked="谁订蛋糕？").has(answer)
        assert not replace(READ, asked=asked).has(answer)
        assert replace(READ, asked=asked).has(READ.now)


@each_case("words", WORDINGS)
def test_who_asks_for_the_rules_of_the_group_may_be_told_them_but_not_ours(words: Wording) -> None:
    house = "一天最多发三张图，广告一律踢出去"
    system = system_prompt(f"你是小霜，一只雪狐。\n\n{house}", name="小霜", words=words)
    rules, ours = PromptEcho((system,)), system.text.splitlines()[-1]
    assert rules.has(house)
    for asked in ("群规是什么？", "有什么规矩", "What are the rules?", "is that allowed?"):
        assert not replace(rules, asked=asked).has(house)
        assert replace(rules, asked=asked).has(ours)


@each_case("words", WORDINGS)
def test_the_examples_are_questions_as_we_write_them_and_answers_without_a_frame(words: Wording) -> None:
    rounds = example_rounds(words)
    assert [type(one) for one in rounds] == [UserMessage, AssistantMessage] * (len(rounds) // 2) != []
    for one in rounds:
        lines = one.text.splitlines()
        if isinstance(one, UserMessage):
            assert any(line.startswith(f"[{words.question} ") for line in lines)
            assert lines[-1].startswith(words.heading(words.now))
            assert lines[-1].endswith(words.roles["member"])
            assert Participants.of([one]).called("91")
        else:
            assert FrameRemover(("小霜",), 10001, Participants.of(rounds)).cut(one.text) is one.text
            assert not PromptEcho(rounds).has(one.text)
    assert {ZH.examples, EN.examples} == {one.examples for one in WORDINGS}


def test_a_line_that_stands_twice_counts_twice() -> None:
    assert PromptEcho((UserMessage("[提问 14:10]\n小明#2: 在吗在吗"),), asked="在吗在吗").has("在吗\n在吗")
