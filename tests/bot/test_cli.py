"""The commands as a person types them: real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from adapters.storage.ahead import Put
from adapters.storage.batches import Batches
from adapters.storage.database import Database
from bot.cli import go
from bot.domain.journal import MessageObserved
from tests.fakes import said

ROOT = Path(__file__).parents[2]
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(
        ("BOT_", "LLM_", "ONEBOT_", "TOOLS_", "CODER_", "MEDIA_", "STORE_", "LOG_", "UPSTREAM_", "SYSTEM_")
    )
}


def command(folder: Path, *words: str, **environment: str) -> tuple[list[str], dict[str, str], Path]:
    return (
        [sys.executable, "-m", "bot", *words],
        CLEAN | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"} | environment,
        folder,
    )


def run(folder: Path, *words: str, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    arguments, env, cwd = command(folder, *words, **environment)
    return subprocess.run(
        arguments,
        env=env,
        cwd=cwd,
        input=typed,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        encoding="utf-8",
    )


def test_with_nothing_configured_it_is_a_chat_that_ends_with_its_input(tmp_path: Path) -> None:
    typed = "@bot hello\nuser2: @bot 北京天气\n@bot send me a message with a picture\nuser3: nothing for you\n"
    mirrors = '{"api.open-meteo.com": "http://127.0.0.1:9", "wttr.in": "http://127.0.0.1:9"}'
    done = run(tmp_path, typed=typed, TOOLS_MIRRORS=mirrors)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.startswith("bot: ") for line in lines) >= 3
    assert all(line.startswith(("bot: ", "  ")) for line in lines)
    assert any("北京" in line for line in lines)
    assert "demo model" in done.stderr


def test_a_reader_who_leaves_does_not_break_the_chat(tmp_path: Path) -> None:
    arguments, env, cwd = command(tmp_path, "chat")
    with subprocess.Popen(
        arguments, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        _, told = process.communicate(b"@bot hello\n@bot hello again\n", timeout=30)
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
        )
    assert done.returncode == 2
    assert "ONEBOT_PORT" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_printed(tmp_path: Path) -> None:
    done = run(tmp_path, "version")
    assert (done.returncode, len(done.stdout.split())) == (0, 1)


class serving:  # noqa: N801  # reads as a phrase: with serving(...)
    """The service as a process, until the block ends."""

    def __init__(self, folder: Path) -> None:
        arguments, env, cwd = command(
            folder, "run", LLM_BASE_URL="http://127.0.0.1:9/v1", LLM_MODEL="m", ONEBOT_HOST="127.0.0.1", ONEBOT_PORT="0"
        )
        self.process = subprocess.Popen(
            arguments, env=env, cwd=cwd, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def __enter__(self) -> tuple[subprocess.Popen[str], str]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "ready: listening on 127.0.0.1:" in line:
                return self.process, line.split("127.0.0.1:")[1].split(",")[0]
        raise AssertionError("the service ended before it was ready")

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=10)


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service_properly(tmp_path: Path, name: signal.Signals) -> None:
    with serving(tmp_path) as (process, _):
        process.send_signal(name)
        assert process.wait(timeout=10) == 0


def test_ctrl_c_while_it_is_still_being_imported_ends_it_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = run(tmp_path, "version")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


WORK = """
import asyncio, threading
from bot import cli

class NoSignals(asyncio.SelectorEventLoop):
    def add_signal_handler(self, *arguments):
        raise NotImplementedError  # as on Windows

async def work():
    if {hangs}:
        asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)  # a look-up that never ends
    try:
        print("working", flush=True)
        await asyncio.Event().wait()
    finally:
        print("ended")

cli.LINGER = 0.2
cli.fast_loop = lambda: {loop}
cli.go(work)
"""


@pytest.mark.parametrize("loop", ["None", "NoSignals"])
@pytest.mark.parametrize("hangs", [False, True])
def test_ctrl_c_ends_the_work_properly_on_any_loop_and_with_a_thread_that_hangs(
    tmp_path: Path, loop: str, hangs: bool
) -> None:
    script = [sys.executable, "-c", WORK.format(loop=loop, hangs=hangs)]
    _, env, cwd = command(tmp_path)
    with subprocess.Popen(
        script, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "working\n"
            process.send_signal(signal.SIGINT)
            said, told = process.communicate(timeout=10)
        finally:
            process.kill()
    assert (process.returncode, said, told) == (0, "ended\n", "")


def test_it_can_run_in_a_thread_which_gets_no_signals() -> None:
    done: list[bool] = []

    async def work() -> None:
        done.append(True)

    thread = threading.Thread(target=go, args=(work,))
    thread.start()
    thread.join(timeout=10)
    assert done == [True]


# --- the journal ----------------------------------------------------------------------------------


def chat_in(folder: Path) -> str:
    """A chat that is kept in a file of the folder; its url."""
    url = f"sqlite:///{folder}/frost.db"
    database = Database(url, migrate=lambda _: None)
    batches = Batches(database, stamp=str)
    entries = [MessageObserved(said(f"词{number}", user=number), overheard=True) for number in (111, 222)]
    assert batches.write([Put(entry, 1_700_000_000.0) for entry in entries]).done == 2
    batches.close()
    database.close()
    return url


def test_a_conversation_is_exported_as_lines_of_json(tmp_path: Path) -> None:
    done = run(tmp_path, "export", "--conversation", "10001:group:4242", STORE_URL=chat_in(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["type"], line["sender"]) for line in lines] == [("message", 111), ("message", 222)]
    assert "词111" in done.stdout


def test_a_person_is_forgotten_in_the_file_and_older_copies_are_named(tmp_path: Path) -> None:
    url = chat_in(tmp_path)
    (tmp_path / "frost.db.bak-0000").write_text("词111")
    done = run(tmp_path, "forget", "--user", "111", STORE_URL=url)
    assert done.returncode == 0, done.stderr
    assert "Forgotten: 1 messages" in done.stderr
    assert "frost.db.bak-0000 was put aside earlier and still has it" in done.stderr
    content = (tmp_path / "frost.db").read_bytes()
    assert "词111".encode() not in content
    assert "词222".encode() in content
    assert "nothing was there" in run(tmp_path, "forget", "--group", "1", STORE_URL=url).stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("export", "--conversation", "4242"), 2, "is not platform_id:message_type:session_id"),
        (("forget", "--user", "1", "--group", "2"), 2, "--user or --group"),
        (("forget", "--user", "1"), 1, "There is no journal at data/frostagent.db"),
    ],
)
def test_a_command_on_the_journal_that_cannot_work_says_so(
    tmp_path: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    done = run(tmp_path, *words, COLUMNS="200")
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_journal_that_cannot_be_opened_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "frost.db").write_text("this is not a database" * 100)
    done = run(tmp_path, "forget", "--user", "1", STORE_URL=f"sqlite:///{tmp_path}/frost.db")
    assert done.returncode == 1
    assert done.stderr == "The journal cannot be used: file is not a database\n"
    done = run(tmp_path, "forget", "--user", "1", STORE_URL="mysql://db/frost")
    assert done.returncode == 2
    assert "STORE_URL" in done.stderr


DICE = '''
from bot.domain.tool import tool


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
    assert [line.split()[0] for line in listed.stdout.splitlines()][-2:] == ["sing", "use_subagent"]
    assert "mine/broken.py:1: cannot be used (ZeroDivisionError: division by zero)" in listed.stderr
    assert {row["name"] for row in json.loads(run(tmp_path, "tools", "--json", TOOLS_DIR="mine").stdout)} > {"sing"}
    called = run(tmp_path, "tools", "call", "sing", TOOLS_DIR="mine")
    assert (called.returncode, called.stdout) == (0, "啦\n")
    refused = run(tmp_path, "tools", "call", "roll_dice", '{"sides": 20}', "--json", typed="y\n", TOOLS_DIR="mine")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["content"].endswith("[TOOL_DENIED]")  # standard input is no terminal
    assert sorted(path.name for path in folder.iterdir()) == ["broken.py", "dice.py"]


def test_runs_are_listed_and_shown_from_the_file_they_were_written_to(tmp_path: Path) -> None:
    done = run(tmp_path, "chat", typed="@bot hello\n", LOG_RUNS="runs.jsonl")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(run(tmp_path, "runs", "--json", LOG_RUNS="runs.jsonl").stdout)
    assert (found["outcome"], found["steps"]) == ("answered", 1)
    shown = run(tmp_path, "runs", "show", found["run"], LOG_RUNS="runs.jsonl")
    assert [line.split("  ")[1].split()[0] for line in shown.stdout.splitlines()] == ["run", "step", "run"]
    nothing = run(tmp_path, "runs", "show", "nobody", LOG_RUNS="runs.jsonl")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "There is no run nobody." in nothing.stderr


def test_runs_are_those_of_the_journal_where_no_file_is_named(tmp_path: Path) -> None:
    url = chat_in(tmp_path)
    done = run(tmp_path, "runs", STORE_URL=url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("RUN  STARTED")
