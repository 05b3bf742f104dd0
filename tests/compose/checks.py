"""What must be true of the bot in its container, each as one function; they run in the order of `CHECKS`."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from tests.compose.stack import ROOT, Stack
from tests.compose.standin.model import question

PICTURE = ROOT / "adapters" / "offline" / "media" / "demo.png"
KILL_ALL = (
    "import os, signal\n"
    "for name in filter(str.isdigit, os.listdir('/proc')):\n"
    "    command = open(f'/proc/{name}/cmdline').read().split('\\0')\n"
    "    if command[1:3] == ['-m', 'bot'] and 'python' in command[0]: os.kill(int(name), signal.SIGKILL)"
)
LOOK_INTO_ALL = (
    "import os\n"
    "for name in filter(str.isdigit, os.listdir('/proc')):\n"
    "    try: print(name, 'sk-' in open(f'/proc/{name}/environ').read())\n"
    "    except OSError: print(name, 'refused')"
)
POSTGRES = "postgresql://frost@database/postgres"


def a_bad_env_file_starts_nothing_and_says_what_is_wrong(stack: Stack) -> None:
    stack.write_env(LLM_MODEL="your-model")
    assert stack.compose("up", "-d", "--build").returncode != 0
    assert "LLM_MODEL: still has the text of an example" in stack.well("logs", "init")
    assert not stack.state("bot").get("State", {}).get("Running")


def the_bot_answers(stack: Stack) -> None:
    stack.write_env()
    stack.well("up", "-d")
    assert answer(stack, "hello") == "A:hello"
    assert "You are the first persona." in stack.asked()[0]["content"]


def a_picture_of_the_media_folder_arrives_as_bytes(stack: Stack) -> None:
    (stack.folder / "data" / "media" / "demo.png").write_bytes(PICTURE.read_bytes())
    sent = stack.ask("picture")["segments"]
    (file,) = (segment["data"]["file"] for segment in sent if segment["type"] == "image")
    assert file.startswith("base64://")
    assert base64.b64decode(file.removeprefix("base64://")) == PICTURE.read_bytes()


def a_tool_of_the_operator_is_there_and_is_used(stack: Stack) -> None:
    assert "ring_bell" in stack.bot("python", "-m", "bot", "tools").stdout
    assert answer(stack, "bell") == "A:叮叮叮"


def nothing_can_be_written_but_the_data(stack: Stack) -> None:
    for place in ("/app/x", "/opt/frostagent/x", "/app/my-tools/x.py", "/usr/x"):
        done = stack.python(f"open({place!r}, 'w')")
        assert done.returncode != 0
        assert "Read-only file system" in done.stderr or "Permission denied" in done.stderr, done.stderr
    assert stack.python("open('/app/data/x', 'w').close(); import os; os.remove('/app/data/x')").returncode == 0
    assert stack.python("import os; print(os.getuid())").stdout.strip() == "1000"
    host = stack.state()["HostConfig"]
    assert (host["ReadonlyRootfs"], host["PidsLimit"], host["Memory"]) == (True, 256, 2**30)


def no_key_is_seen_by_a_program_of_the_bots_account(stack: Stack) -> None:
    seen = stack.python(LOOK_INTO_ALL).stdout
    assert "1 refused" in seen.splitlines()
    assert "True" not in seen


def it_becomes_healthy(stack: Stack) -> None:
    stack.until("the bot is healthy", lambda: stack.state()["State"]["Health"]["Status"] == "healthy")


def a_change_of_env_leaves_napcat_alone(stack: Stack) -> None:
    before, bot = stack.state("napcat"), stack.state()["Id"]
    stack.write_env(BOT_NAME="Fox", TZ="Europe/Berlin", NAPCAT_ACCOUNT="10000", CONSOLE_PORT=str(stack.console))
    stack.well("up", "-d", "--build")
    after = stack.state("napcat")
    assert stack.state()["Id"] != bot
    assert (after["Id"], after["State"]["StartedAt"]) == (before["Id"], before["State"]["StartedAt"])
    assert answer(stack, "changed") == "A:changed"
    stack.well("restart", "napcat")
    assert "logs in 10000" in stack.well("logs", "napcat")


def the_console_is_there_once_its_port_is_set(stack: Stack) -> None:
    def shown() -> str:
        return stack.page(stack.console, "/login")

    stack.until("the console answers", lambda: "CONSOLE_TOKEN" in shown())
    link = stack.bot("python", "-m", "bot", "console").stdout
    assert link.startswith(f"http://127.0.0.1:{stack.console}/"), link


def reload_reads_the_persona_again_without_a_stop(stack: Stack) -> None:
    begun = stack.state()["State"]["StartedAt"]
    stack.write_persona("You are the second persona.")
    done = stack.bot("python", "-m", "bot", "reload")
    assert done.returncode == 0, done.stdout + done.stderr
    assert answer(stack, "again") == "A:again"
    assert "You are the second persona." in stack.asked()[0]["content"]
    assert stack.state()["State"]["StartedAt"] == begun


def a_killed_bot_comes_back_also_after_a_reload(stack: Stack) -> None:
    before = stack.state()["RestartCount"]
    stack.python(KILL_ALL)
    stack.until("the bot is started anew", lambda: bool(stack.state()["RestartCount"] > before))
    assert answer(stack, "back") == "A:back"
    assert remembers(stack, "hello")


def a_stop_lets_the_answer_end_and_is_no_failure(stack: Stack) -> None:
    before = len(stack.delivered(0))
    stack.say("@bot slow")
    stack.until("the model is asked", lambda: says(stack.asked()[-1], "slow"))
    stack.well("stop", "bot")
    assert words(stack.delivered(before + 1)[before]) == "A:slow"
    assert stack.state()["State"]["ExitCode"] == 0


def down_and_up_keep_what_was_said(stack: Stack) -> None:
    stack.well("down")
    assert stack.state() == {}
    stack.well("up", "-d")
    assert answer(stack, "later") == "A:later"
    assert remembers(stack, "hello")


def a_second_folder_leaves_the_first_alone(stack: Stack) -> None:
    begun = stack.state()["State"]["StartedAt"]
    folder = stack.folder.parent / "second-bot"
    folder.mkdir()
    second = Stack(folder)
    second.write_env()
    try:
        second.well("up", "-d", "--build", "bot")
        second.until("the second bot runs", lambda: bool(second.state()["State"]["Running"]))
        assert second.state()["Config"]["Image"] == "second-bot:local"
        assert stack.state()["State"]["StartedAt"] == begun
    finally:
        take_away(second)
    assert stack.state()["State"]["Running"]


def postgres_needs_its_driver_and_then_works(stack: Stack) -> None:
    stack.well("--profile", "database", "up", "-d", "--build", "database")
    stack.well("stop", "bot")
    stack.write_env(STORE_URL=POSTGRES)
    assert stack.compose("up", "-d").returncode != 0
    assert "EXTRAS=postgres into .env, then: docker compose up -d --build" in stack.well("logs", "init")
    stack.write_env(STORE_URL=POSTGRES, EXTRAS="postgres")
    stack.well("up", "-d", "--build")
    assert answer(stack, "there") == "A:there"
    assert not remembers(stack, "hello")
    assert "answered" in stack.bot("python", "-m", "bot", "runs").stdout


CHECKS: tuple[Callable[[Stack], None], ...] = (
    a_bad_env_file_starts_nothing_and_says_what_is_wrong,
    the_bot_answers,
    a_picture_of_the_media_folder_arrives_as_bytes,
    a_tool_of_the_operator_is_there_and_is_used,
    nothing_can_be_written_but_the_data,
    no_key_is_seen_by_a_program_of_the_bots_account,
    it_becomes_healthy,
    a_change_of_env_leaves_napcat_alone,
    the_console_is_there_once_its_port_is_set,
    reload_reads_the_persona_again_without_a_stop,
    a_killed_bot_comes_back_also_after_a_reload,
    a_stop_lets_the_answer_end_and_is_no_failure,
    down_and_up_keep_what_was_said,
    a_second_folder_leaves_the_first_alone,
    postgres_needs_its_driver_and_then_works,
)


def answer(stack: Stack, question: str) -> str:
    """What people get when somebody asks this."""
    return words(stack.ask(question))


def words(message: dict[str, Any]) -> str:
    """What it says, without the blank that stands after a quote."""
    return str(message["text"]).strip()


def remembers(stack: Stack, word: str) -> bool:
    """Whether the model was last shown a question that ended with this word."""
    return any(says(message, word) for message in stack.asked()[:-1])


def says(message: dict[str, Any], word: str) -> bool:
    """Whether it is a question that ended with this word."""
    return message["role"] == "user" and question([message]) == word


def take_away(stack: Stack) -> None:
    """Everything a folder left in the engine: containers, networks, volumes, and of the images those
    that were built here. What was pulled may be somebody else's, too.
    """
    stack.compose("--profile", "*", "down", "--volumes", "--remove-orphans", "--rmi", "local")
    stack.docker("image", "rm", stack.image)
