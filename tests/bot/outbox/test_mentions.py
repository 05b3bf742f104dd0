"""People a model calls by `@name#n` are mentioned; a few, and never everybody."""

from __future__ import annotations

from bot.core.segments import Mention
from bot.outbox.mentions import mentioning
from frostagent.types.speech import Text
from tests.cases import each_case

PEOPLE = {1: (777, "小明"), 2: (778, "阿 澈"), 3: (779, ""), 4: (780, "Tom"), 5: (781, "小红")}


def who(number: int, name: str) -> tuple[int, str] | None:
    return None if name == "小红" and number == 1 else PEOPLE.get(number)


@each_case(
    ("text", "parts"),
    [
        ("@小明#1 你好", [Mention(777, "小明"), Text(" 你好")]),
        ("问问@小明#1吧", [Text("问问"), Mention(777, "小明"), Text(" 吧")]),
        ("听 @阿 澈#2", [Text("听 "), Mention(778, "阿 澈")]),
        ("@tom＃4 hi @明明#1", [Mention(780, "tom"), Text(" hi "), Mention(777, "明明")]),
        ("@谁#3\n好", [Mention(779, "谁"), Text("\n好")]),
        ("@小红#1#5 @小红#1 在", [Mention(781, "小红"), Text(" @小红 在")]),
        ("@小明#1#1", [Mention(777, "小明")]),
        (
            "@小明#1＃1#1 @小明#1#12 @小明#99#99 在",
            [Mention(777, "小明"), Text(" "), Mention(777, "小明"), Text(" #12 @小明 在")],
        ),
        ("@小明#99 在吗", [Text("@小明 在吗")]),
        ("@all#0 @全体成员", [Text("@all @全体成员")]),
        ("C#1，小明#1，a@小明#1，@ #1", [Text("C#1，小明#1，a@小明#1，@ #1")]),
        ("没有提到谁", [Text("没有提到谁")]),
        ("", []),
    ],
)
def test_a_name_with_its_number_is_a_mention(text: str, parts: list[Text | Mention]) -> None:
    assert mentioning(text, who) == parts


def test_of_more_people_the_rest_are_called_by_name() -> None:
    said = mentioning("@小明#1 @阿澈#2 @谁#3 @Tom#4 @小红#5！", who)
    assert [part.user_id for part in said if isinstance(part, Mention)] == [777, 778, 779]
    assert said[-1] == Text(" @Tom @小红！")
    assert mentioning("@小明#1 好", who, most=0) == [Text("@小明 好")]


def test_code_and_addresses_call_nobody() -> None:
    code = ("https://t.me/@小明#1", "@小明#1")
    assert mentioning("看 https://t.me/@小明#1，用 @小明#1，@小红#5", who, but=code) == [
        Text("看 https://t.me/@小明#1，用 @小明#1，"),
        Mention(781, "小红"),
    ]
