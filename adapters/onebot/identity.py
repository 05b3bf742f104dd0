"""Whose connection it is: what was said of that so far, and how far it is to be believed. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum

from adapters.onebot.peers import Role


class AccountSource(IntEnum):
    """Who says whose connection it is; the later ones are believed before the earlier ones."""

    NOBODY = 0
    HEADER = 1  # X-Self-ID: onebots writes another name there than its events do
    ANSWER = 2  # get_login_info
    EVENT = 3  # the first one decides: messages are answered to the account they came to
    TOKEN = 4  # the token is that account's alone


@dataclass(frozen=True, slots=True)
class Handshake:
    """The beginning of a connection. `hint` is the account in its header, 0 for none.

    With `bound` its token belongs to that account, and it is of no other; `reserved` are the
    accounts that have such a token, which others cannot be.
    """

    role: Role = Role.UNIVERSAL
    hint: int = 0
    bound: int = 0
    reserved: Collection[int] = ()

    def may_be(self, account: int) -> bool:
        """Whether its token lets it be this account."""
        return account == self.bound or account not in self.reserved


class Identity:
    """The account of one connection; 0 until it is known. Once an event or the token has named it,
    it stays.
    """

    def __init__(self) -> None:
        self.account = 0
        self.source = AccountSource.NOBODY

    @property
    def is_settled(self) -> bool:
        """Whether nothing can change it any more."""
        return self.source >= AccountSource.EVENT

    def is_news(self, account: int, source: AccountSource) -> bool:
        """Whether this is believed, and another account than before."""
        return account > 0 and source > self.source and account != self.account

    def learn(self, account: int, source: AccountSource) -> None:
        """Note who says that it is whose; what is not to be believed changes nothing."""
        if account > 0 and source > self.source:
            self.account, self.source = account, source
