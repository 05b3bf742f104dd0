from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.core.repetition import COMPARABLE, already_said, only_omits
from frostagent.text.similarity import letters_only
from tests.cases import each_case
from tests.data.speech import pairs


@each_case("text", ["北京今天晴，25 度。", "北京今天晴 25度！", "北京今天晴,25度", "北京今天晴，２５度"])
def test_what_was_said_already_is_recognised_whatever_its_marks(text: str) -> None:
    assert already_said(text, ["稍等一下", "北京今天晴，25度！"])


@each_case(
    ("text", "said"),
    [
        ("今天北京天气是晴，气温25度，适合出门走走", "今天北京的天气是晴，气温25度，适合出门走走"),
        ("今天北京的天气是晴，气温25度，适合出门走走哦", "今天北京的天气是晴，气温25度，适合出门走走"),
        ("The release is 1.21.4, out since Tuesday", "The release is 1.21.4, it is out since Tuesday"),
        ("现在的版本是 6.7.0，可以预下载", "查到了：现在的版本是 6.7.0，可以预下载，祝玩得开心"),
        ("你应该马上去医院看一下医生", "不客气。你应该马上去医院看一下医生"),
        ("GPT-4 出来了", "GPT 4 出来了"),
        ("会议在 3-5 点，地点是二楼的大会议室", "会议在 3 - 5 点，地点是二楼的大会议室"),
    ],
)
def test_nearly_the_same_or_a_good_part_of_it_is_not_new(text: str, said: str) -> None:
    assert already_said(text, [said])


def test_case_and_blanks_do_not_make_it_new() -> None:
    assert already_said("hello  WORLD", ["Hello, world!"])


def test_several_messages_said_again_in_one_are_not_new() -> None:
    assert already_said("第一句。\n\n第二句。", ["第一句。", "第二句。"])
    assert not already_said("第二句。\n\n第一句。", ["第一句。", "第二句。"])
    assert already_said("买 3\n5 个一组", ["买 3", "5 个一组"])


@each_case(
    ("text", "said"),
    [
        ("北京今天晴，25度，记得带伞。", ["北京今天晴，25度！"]),
        ("更正：今天26度", ["今天25度"]),
        ("好", []),
        ("2026", ["好的，我去查一下 2026 年的数据，请稍等。"]),
        ("2", ["1+1 等于几？让我算 2 秒钟。"]),
        ("No.", ["I do not know yet, let me look it up."]),
        ("晴", ["正在查询北京的天气：是晴天还是雨天呢，稍等。"]),
        ("北京", ["我查查北京"]),
        ("42", ["Is it 42?"]),
        ("明天北京的气温是26度，记得多穿一点衣服", ["明天北京的气温是25度，记得多穿一点衣服"]),
        ("你明天不可以去那个地方，那里很危险的", ["你明天可以去那个地方，那里很危险的"]),
        ("You cannot open that file with this program", ["You can open that file with this program"]),
        ("R:final:tk00000001x", ["R:tool:tk00000001x"]),
        ("现在室外是5度", ["现在室外是-5度"]),
        ("现在室外是−5度", ["现在室外是5度"]),
        ("一共15元", ["一共1.5元"]),
        ("比分是 3:12", ["比分是 31:2"]),
        ("1.5 元一个，不算贵，可以多买几个回来", ["21.5 元一个，不算贵，可以多买几个回来，慢慢吃"]),
        ("5 度的天气，出门记得多穿一点衣服", ["查到了：-5 度的天气，出门记得多穿一点衣服，别着凉"]),
        (
            "更正一下，会议是在明天下午四点钟开始，请大家准时参加",
            ["更正一下，会议是在明天下午三点钟开始，请大家准时参加"],
        ),
        ("同时删除这两个文件夹里的所有内容吗", ["同时删除这三个文件夹里的所有内容吗"]),
        ("明天最低气温5度，出门注意保暖防滑", ["明天最低气温零下5度，出门注意保暖防滑"]),
        ("明天的股市大概率会继续上涨，建议大家先持有观望", ["明天的股市大概率会继续下跌，建议大家先持有观望"]),
        ("Turn the switch on before you open the lid", ["Turn the switch off before you open the lid"]),
        ("你应该马上去医院看一下医生", ["我不认为你应该马上去医院看一下医生"]),
        ("版本可以放心升级，数据也会保留下来", ["我不认为 1.5 版本可以放心升级，数据也会保留下来"]),
        ("You should call the doctor", ["I do not think that you should call the doctor"]),
        (
            "其实总的来说也就是说具体来说简单来说明天上海有雨，记得带伞",
            ["明天上海有雨，记得带伞"],
        ),  # mostly other words
    ],
)
def test_what_is_new_is_said(text: str, said: list[str]) -> None:
    assert not already_said(text, said)


@each_case("text", ["👍", "😊", "？", "……", "❤️", "(＾▽＾)"])
def test_an_answer_of_marks_or_emoji_is_an_answer(text: str) -> None:
    assert not already_said(text, [])
    assert not already_said(text, ["在查了"])
    assert already_said(text, ["在查了", f"好 {text}"])


@each_case("said", [[], ["hi"], [""]])
@each_case("text", ["", " \n\t　"])
def test_nothing_is_never_new(text: str, said: list[str]) -> None:
    assert already_said(text, said)


@given(st.text(), st.lists(st.text(), max_size=3))
def test_whatever_was_said_is_not_new(text: str, before: list[str]) -> None:
    assert already_said(text, [*before, text])


@given(st.text().filter(lambda text: text.strip()))
def test_where_nothing_was_said_every_word_is_new(text: str) -> None:
    assert not already_said(text, [])
    assert not already_said(text, ["", " "])


@given(st.text())
def test_only_letters_and_digits_are_heard(text: str) -> None:
    assert all(char.isalnum() for char in letters_only(text))


@given(st.text(), st.lists(st.text(), max_size=3), st.text(), st.text())
def test_any_text_can_be_compared_with_any_other(text: str, before: list[str], left: str, right: str) -> None:
    assert already_said(text, [*before, f"{left}{text}{right}"]) in (True, False)


@each_case(("said", "text"), pairs("same.txt"))
def test_the_same_answer_in_hardly_other_words_is_not_new(said: str, text: str) -> None:
    assert already_said(text, [said])
    assert already_said(text, ["我查一下", said])


@each_case(("said", "text"), pairs("different.txt"))
def test_what_differs_in_a_number_a_name_a_negation_or_an_opposite_is_never_the_same_answer(
    said: str, text: str
) -> None:
    assert not already_said(text, [said])
    assert not already_said(said, [text])


def test_there_are_enough_pairs() -> None:
    assert len(set(pairs("different.txt"))) >= 60


SENTENCES = st.sampled_from([text for _, text in pairs("same.txt") if len(letters_only(text)) >= COMPARABLE])
WORDS = st.sampled_from(["杭州", "不", "没有", "三", "25", "Bob", "小红", "左", "yes", "昨天", "可能"])


@given(SENTENCES, WORDS, st.data())
def test_a_word_that_means_something_makes_any_answer_new(text: str, word: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    assert not already_said(f"{text[:place]} {word} {text[place:]}", [text])


@given(SENTENCES, st.lists(st.sampled_from(["哦", "呢", "～", " ", "!", "😊", "的", "啦"]), max_size=3))
def test_particles_and_marks_at_the_end_never_do(text: str, tail: list[str]) -> None:
    assert already_said(text.rstrip("?？") + "".join(tail), [text])


@given(st.lists(st.sampled_from(["北京", "上海", "广州", "杭州"]), min_size=2, max_size=2, unique=True), st.data())
def test_two_places_are_never_the_same_answer(places: list[str], data: st.DataObject) -> None:
    frame = data.draw(
        st.sampled_from(
            ["{}明天多云，18 到 25 度", "我看了，{}现在没有下雨，可以出门走走", "It rains in {} today, take care"]
        )
    )
    first, second = (frame.format(place) for place in places)
    assert not already_said(first, [second])


def test_what_is_mostly_function_words_is_not_a_part_of_anything() -> None:
    """At least 45 % of its words and pairs of characters must have been said."""
    assert not already_said("那么其实呢就是带伞啦哦呀", ["带伞。路上慢一点走"])
    assert already_said("总的来说明天上午北京晴天呢", ["明天上午北京晴"])  # half of them


def test_forty_five_of_a_hundred_words_and_pairs_were_said_before() -> None:
    assert already_said("It is also really sunny in Rome again today", ["sunny in Rome again today"])  # 5 of 9
    assert already_said(
        "Please, it is also really very sunny in Rome again today", ["sunny in Rome again today"]
    )  # 5 of 11
    assert not already_said("It is also really very sunny in Rome today", ["sunny in Rome today"])  # 4 of 9


def test_of_very_long_texts_only_the_same_is_the_same() -> None:
    long = "今天天气好，我们去爬山。" * 800
    assert already_said(long, [long])
    assert not already_said(long + "哦", [long + "，出发"])


MARKS = st.text(st.sampled_from("，。！？：；（）［］【】「」《》、‘’“”… \u3000!,.:;()[]-'\"~·"), max_size=3)
LETTERS = st.text(st.sampled_from("明天有雨ＡＢａｂAbĲßİé½①０９09٣かナ한"), min_size=1, max_size=4)


@given(st.lists(st.tuples(LETTERS, MARKS), max_size=6))
def test_what_is_heard_is_the_same_however_it_is_punctuated(parts: list[tuple[str, str]]) -> None:
    marked = "".join(letters + marks for letters, marks in parts)
    letters = "".join(letters for letters, _ in parts)
    assert letters_only(marked) == letters_only(letters)
    assert letters_only(letters_only(marked)) == letters_only(marked)


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_heard_as_all_else_is(text: str) -> None:
    assert letters_only(text + "。") == letters_only(text) == "".join(filter(str.isalnum, text)).lower()


def test_what_only_lacks_a_few_words_of_what_was_said_tells_nothing_new() -> None:
    assert [text for said, text in pairs("shorter.txt") if not only_omits(text, [said])] == []
    assert [text for said, text in pairs("shorter.txt") if not only_omits(text, ["我查一下", said])] == []
    assert [text for said, text in pairs("shorter.txt") if only_omits(said, [text])] == []  # that adds something


def test_what_lacks_a_word_that_matters_is_new() -> None:
    told = [*pairs("shorter_new.txt"), *pairs("different.txt")]
    told += [(text, said) for said, text in told]
    assert [(said, text) for said, text in told if only_omits(text, [said])] == []


@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_text_can_be_held_against_any_other(text: str, before: list[str]) -> None:
    assert only_omits(text, [*before, f"{text}啊"]) in (True, False)
