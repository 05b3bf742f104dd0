"""The commands `backup` and `restore`: what they save, and what they say in both languages."""

from __future__ import annotations

import os
import shlex
import subprocess
import tarfile
from pathlib import Path

import pytest

from bot.cli.backup import PROGRAM, files_beside, put_back
from bot.cli.control import socket_of
from config.settings import Settings
from tests.adapters.control.test_client import saying
from tests.bot.cli.commands import command, run
from tests.bot.cli.test_journal_commands import chat_in


def furnished(folder: Path) -> dict[str, str]:
    """A data folder with something of everything; the settings that name it."""
    data = folder / "data"
    for name, text in {
        "personas/frost.md": "冷",
        "words.txt": "坏话",
        "media/.drafts/d1": "a draft",
        "media/cat.png": "a cat",
        "tokens.env": "ONEBOT_ACCESS_TOKEN=planted-token",
        "runs.jsonl": "a log",
        "backup-old.tgz": "an older backup",
    }.items():
        file = data / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "games.txt").write_text("outside")
    chat_in(data)
    named = {"PERSONAS_DIR": "data/personas", "WORDS_FILE": "data/words.txt", "LLM_PRICES": "games.txt"}
    return {"STORE_URL": "sqlite:///data/frost.db", "LOG_RUNS": "data/runs.jsonl", **named}


def test_a_backup_has_the_journal_and_what_settings_name_beside_it_and_comes_back(tmp_path: Path) -> None:
    settings = furnished(tmp_path)
    settings.pop("LLM_PRICES")
    done = run(tmp_path, "backup", "data/b.tgz", **settings)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "Backed up to data/b.tgz: " in done.stderr
    assert "accounts 10001, 5 more files" in done.stderr
    assert "Not included, save these yourself: .env, napcat/ (llbot/)\n" in done.stderr
    with tarfile.open(tmp_path / "data" / "b.tgz") as archive:
        names = archive.getnames()
    assert names == [
        "manifest.json",
        "journal.db",
        "files/media/.drafts/d1",
        "files/media/cat.png",
        "files/personas/frost.md",
        "files/tokens.env",
        "files/words.txt",
        "SHA256SUMS",
    ]
    new = tmp_path / "new"
    new.mkdir()
    done = run(new, "restore", str(tmp_path / "data" / "b.tgz"), STORE_URL="sqlite:///data/frost.db")
    assert done.returncode == 0, done.stderr
    assert "Restored the backup of 20" in done.stderr
    assert (new / "data" / "personas" / "frost.md").read_text() == "冷"
    lines = [run(folder, "export", "--conversation", "10001:group:4242", **settings) for folder in (tmp_path, new)]
    assert lines[0].stdout == lines[1].stdout != ""


def test_what_lies_outside_the_folder_is_named_and_not_taken(tmp_path: Path) -> None:
    settings = furnished(tmp_path)
    (tmp_path / "games.txt").write_text("{}")
    there = Settings(llm_prices=Path(tmp_path / "games.txt"), media_dir=tmp_path / "elsewhere")
    assert list(files_beside(there, tmp_path / "data" / "frost.db")) == []
    done = run(tmp_path, "backup", "b.tgz", **settings | {"LLM_PRICES": "", "MEDIA_DIR": str(tmp_path / "personas")})
    assert done.returncode == 0, done.stderr


def test_a_journal_may_lie_beside_everything_else_and_a_file_may_be_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words.txt").write_text("坏话")
    (tmp_path / "words.txt").symlink_to("data/words.txt")
    monkeypatch.chdir(tmp_path)
    settings = Settings(words_file=Path("words.txt"), bot_persona=PROGRAM / "personas" / "default.md")
    for journal in ("data/frost.db", "frost.db"):
        assert list(files_beside(settings, tmp_path / journal)) == [tmp_path / "data" / "words.txt"]
    chat_in(tmp_path)
    done = run(tmp_path, "backup", "b.tgz", STORE_URL="sqlite:///frost.db", WORDS_FILE="words.txt")
    assert "1 more files" in done.stderr


def test_a_bot_that_answers_is_running_also_where_there_are_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chat_in(tmp_path)
    url = f"sqlite:///{tmp_path}/frost.db"
    assert run(tmp_path, "backup", "b.tgz", STORE_URL=url).returncode == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOT_LANGUAGE", "en")
    with saying(socket_of(url), b'{"pid": 42}\n'), pytest.raises(SystemExit, match="1"):
        put_back(url, "b.tgz")
    assert f"A bot is using {tmp_path}/frost.db (pid 42): stop it first" in capsys.readouterr().err


def test_a_pipe_that_closes_is_one_line(tmp_path: Path) -> None:
    chat_in(tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    words, environ, folder = command(tmp_path, "backup", "-", STORE_URL="sqlite:///frost.db")
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(words, cwd=folder, env=environ, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        b"It cannot be done (standard output: Broken pipe). Nothing has changed.\n",
    )


def test_the_commands_speak_the_language_of_the_operator(tmp_path: Path) -> None:
    chat_in(tmp_path)
    settings = {"STORE_URL": f"sqlite:///{tmp_path}/frost.db", "BOT_LANGUAGE": "zh"}
    for words, code, says in (
        (("backup", "b.tgz"), 0, "已备份到 b.tgz："),
        (("backup", "b.tgz"), 1, "已经存在：换个名字，或者加 --force 覆盖。"),
        (("backup", "b.tgz", "--force"), 0, "里面有聊天记录和密钥"),
        (("restore", "nothing.tgz"), 1, "读不了 nothing.tgz：No such file or directory。"),
        (("restore", "{x}.tgz"), 1, "读不了 {x}.tgz："),
        (("backup", "nowhere/{x}.tgz"), 1, "nowhere/.{x}.tgz."),
        (("restore", "frost.db"), 1, "frost.db 不是完整的备份"),
        (("restore", "b.tgz"), 0, "已恢复 20"),
    ):
        done = run(tmp_path, *words, **settings)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert says in done.stderr
        assert "Traceback" not in done.stderr


def test_a_restore_works_where_the_settings_do_not(tmp_path: Path) -> None:
    chat_in(tmp_path)
    url = f"sqlite:///{tmp_path}/frost.db"
    assert run(tmp_path, "backup", "b.tgz", STORE_URL=url).returncode == 0
    (tmp_path / ".env").write_text("BOT_STALE=many\nBOT_LANGUAGE=zh\n")
    done = run(tmp_path, "restore", "b.tgz", STORE_URL=url)
    assert done.returncode == 0, done.stderr
    assert "已恢复" in done.stderr


def test_of_postgresql_its_own_tools_are_named_without_the_password(tmp_path: Path) -> None:
    settings = {"STORE_URL": "postgresql+psycopg://frost:planted@db.test:5433/frost"}
    done = run(tmp_path, "backup", "b.dump", **settings)
    assert done.returncode == 1
    url = "--dbname=postgresql://frost@db.test:5433/frost"
    assert f"pg_dump --format=custom --file=b.dump {url}\n" in done.stderr
    assert "Save these as well: .env, napcat/ (llbot/), data/" in done.stderr
    done = run(tmp_path, "restore", "b.dump", **settings)
    assert done.returncode == 1
    assert f"--single-transaction {url} b.dump" in done.stderr
    assert "planted" not in done.stderr
    assert not (tmp_path / "b.dump").exists()


def test_the_commands_of_postgresql_are_quoted_for_a_shell_and_take_a_stream(tmp_path: Path) -> None:
    settings = {"STORE_URL": "postgresql+psycopg://frost:planted@db.test/frost?sslmode=require&application_name=x"}
    said = run(tmp_path, "backup", "my dump", **settings).stderr
    (line,) = (line for line in said.splitlines() if "pg_dump --" in line)
    words = shlex.split(line)
    assert words[:3] == ["pg_dump", "--format=custom", "--file=my dump"]
    assert words[3].startswith("--dbname=postgresql://frost@db.test/frost?")
    assert "sslmode=require" in words[3]
    assert "--file" not in run(tmp_path, "backup", "-", **settings).stderr
    (line,) = (
        line for line in run(tmp_path, "restore", "-", **settings).stderr.splitlines() if "pg_restore --" in line
    )
    assert shlex.split(line)[-1].startswith("--dbname=")
