"""Transactions that PostgreSQL gives up for another one, as those of two workers that lock the same
rows in another order: nothing of them was done, and they are done again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

CODES: Final = {"40001", "40P01"}  # serialization_failure, deadlock_detected
TRIES: Final = 5

T = TypeVar("T")

logger = logging.getLogger(__name__)


def is_crossed(error: Exception) -> bool:
    """Whether the server gave the transaction up for another one."""
    return getattr(getattr(error, "orig", None) or error, "sqlstate", None) in CODES


def until_done(transaction: Callable[[], T]) -> T:
    """The result of a transaction that is tried five times at most. Raises what it raises."""
    for _ in range(TRIES - 1):
        try:
            return transaction()
        except Exception as error:
            if not is_crossed(error):
                raise
            logger.debug("a transaction is done again", exc_info=True)
    return transaction()
