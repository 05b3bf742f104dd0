"""Each command speaks one language: that of the terminal."""

from __future__ import annotations

import re
from pathlib import Path

from tests.bot.cli.commands import SERVING, run, serving
from tests.cases import each_case

HAN = re.compile(r"[\u4e00-\u9fff]")
SENTENCE = re.compile(r"[A-Za-z']+( [a-z']+){3}")  # four words in a row: no name is that long
BROKEN = """\
LLM_BASE_URL=api.example.com
ONEBOT_PORT=many
LLM_MODLE=m
BOT_OWNERS=me
GROUPS_FILE=groups.toml
"""


def test_a_broken_env_file_has_the_same_problems_in_both_languages(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(BROKEN)
    (tmp_path / "groups.toml").write_text("[[group]]\nnumber = 'x'\nnmae = 1\n")
    english, chinese = (run(tmp_path, "run", BOT_LANGUAGE=language) for language in ("en", "zh"))
    assert english.returncode == chinese.returncode == 2
    first, *problems = english.stderr.splitlines()
    assert first == "The configuration cannot be used:"
    assert not HAN.search(english.stderr)
    first, *same = chinese.stderr.splitlines()
    assert first == "配置不能用："
    assert len(same) == len(problems) >= 6
    assert not SENTENCE.search(chinese.stderr)
    assert all(HAN.search(problem) for problem in same)
    assert "groups.toml row 1: nmae: is not a known field" in english.stderr
    assert "groups.toml 第 1 项：nmae：没有这一项" in chinese.stderr


def test_an_unknown_language_is_an_error_in_that_of_the_system(tmp_path: Path) -> None:
    english = run(tmp_path, "run", **{**SERVING, "BOT_LANGUAGE": "fr"})
    assert english.returncode == 2
    assert "BOT_LANGUAGE: “fr” is not one of the choices. Write one of: zh, en" in english.stderr
    chinese = run(tmp_path, "run", **{**SERVING, "BOT_LANGUAGE": "fr", "LC_ALL": "zh_CN.UTF-8"})
    assert "BOT_LANGUAGE 不能写 “fr”。写其中一个：zh, en" in chinese.stderr


@each_case(
    "words",
    ["status", "doctor", "tools", "tools call roll", "runs", "runs show t1", "mcp", "mcp try x", "persona try no.md"],
)
def test_a_command_speaks_the_language_of_the_system_unless_bot_language_says_otherwise(
    tmp_path: Path, words: str
) -> None:
    english = run(tmp_path, *words.split(), LC_ALL="zh_CN.UTF-8", BOT_LANGUAGE="en")
    assert not HAN.search(english.stdout + english.stderr)
    chinese = run(tmp_path, *words.split(), LC_ALL="", LANG="zh_CN.UTF-8")
    assert HAN.search(chinese.stdout + chinese.stderr) or words == "tools call roll"  # a model reads that one
    assert chinese.returncode == english.returncode


def test_a_running_bot_answers_in_the_language_of_the_terminal_that_asks(tmp_path: Path) -> None:
    (tmp_path / "persona.md").write_text("You are a fox.")
    with serving(tmp_path, BOT_PERSONA="persona.md"):  # it speaks English itself
        status = run(tmp_path, "status", LC_ALL="zh_CN.UTF-8").stdout
        assert status.splitlines()[1] == "状态      运行中"
        assert not SENTENCE.search(status)
        assert not HAN.search(run(tmp_path, "status").stdout)
        assert run(tmp_path, "reload", LC_ALL="zh_CN.UTF-8").stderr == "人设已重新读取\n数据库会在需要时重新读取\n"
        refused = run(tmp_path, "console", LC_ALL="zh_CN.UTF-8").stderr
        assert refused == "机器人说：没有控制台：设置 CONSOLE_PORT 和 CONSOLE_TOKEN\n"
