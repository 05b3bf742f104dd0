"""The verdict of an older version, in both databases."""

from __future__ import annotations

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import text

from adapters.storage.batches import EntryBatches
from adapters.storage.books import story
from adapters.storage.database import Database
from adapters.storage.migrations.versions import r0014_reserved, r0015_until
from bot.domain.journal import Judged
from bot.policy.wake import Silence
from tests.adapters.storage.entries import NOW, put, read
from tests.fakes import GROUP

MUTED = "the bot is muted there"  # as older versions wrote it
OLDER = text(
    "INSERT INTO verdicts (conversation, message_id, sender, wakes, weak, reason, at)"
    " VALUES (:conversation, :message_id, 888, :wakes, :wakes, :reason, :at)"
)


def judged(database: Database, message_id: str) -> None:
    """As an older version writes it, which knows no such column."""
    row = {"conversation": str(GROUP), "message_id": message_id, "wakes": False, "reason": MUTED, "at": NOW}
    with database.connect() as connection, connection.begin():
        connection.execute(OLDER, row)


def told(database: Database, message_id: str) -> tuple[int, bool | None, str, float]:
    found = read(database, story, GROUP, message_id)
    return found.asker, found.wakes, found.reason, found.until


def test_it_follows_the_fourteenth() -> None:
    assert (r0015_until.revision, r0015_until.down_revision) == ("0015", r0014_reserved.revision)


def test_of_verdicts_of_an_older_version_nobody_knows_until_when_before_and_after_the_upgrade(
    batches: EntryBatches, database: Database
) -> None:
    """A worker of that version may be at work still."""
    with (
        database.connect() as connection,
        connection.begin(),
        Operations.context(MigrationContext.configure(connection)) as operations,
    ):
        operations.drop_column("verdicts", "until")
    judged(database, "4")
    with (
        database.connect() as connection,
        connection.begin(),
        Operations.context(MigrationContext.configure(connection)),
    ):
        r0015_until.upgrade()
    judged(database, "5")
    muted = Judged(conversation=GROUP, message_id="6", sender=888, wakes=False, reason=Silence.MUTED, until=NOW + 60)
    batches.write(put(muted))
    assert [told(database, message_id) for message_id in ("4", "5", "6")] == [
        (888, False, MUTED, 0.0),
        (888, False, MUTED, 0.0),
        (888, False, MUTED, NOW + 60),
    ]
