"""The baseline: the oldest journal that this version reads, which is revision 0015 as of commit
b14ad6af, without data in forms of earlier versions.

Any other journal is refused before the first write. A journal at 0015 is searched once and then
stamped 0016: from then on, lines of `-ahead` were written by this version, and a start after a
crash applies them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from adapters.storage import notices
from adapters.storage.files import LINES
from adapters.storage.rows import ROUND
from adapters.storage.url import VARIABLE
from bot.core import codec
from bot.core.language import Bilingual
from frostagent.types.errors import ConfigError, Problem
from frostagent.types.messages import AssistantMessage, Message, UserMessage

BASELINE: Final = "0015"
COMMIT: Final = "b14ad6af"
"""The last commit that reads older journals and migrates them to the baseline."""

NAMED: Final = 5  # conversations named in a refusal

Ask: TypeAlias = Callable[[str], Sequence[Sequence[Any]]]
"""Returns the rows of a statement without parameters."""


class OlderJournal(ConfigError):
    """The journal is older than the baseline or has older forms: `what`, and its remedy `fix`."""

    def __init__(self, what: Bilingual, fix: Bilingual) -> None:
        self.what, self.fix = what, fix
        super().__init__(Problem(VARIABLE, what, fix))


def refuse_older_revision(revision: str) -> None:
    """Raise OlderJournal for a revision before the baseline."""
    if revision.isdigit() and revision < BASELINE:
        what = notices.OLDER_SCHEMA.fill(schema=revision, ours=BASELINE)
        raise OlderJournal(what, notices.BRING_UP.fill(commit=COMMIT))


def refuse_older(ask: Ask, revision: str | None, file: Path | None) -> None:
    """Raise OlderJournal for a journal of an older revision, and for one at the baseline that has
    entries written ahead (of an SQLite `file`), or rounds or summaries in older forms.
    """
    if revision is None:
        return
    refuse_older_revision(revision)
    if revision != BASELINE:
        return
    if file is not None and (lines := _lines_ahead(ask, file)):
        what = notices.OLDER_LINES.fill(count=lines, file=f"{file.name}{LINES}")
        raise OlderJournal(what, notices.BRING_UP.fill(commit=COMMIT))
    places = sorted({*_older_rounds(ask), *_older_summaries(ask)})
    if places:
        named = ", ".join(places[:NAMED]) + (", …" if places[NAMED:] else "")
        what = notices.OLDER_ROUNDS.fill(count=len(places), places=named)
        raise OlderJournal(what, notices.RESET_FIRST.fill(commit=COMMIT))


def refuse_older_file(file: Path) -> None:
    """Like `refuse_older`, for an SQLite file before it is opened for writing: neither the file nor
    those beside it change. A file that cannot be read is left to the code that opens it.
    """
    with suppress(OSError, sqlite3.Error), closing(_opened(file)) as connection:

        def ask(statement: str) -> Sequence[Sequence[Any]]:
            return connection.execute(statement).fetchall()

        refuse_older(ask, file_revision(connection), file)


def file_revision(connection: sqlite3.Connection) -> str | None:
    """Return the revision of an SQLite journal; None if it is not one of ours."""
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        row = None
    return None if row is None else str(row[0])


def _opened(file: Path) -> sqlite3.Connection:
    """Open a file read-only. Raises OSError if it is missing.

    Without a write-ahead log the file is complete, and SQLite is told that it is immutable:
    otherwise it would create a log and leave it there.
    """
    file.stat()
    log = file.with_name(file.name + "-wal")
    is_all = not (log.exists() and log.stat().st_size)
    uri = f"{file.absolute().as_uri()}?mode=ro{'&immutable=1' if is_all else ''}"
    return sqlite3.connect(uri, uri=True, isolation_level=None)


# --- forms of earlier versions ------------------------------------------------------------------

STAND_INS: Final = ("(没有回答)", "(被打断了)", "(已用 send_message 回答)", "(noted)")
"""Placeholders that early versions stored as the bot's answer when it said nothing."""

NOTES: Final = (
    "(前 %条已送达，之后的",
    "(没有送达: ",
    "(没有得到 QQ 的确认",
    "(当时连不上 QQ",
    "(arrived in % messages, and the rest ",
    "(was not delivered: ",
    "(was not confirmed by QQ",
    "(waits for a connection to QQ",
)
"""The beginnings of delivery notes at the end of an answer."""

NOTE: Final = re.compile(
    r"\n?\((?:前 \d+ 条已送达，之后的|arrived in \d+ messages, and the rest )?"
    r"(?:没有送达: [^\n]*|没有得到 QQ 的确认，可能已送达，不要重复"
    r"|当时连不上 QQ，排队等待发送，可能没有送达|was not delivered: [^\n]*"
    r"|was not confirmed by QQ and may have arrived, do not repeat it"
    r"|waits for a connection to QQ and may not have arrived)\)\s*$"
)

SPOKEN: Final = re.compile(
    r"(?:^ *|@|\[引用 )[^()\n:]{1,24}\(\d{5,19}\)|^\[提问\][^\S\n]*消息号", re.MULTILINE
)
"""People by their accounts in a question, or the message id in its heading."""
_BEGINNINGS: Final = " OR ".join(
    f"t.round LIKE '%{words}%'" for words in (*(f'"text":"{one}' for one in STAND_INS), *NOTES)
)
ROUNDS: Final = f"""
    WITH begins AS (
        SELECT w.conversation, w.first_turn, (
            SELECT coalesce(f.closed, f.opened) FROM turns f
            WHERE f.conversation = w.conversation AND f.id >= w.first_turn ORDER BY f.id LIMIT 1
        ) AS since FROM windows w)
    SELECT t.conversation, t.round FROM turns t
    LEFT JOIN begins b ON b.conversation = t.conversation
    WHERE t.round IS NOT NULL AND (coalesce(b.first_turn, 0) = 0 OR t.closed >= b.since)
        AND (t.round NOT LIKE '%"sources":["%' OR {_BEGINNINGS})"""  # noqa: S608  # our own words
"""Rounds still in prompts (as in `conversations.rounds_of`) that may be in an older form."""
_ACCOUNT_IN_SUMMARY: Final = "w.summary LIKE '%(' || CAST({} AS TEXT) || ')%'"
SUMMARIES: Final = f"""
    SELECT w.conversation FROM windows w WHERE w.summary LIKE '%(%)%' AND (
        EXISTS (
            SELECT 1 FROM speakers s WHERE s.conversation = w.conversation AND s.user_id > 9999
                AND {_ACCOUNT_IN_SUMMARY.format("s.user_id")})
        OR EXISTS (
            SELECT 1 FROM messages m WHERE m.conversation = w.conversation AND m.sender > 9999
                AND {_ACCOUNT_IN_SUMMARY.format("m.sender")}))"""  # noqa: S608  # our own words
"""The summaries with the account, in parentheses, of someone who spoke there."""


def _lines_ahead(ask: Ask, file: Path) -> int:
    """Count the entries written ahead and not applied. Half a line was never confirmed, and lines
    beside a database that has applied none belong to another one.
    """
    lines: list[bytes] = []
    with suppress(FileNotFoundError):
        *lines, _torn = file.with_name(file.name + LINES).read_bytes().split(b"\n")
    numbers = [int(number) for line in lines if (number := line.partition(b" ")[0]).isdigit()]
    marks = ask("SELECT number FROM applied") if numbers else ()
    return sum(number > marks[0][0] for number in numbers) if marks else 0


def _older_rounds(ask: Ask) -> Iterator[str]:
    """Yield the conversations whose prompts hold a round in an older form: a question from before
    messages had `sources`, with people by account or a message id; or an answer that is a
    placeholder, or ends with a delivery note.

    A model's text that only resembles the frame is not an older form.
    """
    for conversation, text in ask(ROUNDS):
        with suppress(codec.Unreadable):  # such a row is in no prompt
            if _is_older(codec.read(ROUND, text)):
                yield str(conversation)


def _older_summaries(ask: Ask) -> Iterator[str]:
    """The conversations whose summary names people by account."""
    return (str(place) for (place,) in ask(SUMMARIES))


def _is_older(round_: Iterable[Message]) -> bool:
    for message in round_:
        match message:
            case UserMessage(text=text, sources=()) if SPOKEN.search(text):
                return True
            case AssistantMessage(text=text) if text in STAND_INS or NOTE.search(text):
                return True
            case _:
                pass
    return False
