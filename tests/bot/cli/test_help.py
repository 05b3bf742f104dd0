"""`--help` and usage errors: in one language each, that of the terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from bot.cli.cli import app
from tests.bot.cli.commands import run
from tests.cases import each_case
from tests.reference import commands

HAN = re.compile(r"[\u3000-\u9fff\uff01-\uff5e]")
NAME = re.compile(r"--?[a-z-]+|\b[A-Z][A-Z_]*\b|`[^`]*`|\S+[/.:]\S+|\S*\.env|'\{[^']*'|^  [a-z]+(?=  )")
"""What is typed as it is in both languages: commands, options, settings, files, values."""
WORD = re.compile(r"[A-Za-z]{2,}")
PROPER = {
    *("FrostAgent", "OneBot", "OpenAI", "NapCat", "Docker", "Compose", "Ctrl"),
    *("systemd", "doctor", "run", "deepseek", "ollama", "napcat", "llbot"),
}


def help_of(name: str, language: str, monkeypatch: pytest.MonkeyPatch, *, width: int = 80) -> str:
    monkeypatch.setenv("BOT_LANGUAGE", language)
    monkeypatch.setenv("COLUMNS", str(width))
    command = typer.main.get_command(app)
    for word in name.split():
        assert isinstance(command, TyperGroup)
        command = command.commands[word]
    return command.get_help(command.make_context(f"frostagent {name}".rstrip(), [], resilient_parsing=True))


def foreign(text: str) -> set[str]:
    """The English words of a Chinese help."""
    return {word for line in text.splitlines() for word in WORD.findall(NAME.sub(" ", line))} - PROPER


@pytest.mark.parametrize("name", [command.name for command in commands()])
def test_help_is_in_one_language(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    english, chinese = (help_of(name, language, monkeypatch) for language in ("en", "zh"))
    assert english.startswith(f"Usage: frostagent {name}".rstrip())
    assert not HAN.findall(english.replace("北京", "").replace("/忘记", ""))
    assert chinese.startswith(f"用法：frostagent {name}".rstrip())
    assert foreign(chinese.replace(f"frostagent {name}".rstrip(), "")) == set()
    assert english.count("\n  -") == chinese.count("\n  -") > 0  # the same options


@each_case(
    ("words", "english", "chinese"),
    [
        ("rums", "there is no command rums; did you mean runs?", "没有命令 rums，是不是 runs？"),
        ("hi", "there is no command hi", "没有命令 hi"),
        ("doctor --jsn", "there is no option --jsn; did you mean --json?", "没有选项 --jsn，是不是 --json？"),
        ("doctor --json=1", "the option --json takes no value", "选项 --json 后面不写值"),
        ("runs --limit", "the option --limit needs a value", "选项 --limit 后面要写一个值"),
        ("runs --limit x", "--limit must be a whole number", "--limit 要写整数"),
        ("runs --limit 0", "--limit must be at least 1", "--limit 不能小于 1"),
        ("runs show", "the argument RUN is missing", "缺少参数 RUN"),
        ("runs show a b", "too many arguments: b", "多出来的参数：b"),
        ("export", "the option --conversation is missing", "缺少选项 --conversation"),
        ("persona", "a command is missing", "缺少命令"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_in_one_language(
    tmp_path: Path, words: str, english: str, chinese: str
) -> None:
    done = run(tmp_path, *words.split(), BOT_LANGUAGE="en")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {english}\n" in done.stderr
    done = run(tmp_path, *words.split(), LC_ALL="zh_CN.UTF-8")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"错误：{chinese}\n" in done.stderr
    assert "Usage" not in done.stderr
