"""Markdown as QQ shows it: marks gone where they are marks, and nothing else changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.outbox.layout import strip_markdown
from tests.cases import each_case


@each_case(
    ("text", "read"),
    [
        ("**重点：**看*这里*，__强调__ ***都要***", "重点：看这里，强调 都要"),
        ("*笑* 真 *好*！", "笑 真 好！"),
        ("# 标题\n### 小标题", "标题\n小标题"),
        ("> 引用\n> > 两层\n>", "引用\n两层\n"),
        ("- 一\n  * 二\n+ 三\n1. 四", "· 一\n  · 二\n· 三\n1. 四"),
        ("上\n\n---\n\n下", "上\n\n下"),
        ("标题\n===\n正文", "标题\n正文"),
        ('看[**官网**](https://a.b/c(1) "t")上的', "看官网 https://a.b/c(1) 上的"),
        ("![图](https://i.j/k.png)，<https://x.y>。", "图 https://i.j/k.png，https://x.y。"),
        ("[https://a.b](https://a.b)", "https://a.b"),
        ("**https://a.b/c_d_e**", "https://a.b/c_d_e"),
        ("空`  `白", "空  白"),
        ("用 `a*b*c` 和 `` x`y ``", "用 a*b*c 和 x`y"),
        ("**用 `pip **x` 装**", "用 pip **x 装"),
        (r"2\*3\*4 是 \#1", "2*3*4 是 #1"),
        ("| 品 | 价 |\n|---|:-:|\n| 梨 | **3** |\n| `a|b` | 4 |\n完", "品: 价\n梨: 3\na|b: 4\n完"),
        ("|n|a|b|\n|-|-|-|\n|x|1|2|\n|y||3|", "x: a 1, b 2\ny: b 3"),
        ("| 城 | 温 | 湿 |\n|-|-|-|\n| 京 | 3 | 4 |", "京: 温 3，湿 4"),
        ("先\n```python\n# c\n\n**x** | [a](http://b)\n```\n*后*", "先\n# c\n\n**x** | [a](http://b)\n后"),
        ("~~~\n  **x**\n~~~", "  **x**"),
        ("```\n**left open", "**left open"),
        ("上\n\n \n\t\n下", "上\n\n下"),
        ("**上**" + "\n" * 20 + "下\n```\na\n\n\n\n\nb\n```", "上\n\n下\na\n\n\n\n\nb"),
    ],
)
def test_marks_go_and_code_and_addresses_stay(text: str, read: str) -> None:
    assert strip_markdown(text) == read


@each_case(
    "text",
    [
        "(*^▽^*) >_< ¯\\_(ツ)_/¯ (๑*◡*๑)",
        "2*3*4，2**10 and 3**2，长*宽*高，f(*args, **kwargs)",
        "__init__ 和 snake_case_name",
        "#话题# C# #1",
        "好的~~ 再见~~",
        "上\n\n=====\n下",
        "选项[A](正确)",
        "-5 到 +3，a - b，a | b",
        ">引用？3>2",
        "https://a.b/c_d_e?x=**y**&z=*",
        "",
        "  两行\n\n\n三行 ",
    ],
)
def test_what_is_no_markdown_stays_as_it_is(text: str) -> None:
    assert strip_markdown(text) == text


@given(st.text("*_`#>|[]()-~=: \n\\a字1", max_size=60))
def test_whatever_is_in_a_fence_is_not_touched(code: str) -> None:
    if not any(line.strip().startswith("````") for line in code.split("\n")):
        assert strip_markdown(f"````\n{code}\n````") == code


@given(st.text("*_`#>|[]()-~=: \n\\a字1hts/.", max_size=80))
def test_no_word_is_lost(text: str) -> None:
    words = [char for char in text if char in "a字"]
    if "```" not in text and "~~~" not in text:  # what stands beside a fence names a language
        assert sorted(char for char in strip_markdown(text) if char in "a字") == sorted(words)
