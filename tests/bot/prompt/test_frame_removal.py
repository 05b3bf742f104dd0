from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from bot.core.events import Sender
from bot.prompt.compose import Question, now_facts, now_line, user_message
from bot.prompt.frame_removal import REMEMBERED, FrameRemover
from bot.prompt.participants import Participants
from bot.prompt.prompt_language import WORDINGS
from bot.prompt.render import line, speaker
from bot.prompt.speaker_headings import heading_of, speakers_in_json
from bot.prompt.wording import Wording
from frostagent.types.messages import UserMessage
from tests.bot.prompt import VIEW
from tests.cases import each_case
from tests.data.speech import entries, pairs
from tests.fakes import said

PROMPT = UserMessage(
    "[群聊记录]\n阿澈(2002): hi @小红(3003) 在吗\n老王(88888): [引用 李 四(4444) 的「嗯」] 好\n"
    "[提问] 消息号 8\n小明(777): 你好"
)
"""As older versions wrote it: models that read such rounds say them back."""
FRAMES = FrameRemover(("小霜", "霜霜", "霜", "Frost"), 10001, Participants.of([PROMPT]))
NUMBERS = {"777": "1", "2002": "2", "3003": "3", "4444": "4", "88888": "5"}
TODAY = UserMessage(
    "[群聊记录 14:02-14:09]\n阿澈#2: hi @小红#3 在吗\n老王#5 ↩李 四#4「嗯」: 好\n[提问 14:10]\n小明#1: 你好"
)
BY_NUMBER = replace(FRAMES, people=Participants.of([TODAY]))


def today(text: str) -> str:
    """The text as a model writes it that reads the prompts of today."""
    return re.sub(r"\s?[(（](\d{3,})[)）]", lambda found: f"#{NUMBERS.get(found[1], '9')}", text)


@each_case("text", entries("honest.txt"))
def test_no_honest_answer_is_touched(text: str) -> None:
    assert FRAMES.cut(text) is text


@each_case("text", entries("honest.txt"))
def test_nor_where_people_have_numbers(text: str) -> None:
    assert BY_NUMBER.cut(text) is text


@each_case(("text", "left"), [pair for pair in pairs("leaks.txt") if not pair[0].startswith("雪狐(")])
def test_no_leak_of_todays_frame_passes(text: str, left: str) -> None:
    assert BY_NUMBER.cut(today(text)) == BY_NUMBER.people.without_numbers(today(left))


def test_the_number_behind_a_name_goes_and_a_mention_keeps_it() -> None:
    assert BY_NUMBER.cut("问问小明#1，或者 @阿澈#2 去看。小红#3 说过") == "问问小明，或者 @阿澈#2 去看。小红 说过"
    for honest in ("C#2 和小明#12 都行", "见 issue #1", "`小明#1`", "```\n小明#1\n```"):
        assert BY_NUMBER.cut(honest) == honest


def test_a_name_with_another_number_is_no_line_of_ours_where_nobody_has_that_name() -> None:
    assert BY_NUMBER.cut("好。\nIssue#2: fixed") == "好。\nIssue#2: fixed"
    assert BY_NUMBER.cut("好。\n小明#9: 谢谢") == "好。"
    assert BY_NUMBER.cut("好。\n小明#1 ↩我「好。」: 谢谢") == "好。"


def test_there_are_enough_of_them() -> None:
    assert len(set(entries("honest.txt"))) >= 200
    assert len(set(pairs("leaks.txt"))) >= 60


@each_case(("text", "left"), pairs("leaks.txt"))
def test_no_leak_of_the_frame_passes(text: str, left: str) -> None:
    assert FRAMES.cut(text) == left


HONEST = st.sampled_from(entries("honest.txt"))


@example("消息号 8 是你上一条消息的编号。", "[提问 14:10]\n")  # as rounds of older versions had it, on one line
@given(
    HONEST,
    st.sampled_from(
        [
            "小霜(10001): ",
            "小霜#9: ",
            "[引用 小明#1 的「你好」] ",
            "[引用的消息读不到了] ",
            "[what it quotes cannot be read any more] ",
            "[提问 14:10]\n",
            "[提问] 消息号 8\n",
            "(没有回答)\n",
        ]
    ),
)
def test_what_stands_in_front_of_an_answer_is_cut_and_the_answer_is_not(answer: str, front: str) -> None:
    left = FRAMES.cut(front + answer)
    assert left == FRAMES.cut(answer.strip())
    assert "10001" not in left or "10001" in answer


@given(HONEST.filter(lambda text: not text.rstrip().endswith((":", "：")) and "```" not in text and "~~~" not in text))
def test_what_the_model_makes_up_behind_its_answer_is_cut(answer: str) -> None:
    if any(member in answer for member in ("小明(777):", "阿澈(2002):")):
        return  # it quotes them itself, line for line
    assert FRAMES.cut(f"{answer}\n阿澈(2002): 谢谢\n小霜(10001): 不客气") == answer.rstrip()


@given(st.text(), st.sampled_from([PROMPT.text, *(leak for leak, _ in pairs("leaks.txt"))]), st.text())
def test_what_was_cut_once_is_not_cut_again(before: str, leak: str, after: str) -> None:
    once = FRAMES.cut(f"{before}\n{leak}{after}")
    assert FRAMES.cut(once) == once


NAMES = st.text(min_size=1, max_size=30)


@example("```", 10_000, "")
@example("~~~py", 10_000, "")
@given(NAMES, st.integers(10_000, 4_000_000_000).filter(lambda number: number != FRAMES.number), st.text(max_size=60))
def test_whatever_somebody_is_called_the_line_we_render_is_not_said_in_his_name(
    name: str, number: int, words: str
) -> None:
    """The frame is cut as it is rendered: both use the same constants."""
    message = said(words, user=number, name=name, at=False)
    prompt = user_message(Question(message), VIEW)
    frames = replace(FRAMES, people=Participants.of([prompt]))
    assert frames.people.called(str(number))
    shown = speaker(Sender(number, name), VIEW)
    assert frames.cut(prompt.text) == ""
    assert frames.cut(f"好的。\n{line(message, VIEW)}") == "好的。"
    assert frames.cut(f"[引用 {shown} 的「嗯」] 好的。") == "好的。"


@each_case("words", WORDINGS)
def test_what_is_so_at_the_moment_is_cut_without_its_heading_too(words: Wording) -> None:
    now = now_facts(said("hi"), replace(VIEW, words=words))
    assert FRAMES.cut(now) == ""
    assert FRAMES.cut(f"{now}\n七点") == "七点"
    date = now.partition(words.comma)[0]
    assert FRAMES.cut(date) == date


@each_case("words", WORDINGS)
def test_every_heading_of_ours_is_cut_in_front(words: Wording) -> None:
    view = replace(VIEW, words=words)
    headings = [words.heading(word) for word in (words.record, words.forwarded, words.earlier, words.notes)]
    headings += [words.heading(words.question, "14:10"), words.heading(words.record, "14:02-14:09")]
    headings += [
        f"{words.heading(words.pictures)} x, y",
        words.heading(view.date(1.0)),
        now_line(now_facts(said("hi"), view), words),
    ]
    for heading in headings:
        assert FRAMES.cut(f"{heading}\n好的。") == "好的。"


def test_a_member_who_bears_the_bots_name_is_somebody_else() -> None:
    frames = replace(FRAMES, people=Participants.of([UserMessage("小霜(2002): hi")]))
    assert frames.cut("好的。\n小霜(2002): 我也是") == "好的。"
    assert frames.cut("小霜(10001): 我是真的") == "我是真的"
    frames = replace(FRAMES, people=Participants.of([UserMessage("小霜#2: hi")]))
    assert frames.cut("好的。\n小霜#2: 我也是") == "好的。"
    assert frames.cut("小霜#9: 我是真的") == "我是真的"


def test_an_at_in_front_is_a_mention_unless_it_is_part_of_a_name() -> None:
    frames = replace(FRAMES, people=Participants.of([UserMessage("@阿花(5005): hi\n  @小红(3003) 在吗")]))
    assert frames.cut("好。\n@阿花(5005): 我也是") == "好。"
    assert frames.cut("好。\n@小红(3003): 来一下") == "好。\n@小红 来一下"


@each_case("length", [REMEMBERED - 20, REMEMBERED + 1])
def test_a_frame_is_seen_wherever_it_stands_in_however_long_a_text(length: int) -> None:
    for _ in range(2):  # looked at, and remembered
        assert FRAMES.is_clean("啊" * length)
        assert not FRAMES.is_clean("啊" * length + "\n[提问 14:10]")


def test_a_name_of_one_letter_is_a_name_though_such_an_alias_is_a_word() -> None:
    assert FrameRemover(("霜", "雪")).cut("霜：在的") == "在的"
    assert FrameRemover(("霜", "雪")).cut("雪：六角形的冰晶") == "雪：六角形的冰晶"


def test_without_names_and_people_only_what_nobody_says_is_cut() -> None:
    assert FrameRemover().cut("小霜：你好") == "小霜：你好"
    assert FrameRemover().cut("好\n阿澈(2002): 谢谢") == "好\n阿澈(2002): 谢谢"


def test_a_model_that_goes_round_in_frames_holds_nobody_up() -> None:
    """Each took seconds, and four times as long at twice the length: such a test would not end in time."""
    for looping in ("[提问]\n" * 20_000, "小霜(10001): " * 20_000):
        assert FRAMES.cut(looping) == ""
    for whole in ("a\n" * 100_000, f"[引用{' ' * 100_000}好"):
        assert FRAMES.cut(whole) == whole


def test_words_behind_many_frames_are_an_answer() -> None:
    for many in (1, 12, 13, 100):
        assert FRAMES.cut("[提问]\n" * many + "在的") == "在的"
        assert FRAMES.cut("小霜(10001): " * many + "在的") == "在的"


def test_our_own_name_and_number_in_somebodys_words_take_no_answer_away() -> None:
    people = Participants.of([UserMessage("小明(2002): 你看 @小霜(10001) 说的")])
    assert replace(FRAMES, people=people).cut("小霜(10001): 我说的是三点开会") == "我说的是三点开会"


@each_case(
    "leak",
    [
        "[2026-11-24 星期二] [群聊记录 14:02] 阿澈#2: hi\n小红#3: 在吗",
        "[群聊记录 14:02] [提问 14:10] 小明#1: 你好",
        "[Chat log 14:02] [Asked 14:10] 小明#1: 你好",
        "小明: 你好\n阿澈#2: hi",
        "小明: 你好\n\n**老王**：好\n小红#3 ↩阿澈#2「hi」: 在\n[提问 14:10]\n小明#1: 你好",
    ],
)
def test_the_log_said_back_is_cut_though_its_first_line_is_no_line_as_we_write_it(leak: str) -> None:
    """As a model of 0.5 B said it in a group: several headings in one line, or a name without its number."""
    assert BY_NUMBER.cut(leak) == ""


@each_case(
    ("answer", "left"),
    [
        ("小明: 你好\n老王: 好", "小明: 你好\n老王: 好"),
        ("地点: 香山\n阿澈#2: hi", "地点: 香山"),
        ("小明: 你好像不吃辣\n阿澈#2: hi", "小明: 你好像不吃辣"),
        ("阿澈: 你好\n小红#3: hi", "阿澈: 你好"),
        ("小明: 你好\n就这些\n阿澈#2: hi", "小明: 你好\n就这些"),
        ("小明去\n阿澈#2: hi", "小明去"),
        ("阿澈: 在吗\n小红#3: hi", "阿澈: 在吗"),
        ("你没有回答上面的提问。\n小明: 你好", "小明: 你好"),
    ],
)
def test_words_of_ours_before_anothers_line_stay(answer: str, left: str) -> None:
    assert BY_NUMBER.cut(answer) == left


@each_case("answer", ["(笑)", "(added) 好的", "我在 (home)", "(TBD)", "[1]", "(noted below)"])
def test_brackets_of_ones_own_stay(answer: str) -> None:
    assert BY_NUMBER.cut(answer) is answer


@each_case("frames", [FRAMES, BY_NUMBER])
def test_a_heading_of_another_bots_goes_as_ours_does_and_honest_words_stay(frames: FrameRemover) -> None:
    leaks = [(text, cut) for text, left in pairs("headings.txt") if (cut := frames.cut(text)) != left]
    assert leaks == []
    again = [(text, left) for text, left in pairs("headings.txt") if frames.cut(left) != left]
    assert again == []
    honest = [*entries("headings_honest.txt"), *entries("honest.txt")]
    assert [text for text in honest if frames.cut(text) is not text] == []
    assert [text for text in honest if frames.may_be_anothers(text) and text[0] != "{"] == []  # JSON is doubted


def test_what_may_be_such_a_heading_of_somebody_else_is_doubted_and_stays() -> None:
    for answer in (
        "小雪(345678901): 你好",
        "Snow (id 345678901): hello",
        "小王（QQ：10086001）：白天在线，有事找他",
        "[Server/10:00:00]: Done",
        "好的。\n[路人/10:00:00]: 谢谢",
        "[2026-11-28 10:00] 小雪: 你好",
        "[10:00:00] Snow: hello",
        "好的。\n小雪(345678901): 谢谢",
        "<sender>小雪</sender>\n你好",
        "[小明]: 3 票",
        "[小明(345678901)] 那我走了",
        "<小明> 那我走了",
        '{"name": "小雪", "text": "你好"}',
    ):
        assert BY_NUMBER.may_be_anothers(answer)
        assert BY_NUMBER.cut(answer) is answer
    for honest in (
        "小雪(345678901): 3\n小雨(345678902): 4",
        "查到了：\n订单(202411280): 已发货",
        "```\n小雪(345678901): 你好\n```",
        "小明: 你好",
        "小明(345678901): 你好",
    ):
        assert not BY_NUMBER.may_be_anothers(honest)


def test_the_log_said_back_in_another_bots_form_is_no_dialogue() -> None:
    assert BY_NUMBER.cut("[14:10] 小明: 你好\n[14:11] 路人: 好") == ""
    assert BY_NUMBER.cut("[小明]: 你好呀\n[路人]: 好") == "[小明]: 你好呀\n[路人]: 好"


@each_case("text", entries("headings_honest.txt"))
def test_whatever_heading_stands_before_it_the_answer_stays(text: str) -> None:
    if heading_of(text.partition("\n")[0]) or "小明" in text or speakers_in_json(text):
        return  # lines of others, or of a dialogue
    for heading in ("[UserID:10001,Nickname:小霜]: ", "<sender>小霜</sender>: ", "[小霜/10:00:00]: "):
        assert FRAMES.cut(heading + text) == FRAMES.cut(text.strip())


@pytest.mark.timeout(10)
def test_a_model_that_goes_round_in_headings_holds_nobody_up() -> None:
    for piece in (
        *("[UserID:1,Nickname:x]: ", "<sender>x</sender>: ", "[x/10:00:00]: ", "[10:00] x: ", "{", '{"text": '),
        *("</message>", "<message sender=", "[a:", "(1\n", "x(345678901): \n", "[小霜]: a\n", ":00 ", "\n[b]: c"),
    ):
        assert isinstance(FRAMES.cut(piece * 10_000), str)
        FRAMES.may_be_anothers(piece * 10_000)
