"""How what is said to those who join is put together; when it is said, scenarios from 1021 on play."""

from __future__ import annotations

from bot.welcome.greeter import MAX_NAMED, MAX_WORDS, fill_template, is_template, mentions_of
from frostagent.text.language import Language
from frostagent.types.speech import Mention, SendSegment, Text
from tests.cases import each_case


def shown(segments: tuple[SendSegment, ...]) -> str:
    """The words, with `<n>` for a mention."""
    return "".join(f"<{one.user_id}>" if isinstance(one, Mention) else getattr(one, "text", "?") for one in segments)


@each_case(
    ("template", "said"),
    [
        ("欢迎 {name}来到 {group}", "欢迎 <7>来到 摸鱼群"),
        ("{名字}你好，{名字}", "<7>你好，<7>"),
        ("大家好", "<7>大家好"),
        ("{群名}又多一个人", "<7>摸鱼群又多一个人"),
        ("{name}", "<7>"),
        ("{0} {} {names} {", "<7>{0} {} {names} {"),
    ],
)
def test_a_template_is_filled(template: str, said: str) -> None:
    assert shown(fill_template(template, (Mention(7),), group="摸鱼群")) == said


def test_what_a_group_is_called_fills_nothing() -> None:
    assert shown(fill_template("{group}: {name}", (Text("x"),), group="{name}")) == "{name}: x"


def test_of_many_people_the_first_are_named() -> None:
    few, many = range(1, MAX_NAMED + 1), range(1, MAX_NAMED + 4)
    assert shown(mentions_of(few, Language.CHINESE)).endswith("<5> ")
    assert shown(mentions_of(many, Language.CHINESE)).endswith("<5> 等 3 人")
    assert shown(mentions_of(many, Language.ENGLISH)).endswith("<5> and 3 more")


def test_a_template_has_an_end() -> None:
    assert [is_template("x" * length) for length in (0, 1, MAX_WORDS, MAX_WORDS + 1)] == [False, True, True, False]
