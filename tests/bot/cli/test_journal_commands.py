"""The commands on the journal: real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.storage.batches import EntryBatches, Put
from adapters.storage.database import Database
from bot.core.journal import MessageObserved
from tests.bot.cli.commands import run
from tests.fakes import said


def chat_in(folder: Path) -> str:
    """A chat that is kept in a file of the folder; its url."""
    url = f"sqlite:///{folder}/frost.db"
    database = Database(url, migrate=lambda _: None)
    batches = EntryBatches(database, stamp=str)
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


def test_what_nothing_is_stored_about_is_told_and_is_a_failure(tmp_path: Path) -> None:
    done = run(tmp_path, "export", "--conversation", "10001:group:1", STORE_URL=chat_in(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Nothing is stored about 10001:group:1.\n"


def test_a_person_is_forgotten_in_the_file_and_older_copies_are_named(tmp_path: Path) -> None:
    url = chat_in(tmp_path)
    (tmp_path / "frost.db.bak-0000").write_text("词111")
    draft = tmp_path / "media" / ".drafts-2" / "3-lost"
    draft.parent.mkdir(parents=True)
    draft.write_bytes(b"what the bot drafted for 111")
    done = run(tmp_path, "forget", "--user", "111", STORE_URL=url, MEDIA_DIR=str(tmp_path / "media"))
    assert done.returncode == 0, done.stderr
    assert not draft.exists()
    assert "Forgotten: 1 messages" in done.stderr
    assert "frost.db.bak-0000 was set aside earlier and still contains it" in done.stderr
    content = (tmp_path / "frost.db").read_bytes()
    assert "词111".encode() not in content
    assert "词222".encode() in content
    assert "nothing was there" in run(tmp_path, "forget", "--group", "1", STORE_URL=url).stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("export", "--conversation", "4242"), 2, "--conversation must be like 10001:group:4242"),
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
