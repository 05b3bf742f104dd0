"""Whose connection it is: what was said of that so far, and how far it is to be believed. Pure."""

from __future__ import annotations

from enum import IntEnum


class Source(IntEnum):
    """Who says whose connection it is; the later ones are believed before the earlier ones."""

    NOBODY = 0
    HEADER = (
        1  # X-Self-ID: onebots writes its own name of the account there, which no event repeats
    )
    ANSWER = 2  # get_login_info
    EVENT = 3  # the first one decides: messages are answered to the account they came to
    TOKEN = 4  # the token is that account's alone


class Identity:
    """The account of one connection; 0 until it is known. Once an event or the token has named it,
    it stays.
    """

    def __init__(self) -> None:
        self.account = 0
        self.source = Source.NOBODY

    @property
    def is_settled(self) -> bool:
        """Whether nothing can change it any more."""
        return self.source >= Source.EVENT

    def is_news(self, account: int, source: Source) -> bool:
        """Whether this is believed, and another account than before."""
        return account > 0 and source > self.source and account != self.account

    def learn(self, account: int, source: Source) -> None:
        """Note who says that it is whose; what is not to be believed changes nothing."""
        if account > 0 and source > self.source:
            self.account, self.source = account, source
