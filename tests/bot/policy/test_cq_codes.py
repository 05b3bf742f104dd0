from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.core.segments import Mention
from bot.policy.cq_codes import Code, may_contain_codes, mentions_codes, replace_codes, strip_meaningless_codes
from frostagent.types.speech import Face, Quote, Text
from tests.cases import each_case

CODES = [
    "[CQ:at,qq=all]",
    "[CQ:at,qq=5]",
    "[CQ:at]",
    "[CQ:face,id=14]",
    "[CQ:face,id=x]",
    "[CQ:reply,id=-7]",
    "[CQ:image,file=file:///etc/passwd]",
    "[cq:record,file=a.amr]",
    "[CQ:json,data={}]",
    "[CQ:at,qq=" + "9" * 40 + "]",
]


@each_case(
    ("words", "speaks"),
    [
        ("CQ码怎么写", True),
        ("cq 码里的图片", True),
        ("which Cq codes are there", True),
        ("[cq:at,qq=1]", True),
        ("QQ 号码", False),
        ("cqc codes", False),
        ("", False),
    ],
)
def test_who_speaks_of_codes_in_either_case_is_answered_with_codes(words: str, speaks: bool) -> None:
    assert mentions_codes(words) is speaks


def means(code: Code) -> Text | Code | None:
    """5 is somebody here, 6 can only be named."""
    match code:
        case Mention(user_id=6):
            return Text("@小红")
        case Mention(user_id=user_id) if user_id != 5:
            return None
        case _:
            return code


@each_case(
    ("text", "parts"),
    [
        ("早", [Text("早")]),
        ("[CQ:at,qq=5] 早", [Mention(5), Text(" 早")]),
        ("[CQ:at,qq=5,name=小明]早", [Mention(5, "小明"), Text(" 早")]),
        ("问 [CQ:AT, qq=5]", [Text("问 "), Mention(5)]),
        ("[CQ:at,qq=6] 早", [Text("@小红 早")]),
        ("[CQ:at,qq=7]早[CQ:at,qq=all]", [Text("早")]),
        ("[CQ:reply,id=-7]好[CQ:face,id=14]", [Quote("-7"), Text("好"), Face("14")]),
        ("看[CQ:image,file=file:///etc/passwd]这个", [Text("看这个")]),
        ("[CQ:image,file=a.png]", []),
        ("[CQ:at,qq=5", [Text("[CQ:at,qq=5")]),
        ("[图片] [x](y)", [Text("[图片] [x](y)")]),
    ],
)
def test_a_code_is_what_it_means_where_that_may_be_said(text: str, parts: list[Text | Code]) -> None:
    assert replace_codes(text, means) == parts


def test_a_code_that_is_spoken_of_stays() -> None:
    text = "写 [CQ:at,qq=all] 就行，[CQ:at,qq=5]"
    assert replace_codes(text, means, but=["[CQ:at,qq=all]"]) == [Text("写 [CQ:at,qq=all] 就行，"), Mention(5)]
    for code in CODES:
        for form in (f"写成 `{code}`", f"```\n{code}\n```", f"~~~\n{code}"):
            assert strip_meaningless_codes(form) == form


def test_what_only_calls_or_quotes_says_nothing() -> None:
    for text in ("[CQ:at,qq=5]", " [CQ:reply,id=7][CQ:at,qq=5] ", "[CQ:image,file=a.png]", "[CQ:at,qq=all]"):
        assert strip_meaningless_codes(text) == ""
    for text in ("早", "[CQ:face,id=14]", "[CQ:at,qq=5] 早", ""):
        assert strip_meaningless_codes(text) == text
    assert strip_meaningless_codes("[CQ:at,qq=all] 集合[CQ:image,file=a.png]") == " 集合"


@given(st.lists(st.sampled_from([*CODES, "早", " ", "[", "]", ",", "`", "\n", "[CQ:"])).map("".join))
def test_nothing_that_is_left_means_everybody_or_a_file(text: str) -> None:
    said = replace_codes(text, means)
    words = "".join(part.text for part in said if isinstance(part, Text))
    assert all(isinstance(part, Text | Mention | Face | Quote) for part in said)
    assert {part.user_id for part in said if isinstance(part, Mention)} <= {5}
    if "[CQ:[" not in text:  # a beginning of one in front may leave another
        assert not any(code in words for code in CODES)
    assert may_contain_codes(text) or replace_codes(text, means) == ([Text(text)] if text else [])
    once = strip_meaningless_codes(text)
    assert set(once) <= set(text)
