"""reload, stop and status, as a person types them: real processes."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest
from pydantic import SecretStr

from adapters.control.client import ask_bot
from bot.cli.control_commands import console, forget_running, stop
from config.tokens import console_totp
from tests.adapters.control.test_client import saying
from tests.bot.cli.commands import SERVING, run, serving


def test_a_running_bot_says_how_it_is_reads_again_and_stops(tmp_path: Path) -> None:
    (tmp_path / "persona.md").write_text("You are a fox.")
    settings = tmp_path / ".env"
    settings.write_text("STORE_URL=sqlite:///data/fox.db\n")
    with serving(tmp_path, BOT_PERSONA="persona.md") as (process, port):
        with settings.open("a") as file:  # went bad: they need nothing of it
            file.write("LLM_MODLE=m\nONEBOT_PORT=many\nLLM_API_KEY='half\n")
        told = run(tmp_path, "status")
        assert told.returncode == 0, told.stderr
        assert f"listening on 127.0.0.1:{port}" in told.stdout
        status = json.loads(run(tmp_path, "status", "--json").stdout)
        assert (status["pid"], status["model"], status["stopping"]) == (process.pid, "m", False)
        again = run(tmp_path, "reload")
        assert again.returncode == 0
        assert again.stdout == ""
        assert again.stderr == "the persona was read again\nthe journal is read again as it is needed\n"
        stopped = run(tmp_path, "stop")
        assert stopped.returncode == 0, stopped.stderr
        assert stopped.stderr == f"The bot (pid {process.pid}) is finishing its work ...\nIt has stopped.\n"
        assert process.wait(timeout=10) == 0
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["fox.db"]


def test_a_reload_that_could_not_use_a_file_has_an_exit_code(tmp_path: Path) -> None:
    persona = tmp_path / "persona.md"
    persona.write_text("You are a fox.")
    with serving(tmp_path, BOT_PERSONA="persona.md"):
        persona.write_text("")
        told = run(tmp_path, "reload")
    assert told.returncode == 1
    assert "the persona is kept as it was: BOT_PERSONA: persona.md is empty" in told.stderr


def test_only_a_stop_of_a_containers_main_process_says_that_docker_starts_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STORE_URL", f"sqlite:///{tmp_path}/x.db")
    for pid, restarted in ((1, True), (7, False)):  # 7 as in a dev container, where a shell started it
        with saying(tmp_path / "x.db-control", b'{"pid": %d}\n' % pid):
            stop()
        (tmp_path / "x.db-control").unlink()
        assert ("docker compose stop bot" in capsys.readouterr().err) is restarted


def test_the_commands_to_a_running_bot_speak_the_language_of_the_operator(tmp_path: Path) -> None:
    chinese = {"BOT_LANGUAGE": "zh"}
    assert run(tmp_path, "status", **chinese).stderr.startswith("这里没有机器人在运行（")
    assert run(tmp_path, "runs", "show", "r1", **chinese).stderr.startswith("这里没有数据库：")
    with serving(tmp_path, BOT_LANGUAGE="zh") as (process, _):
        assert run(tmp_path, "forget", "--user", "5", **chinese).stderr == "已忘掉：本来就没有\n"
        assert (
            run(tmp_path, "export", "--conversation", "1:group:2", **chinese).stderr
            == "没有关于 1:group:2 的任何记录。\n"
        )
        stopped = run(tmp_path, "stop", **chinese)
        assert stopped.stderr == f"机器人（pid {process.pid}）正在结束手头的事……\n已经停了。\n"


@pytest.mark.parametrize("command", ["status", "reload", "stop"])
def test_where_no_bot_runs_each_says_so(tmp_path: Path, command: str) -> None:
    told = run(tmp_path, command)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == f"No bot is running here (no process listens at {tmp_path}/data/frostagent.db-control).\n"


def test_a_bot_that_was_killed_does_not_run_and_the_next_one_is_asked_at_the_same_place(tmp_path: Path) -> None:
    with serving(tmp_path):
        pass
    assert run(tmp_path, "status").returncode == 1
    with serving(tmp_path) as (process, _):
        assert json.loads(run(tmp_path, "status", "--json").stdout)["pid"] == process.pid


def test_a_bot_that_cannot_be_asked_is_told_by_its_pid(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        (tmp_path / "data/frostagent.db-control").unlink()
        told = run(tmp_path, "status")
    assert told.returncode == 1
    assert f"a process (pid {process.pid}) has the journal" in told.stderr


def test_a_second_bot_on_one_journal_is_refused_and_harms_the_first_in_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        told = run(tmp_path, "run", LLM_BASE_URL="http://127.0.0.1:9/v1", LLM_MODEL="m", ONEBOT_HOST="127.0.0.1")
        assert told.returncode == 2
        assert f"in use ({tmp_path}/data/frostagent.db) by another process (pid {process.pid})" in told.stderr
        assert "Traceback" not in told.stderr
        assert "listening" not in told.stderr
        told = run(tmp_path, "run", BOT_LANGUAGE="zh", **SERVING)
        assert f"（{tmp_path}/data/frostagent.db）正被另一个进程使用 (pid {process.pid})。先停下那一个" in told.stderr
        assert json.loads(run(tmp_path, "status", "--json").stdout)["pid"] == process.pid


def test_who_finds_another_process_with_the_journal_leaves_at_once(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        process.send_signal(signal.SIGSTOP)  # else it might have the lock again before the other one comes
        (tmp_path / "data/frostagent.db-lock").unlink()
        with serving(tmp_path) as (other, _):
            process.send_signal(signal.SIGCONT)
            assert process.wait(timeout=20) == 2
            assert "this process ends at once: STORE_URL: the journal is in use" in process.stderr.read()
            assert other.is_alive()


def test_a_running_bot_is_who_forgets_and_one_that_cannot_be_asked_is_told_of(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        assert run(tmp_path, "forget", "--user", "5").stderr == "Forgotten: nothing was there\n"
        path = tmp_path / "data/frostagent.db-control"
        for every in ("%", "4242", "_"):
            with ask_bot(path, "forget", group=every) as question:  # type: ignore[arg-type]  # a stranger writes what they like
                assert question.answer["error"].startswith("forget is not asked for like that: Expected `int`")
        path.unlink()
        told = run(tmp_path, "forget", "--user", "5")
        assert told.stderr.startswith("Forgotten: nothing was there\nNo bot answers here, but a process")
        assert f"(pid {process.pid}) has the journal" in told.stderr
        assert told.stderr.endswith("run this command where it runs.\n")
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=10)
    assert run(tmp_path, "forget", "--user", "5").stderr == "Forgotten: nothing was there\n"


def test_a_bot_that_says_nothing_is_no_bar_to_forgetting_and_one_that_cannot_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, path = f"sqlite:///{tmp_path}/x.db", tmp_path / "x.db-control"
    assert forget_running(url, user=5) == (None, None)
    for said, whom in ((b'{"rows": 7}', {"group": 4}), (b"", {"user": 5})):
        with saying(path, said) as heard:
            rows, remains = forget_running(url, **whom)
        assert json.loads(heard.said) == {"command": "forget", **whom}
        assert rows == (7 if said else None)
        assert (remains is None) is bool(said)
        assert remains is None or remains.startswith("The bot does not answer: it ended")
        path.unlink()
    with saying(path, b'{"error": "it cannot be erased now: the disk is full"}'), pytest.raises(SystemExit, match="1"):
        forget_running(url, user=5)
    assert capsys.readouterr().err == "The bot says: it cannot be erased now: the disk is full\n"


def test_something_else_at_its_place_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)  # a socket's whole path may be too long
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind("data/frostagent.db-control")
        deaf.listen(0)
        deaf.shutdown(socket.SHUT_RDWR)
        told = run(tmp_path, "status")
    assert told.returncode == 1
    assert "Traceback" not in told.stderr


def test_a_secret_for_an_authenticator_app_is_one_that_the_settings_take(capsys: pytest.CaptureFixture[str]) -> None:
    console(totp=True)
    setting, uri = capsys.readouterr().out.split()
    name, _, secret = setting.partition("=")
    assert name == "CONSOLE_TOTP"
    assert console_totp(SecretStr(secret)).get_secret_value() == secret
    assert uri == f"otpauth://totp/FrostAgent:console?secret={secret}&issuer=FrostAgent"
