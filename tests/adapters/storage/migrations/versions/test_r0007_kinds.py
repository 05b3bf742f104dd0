"""The seventh revision, on top of the fifth's table."""

from __future__ import annotations

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import create_engine, text

from adapters.storage.memories import listed
from adapters.storage.migrations.versions import r0005_memories, r0006_choices, r0007_kinds
from bot.domain.memories import Kind
from tests.fakes import GROUP

KEPT = f"""INSERT INTO memories (conversation, private, memory_id, subject, author, text, visibility, sources, made,
    used, expires) VALUES ('{GROUP}', false, 'm', 7, 7, '养猫', 'here', '["1"]', 1, 1, 9)"""


def test_facts_from_before_are_of_no_kind() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection, Operations.context(MigrationContext.configure(connection)):
        r0005_memories.upgrade()
        connection.execute(text(KEPT))
        r0007_kinds.upgrade()
        (fact,) = listed(connection, GROUP, 7, 2.0)
    assert (fact.text, fact.kind, fact.sources) == ("养猫", Kind.OTHER, ("1",))
    engine.dispose()


def test_it_follows_the_sixth() -> None:
    assert (r0007_kinds.revision, r0007_kinds.down_revision) == ("0007", r0006_choices.revision)
