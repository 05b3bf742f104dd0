"""What an error of the database means: the entry is at fault, the file is damaged, the place does
not work just now, or PostgreSQL gave the transaction up for another one, as when two workers lock
the same rows.

Errors are told apart by their class names, which PEP 249 gives every driver, so that none needs to
be installed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, TypeVar

from bot.domain.errors import ConfigError

SQLITE_CORRUPT = 11  # "database disk image is malformed"
SQLITE_NOTADB = 26  # "file is not a database"

OF_THE_VALUES = {"DataError", "IntegrityError"}
OF_ONE_VALUE = (
    "binding parameter",
    "cannot adapt",
)  # the drivers' words for a value of a type they do not know
DRIVERS = {"sqlite3", "psycopg", "sqlalchemy"}


class Unusable(Exception):
    """The database cannot be used at the moment; our own finding, not a driver's."""


class Blame(Enum):
    """The cause of a failed write: the ENTRY (it will never go in), DAMAGE to the file, or an
    OUTAGE that may pass.
    """

    ENTRY = auto()
    DAMAGE = auto()
    OUTAGE = auto()


def fault(error: Exception) -> Blame:
    """The cause that this error names of the write it ended."""
    cause = _original(error)
    if getattr(cause, "sqlite_errorcode", 0) & 0xFF in {SQLITE_CORRUPT, SQLITE_NOTADB}:
        return Blame.DAMAGE
    if {kind.__name__ for kind in type(cause).__mro__} & OF_THE_VALUES:
        return Blame.ENTRY
    if isinstance(cause, OSError | MemoryError | Unusable | ConfigError) or _is_of_a_driver(cause):
        return Blame.ENTRY if any(blame in str(cause) for blame in OF_ONE_VALUE) else Blame.OUTAGE
    return (
        Blame.ENTRY
    )  # a number or a letter that fits nowhere: OverflowError, UnicodeEncodeError, ValueError ...


def words(error: Exception) -> str:
    """The error in one line for the operator, without the statement and its values."""
    lines = str(_original(error)).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def _original(error: Exception) -> BaseException:
    """The driver's own error inside SQLAlchemy's."""
    return getattr(error, "orig", None) or error


def _is_of_a_driver(error: BaseException) -> bool:
    return any(kind.__module__.partition(".")[0] in DRIVERS for kind in type(error).__mro__)


CODES: Final = {"40001", "40P01"}  # serialization_failure, deadlock_detected
TRIES: Final = 5

T = TypeVar("T")

logger = logging.getLogger(__name__)


def is_conflict(error: Exception) -> bool:
    """Whether the server gave the transaction up for another one."""
    return getattr(_original(error), "sqlstate", None) in CODES


def retry_conflicts(transaction: Callable[[], T]) -> T:
    """The result of a transaction that is tried five times at most. Raises what it raises."""
    for _ in range(TRIES - 1):
        try:
            return transaction()
        except Exception as error:
            if not is_conflict(error):
                raise
            logger.debug("a transaction is done again", exc_info=True)
    return transaction()
