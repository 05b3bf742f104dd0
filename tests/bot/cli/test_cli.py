"""The commands as a person types them: real processes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.runtime.version import version
from tests.bot.cli.commands import PATIENCE, ROOT, command, run, serving
from tests.cases import each_case


@pytest.mark.system
def test_with_nothing_but_a_time_zone_it_is_a_chat_in_that_zone_that_ends_with_its_input(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TZ=<+14>-14\n")
    typed = "@bot hello\nuser2: @bot 北京天气\n@bot send me a message with a picture\nuser3: nothing for you\n"
    mirrors = '{"api.open-meteo.com": "http://127.0.0.1:9", "wttr.in": "http://127.0.0.1:9"}'
    done = run(tmp_path, typed=typed, TOOLS_MIRRORS=mirrors)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.startswith("bot: ") for line in lines) >= 3
    assert all(line.startswith(("bot: ", "  ")) for line in lines)
    assert any("北京" in line for line in lines)
    assert "demo model" in done.stderr
    assert (logged := re.search(r"^20\d\d-\S+ \S+", done.stderr, re.MULTILINE))
    assert datetime.fromisoformat(logged[0] + "Z") - datetime.now(UTC) > timedelta(hours=13)


@pytest.mark.system
def test_a_reader_who_leaves_does_not_break_the_chat(tmp_path: Path) -> None:
    arguments, env, cwd = command(tmp_path, "chat")
    with subprocess.Popen(
        arguments, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        _, told = process.communicate(b"@bot hello\n@bot send me a message with a picture\n", timeout=30)
    assert process.returncode == 0
    assert b"Traceback" not in told


def test_every_problem_of_the_configuration_is_told_at_once(tmp_path: Path) -> None:
    done = run(tmp_path, "run", LLM_BASE_URL="not a url", ONEBOT_PORT="many")
    assert done.returncode == 2
    assert done.stdout == ""
    for name in ("LLM_BASE_URL", "LLM_MODEL", "ONEBOT_PORT", "ONEBOT_ACCESS_TOKEN"):
        assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_a_misspelt_name_in_the_env_file_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "LLM_BASE_URL=http://127.0.0.1:9/v1\nLLM_MODEL=m\nBOT_OWNER=1\nONEBOT_HOST=127.0.0.1\n"
    )
    done = run(tmp_path)
    assert done.returncode == 2
    assert "BOT_OWNERS" in done.stderr


def test_a_port_that_is_taken_is_told_without_a_traceback(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, port):
        done = run(
            tmp_path,
            "run",
            LLM_BASE_URL="http://127.0.0.1:9/v1",
            LLM_MODEL="m",
            ONEBOT_HOST="127.0.0.1",
            ONEBOT_PORT=port,
            STORE_URL="sqlite:///other.db",
        )
    assert done.returncode == 2
    assert "ONEBOT_PORT" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_printed(tmp_path: Path) -> None:
    done = run(tmp_path, "version")
    assert (done.returncode, len(done.stdout.split())) == (0, 1)


def test_ctrl_c_while_it_is_still_being_imported_ends_it_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    arguments, env, cwd = command(tmp_path, "version")
    done = subprocess.run(arguments, env=env, cwd=cwd, capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


DICE = '''
from frostagent import tool


@tool(permission="require_approval")
def roll_dice(sides: int = 6) -> str:
    """Rolls.

    Args:
        sides: How many sides.
    """
    return f"{sides}!"


@tool
def sing() -> str:
    """Sings."""
    return "啦"
'''


def test_tools_are_listed_and_called_with_the_exit_code_of_their_result(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "dice.py").write_text(DICE)
    (folder / "broken.py").write_text("1 / 0\n")
    listed = run(tmp_path, "tools", TOOLS_DIR="mine")
    assert listed.returncode == 0, listed.stderr
    assert {"sing", "stay_silent"} <= {line.split()[0] for line in listed.stdout.splitlines()}
    assert "mine/broken.py:1: cannot be used (ZeroDivisionError: division by zero)" in listed.stderr
    assert {row["name"] for row in json.loads(run(tmp_path, "tools", "--json", TOOLS_DIR="mine").stdout)} > {"sing"}
    called = run(tmp_path, "tools", "call", "sing", TOOLS_DIR="mine")
    assert (called.returncode, called.stdout) == (0, "啦\n")
    refused = run(tmp_path, "tools", "call", "roll_dice", '{"sides": 20}', "--json", typed="y\n", TOOLS_DIR="mine")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["content"].endswith("[TOOL_DENIED]")  # standard input is no terminal
    assert sorted(path.name for path in folder.iterdir()) == ["broken.py", "dice.py"]


MODEL = {"LLM_BASE_URL": "deepseek", "LLM_MODEL": "m", "LLM_API_KEY": "k"}


def test_setup_makes_the_consoles_token_of_128_bits_another_one_each_time(tmp_path: Path) -> None:
    made = set[str]()
    for name in "ab":
        (folder := tmp_path / name).mkdir()
        shutil.copy(ROOT / ".env.example", folder)
        done = run(
            folder, "setup", "--no-test", "--non-interactive", LLM_BASE_URL="deepseek", LLM_MODEL="m", LLM_API_KEY="k"
        )
        assert done.returncode == 0, done.stderr
        (token,) = re.findall(r"^CONSOLE_TOKEN=(.*)$", (folder / ".env").read_text("utf-8"), re.MULTILINE)
        assert re.fullmatch("[0-9a-f]{32}", token)
        assert token not in done.stdout + done.stderr
        made.add(token)
    assert len(made) == 2


@pytest.mark.parametrize("words", [("--version",), ("-V",), ("version",)])
def test_the_version_is_told(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(tmp_path, *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{version()}\n", "")


def test_help_is_wrapped_at_the_terminal_and_nowhere_else(tmp_path: Path) -> None:
    wide = run(tmp_path, "-h", COLUMNS="200").stdout
    assert (
        "Ask for what the service needs, and write .env and NapCat's settings. Run again, it offers the present values."
    ) in wide
    narrow = run(tmp_path, "tools", "call", "-h", COLUMNS="60").stdout
    assert "tools call [OPTIONS]" in narrow
    assert max(map(len, narrow.splitlines())) <= 60


@each_case(
    ("environment", "file", "is_chinese"),
    [
        ({}, "", False),
        ({"LC_ALL": "zh_CN.UTF-8"}, "", True),
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "", True),
        ({"BOT_LANGUAGE": "zh"}, "", True),
        ({}, "BOT_LANGUAGE=zh\n", True),
        ({"LC_ALL": "zh_CN.UTF-8"}, "BOT_LANGUAGE=en\n", False),
        ({"BOT_LANGUAGE": "zh"}, "\0", True),
    ],
)
def test_the_doctor_and_errors_speak_the_language_of_the_operator(
    tmp_path: Path, environment: dict[str, str], file: str, *, is_chinese: bool
) -> None:
    (tmp_path / ".env").write_text(file, "utf-8")
    done = run(tmp_path, "doctor", LLM_MODEL="", **environment)
    assert done.returncode == 1
    assert done.stdout.startswith("问题  配置" if is_chinese else "problem  settings")
    done = run(tmp_path, "run", LLM_BASE_URL="http://127.0.0.1:9/v1", **environment)
    assert done.stderr.startswith("配置不能用：" if is_chinese else "The configuration cannot be used:")
    assert ("  - LLM_MODEL 没有设置。设成模型服务里写的模型名\n" in done.stderr) == is_chinese
