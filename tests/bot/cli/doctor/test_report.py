"""How the report looks, and the exit code."""

from __future__ import annotations

import json

from bot.cli.checks import exit_code, failure, masked, ok, to_json, to_text, warning
from bot.core.language import Phrase

CHECKS = [
    ok("clock", "agrees"),
    warning("weather", "is far", "Wait"),
    failure("model", "says:\n  no", "Copy the key"),
]


def test_the_text_has_a_line_for_each_with_its_mend() -> None:
    assert to_text(CHECKS).splitlines() == [
        "ok       clock    agrees",
        "warning  weather  is far. Wait",
        "problem  model    says: no. Copy the key",
    ]
    assert to_text([]) == ""


def test_the_text_in_chinese_has_the_same_columns() -> None:
    checks = [
        ok("clock", Phrase("和模型的服务器一致", "agrees with the model's server")),
        warning(
            "data folder",
            Phrase("data 可以写，还剩 300 MiB", "data can be written"),
            Phrase("磁盘空间不多了，尽快清理", "Make room"),
        ),
        failure("something new", "says: no", ""),
    ]
    assert to_text(checks).zh.splitlines() == [
        "正常  时钟           和模型的服务器一致",
        "警告  数据目录       data 可以写，还剩 300 MiB。磁盘空间不多了，尽快清理",
        "问题  something new  says: no",
    ]


def test_the_json_is_a_list_of_objects() -> None:
    first, *_ = found = json.loads(to_json(CHECKS))
    assert len(found) == 3
    assert first == {"check": "clock", "verdict": "ok", "said": "agrees", "mend": ""}


def test_only_a_problem_is_an_exit_code() -> None:
    assert exit_code(CHECKS) == 1
    assert exit_code(CHECKS[:2]) == 0


def test_what_servers_quote_is_masked() -> None:
    said = Phrase("{model} 没有答复：{why}", "{model} does not answer: {why}")
    check = failure("model", said, "Not sk-1", model="m", why="no such key: sk-1")
    check = masked(check, lambda text: text.replace("sk-1", "***"))
    assert (check.said, check.fix) == ("m does not answer: no such key: ***", "Not ***")
    assert check.said.zh == "m 没有答复：no such key: ***"
