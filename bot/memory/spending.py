"""What was taken today: of each person, in each group, in all. A witness of the journal: its sums
are those of the rows.

At the start they are read from the journal; then every entry about a request is counted as it is
written, and what is reserved for a request under way with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

from bot.domain.books import DayBook
from bot.domain.chat import Usage
from bot.domain.events import Conversation
from bot.domain.journal import Entry, TurnOpened, UsageAdded
from bot.domain.ports import Clock
from bot.domain.reserved import UsageReleased, UsageReserved
from bot.domain.run import StepFinished
from bot.memory.latest import Kept
from bot.memory.own_limits import OwnLimits
from bot.policy.days import midnight
from bot.policy.limits import NOTHING, Amount, Cap, DayLimits, Rung, rung_of

ALL: Final = "all"
LOOK: Final = 2.0  # seconds between two looks at a journal that could not be read
TURNS: Final = 5000  # whose payers are known
SET_BACK: Final = 3600.0  # seconds a clock may go back without a day beginning anew
TOLD: Final = (0.8, 1.0)  # shares of a limit at which the owner is told

NEAR: Final = (
    "{whose}今天的额度用了 {percent:.0f}%（{amount}）：{then}",
    "{whose}: {percent:.0f} % of what may be spent today is spent ({amount}). {then}",
)
THEN: Final = (
    "用满就不再回答，到零点重新算起。",
    "Once all is, nobody there is answered until midnight.",
)
OVER: Final = ("今天不再回答，到零点重新算起。", "Nobody there is answered until midnight.")
GROUP: Final = ("群 {group} ", "Group {group}")
EVERYWHERE: Final = ("所有会话", "All conversations")


COUNTED: Final = frozenset({TurnOpened, StepFinished, UsageAdded, UsageReserved, UsageReleased})

Whose: TypeAlias = int | Conversation | str
"""Whose sum: a person's, a group's, or `ALL`."""


class Payer(Struct, frozen=True):
    """Where a turn is, and who asked for it, if anybody did: its requests are theirs."""

    where: Conversation | None = None
    who: int = 0

    @property
    def keys(self) -> tuple[Whose, ...]:
        """The sums that its requests belong to."""
        if self.where is None or not self.where.is_group:
            return (ALL, self.who) if self.who else (ALL,)
        return (ALL, self.where, self.who) if self.who else (ALL, self.where)


NOBODY = Payer()


class _Pending(Struct, frozen=True):
    payer: Payer
    amount: Amount
    at: float


class Spending:
    """Fits `Witness`. `tell` reaches the owner."""

    def __init__(
        self,
        limits: DayLimits,
        *,
        own: OwnLimits,
        book: DayBook,
        owners: frozenset[int],
        clock: Clock,
        tell: Callable[[str], None],
        chinese: bool = True,
    ) -> None:
        self._way = 0 if chinese else 1
        self.limits = limits
        self._is_limited = not limits.are_off
        self.own = own
        self._book = book
        self._owners = owners
        self._clock = clock
        self._tell = tell
        self._opened = clock.now()
        self._payers = Kept[str, Payer](TURNS)
        self._pending: dict[tuple[str, int], _Pending] = {}
        self._sums: dict[Whose, Amount] = {}
        self._told: dict[Whose, float] = {}
        self._begin = self._end = 0.0
        self._is_read = False

    async def start(self) -> bool:
        """Read what was taken today before this process; False where it cannot be read now."""
        if self._is_read:
            return True
        if not await self.own.start():
            return False
        self._turn_over()
        begin = self._begin
        rows = await self._book.taken(since=begin, until=self._opened)
        payers = await self._book.payers(latest=TURNS)
        if rows is None or payers is None or begin != self._begin:
            return False
        begun = dict(self._payers)
        for turn_id, where, who in reversed(payers):  # the newest last: it is forgotten last
            self._payers.keep(turn_id, Payer(where, who))
        for turn_id, payer in begun.items():
            self._payers.keep(turn_id, payer)
        for row in rows:
            self._add(Payer(row.where, row.who), Amount(row.tokens, row.cost))
        self._told = {key: self._share(key) for key in self._sums}
        self._is_read = True
        return True

    async def run(self) -> None:
        """Read it once that can be done, unless it was."""
        while not await self.start():
            await self._clock.sleep(LOOK)

    def see(self, entry: Entry) -> None:
        """Count what an entry says of requests."""
        if type(entry) not in COUNTED:
            return  # as most do not
        match entry:
            case TurnOpened(turn_id=turn_id, question=question, uncalled=uncalled):
                who = 0 if uncalled else question.sender.user_id
                self._payers.keep(turn_id, Payer(question.conversation, who))
            case StepFinished(run_id=turn_id, completion=completion) if completion.usage:
                self._count(turn_id, completion.usage, self._clock.now())
            case UsageAdded(turn_id=turn_id, usage=usage, at=at):
                self._count(turn_id, usage, at)
            case UsageReserved(turn_id=turn_id, number=number, usage=usage, at=at):
                self._turn_over()
                payer = self._payers.get(turn_id, NOBODY)
                self._pending[turn_id, number] = _Pending(payer, amount_of(usage), at)
                self._add(payer, amount_of(usage))
            case UsageReleased(turn_id=turn_id, number=number):
                self._release(turn_id, number)
            case _:
                pass

    def has_limits(self) -> bool:
        """Whether anybody has one."""
        return self._is_limited or self.own.are_some

    def rung(self, where: Conversation, who: int) -> Rung:
        """How much of the limits of somebody there is used; as if nearly all was, but for owners,
        while nobody knows.
        """
        return self._rung(Payer(where, who)) if self.has_limits() else Rung.ALL

    def rung_of(self, turn_id: str) -> Rung:
        """The same of whoever a turn is for; of all together where nobody knows that."""
        if not self.has_limits():
            return Rung.ALL
        return self._rung(self._payers.get(turn_id, NOBODY))

    def is_spent(self, turn_id: str) -> bool:
        """Whether whoever a turn is for gets nothing more today."""
        return self.rung_of(turn_id) >= Rung.SPENT

    def taken(self, key: Whose) -> Amount:
        """What was taken today by a person, in a group, or in all."""
        self._turn_over()
        return self._sums.get(key, NOTHING)

    def cap(self, key: Whose) -> Cap:
        """The limit of a person, of a group, or of all."""
        match key:
            case int():
                usual = self.limits.user
            case Conversation():
                usual = self.limits.group
            case _:
                return self.limits.all
        own = self.own.of(key)
        return usual if own is None else own.over(usual)

    @property
    def is_known(self) -> bool:
        """Whether what an earlier process took today is among it."""
        return self._is_read

    @property
    def reserved(self) -> Amount:
        """What is reserved today for requests under way; it is among what is taken."""
        self._turn_over()
        pending = [one.amount for one in self._pending.values() if one.at >= self._begin]
        return Amount(sum(one.tokens for one in pending), sum(one.cost for one in pending))

    def ends(self) -> float:
        """When the day ends, in seconds since 1970."""
        self._turn_over()
        return self._end

    def _count(self, turn_id: str, usage: Usage, at: float) -> None:
        self._turn_over()
        self._release(turn_id, usage.reserved)
        if at >= self._begin:
            payer = self._payers.get(turn_id, NOBODY)
            self._add(payer, amount_of(usage))
            if self.has_limits():
                self._warn(payer)

    def _release(self, turn_id: str, number: int) -> None:
        pending = self._pending.pop((turn_id, number), None) if number else None
        if pending is not None and pending.at >= self._begin:
            self._add(pending.payer, Amount(-pending.amount.tokens, -pending.amount.cost))

    def _add(self, payer: Payer, amount: Amount) -> None:
        sums = self._sums
        for key in payer.keys:
            sums[key] = before.plus(amount) if (before := sums.get(key)) else amount

    def _rung(self, payer: Payer) -> Rung:
        self._turn_over()
        is_owner = payer.who in self._owners
        known = rung_of(self._share(ALL), *map(self._share, payer.keys[1:]), is_owner=is_owner)
        return known if self._is_read or is_owner else max(known, Rung.BARE)

    def _share(self, key: Whose) -> float:
        return self.cap(key).used(self._sums.get(key, NOTHING))

    def _turn_over(self) -> None:
        now = self._clock.now()
        if self._begin - SET_BACK <= now < self._end:
            return  # a clock that is put right after midnight gives nobody his day once more
        self._begin, self._end = midnight(now), midnight(now, later=1)
        self._sums.clear()
        self._told.clear()

    def _warn(self, payer: Payer) -> None:
        """The owner hears of all, and of a group; of a person only that person does."""
        for key in payer.keys:
            share, told = self._share(key), self._told.get(key, 0.0)
            self._told[key] = share
            if isinstance(key, int) or not any(told < mark <= share for mark in TOLD):
                continue
            way = self._way
            whose = EVERYWHERE[way]
            if isinstance(key, Conversation):
                whose = GROUP[way].format(group=key.session_id)
            line = NEAR[way].format(
                whose=whose,
                percent=100 * share,
                amount=told_amount(self._sums[key]),
                then=(OVER if share >= 1 else THEN)[way],
            )
            self._tell(line)


def unlimited(_turn_id: str) -> bool:
    """Nobody's day is spent."""
    return False


def amount_of(usage: Usage) -> Amount:
    """What a request took; one of unknown price counts by its tokens alone."""
    return Amount(usage.prompt + usage.completion, usage.cost or 0.0)


def told_amount(amount: Amount) -> str:
    """As people read it: `$0.0123, 45678 token`."""
    return f"${amount.cost:.4f}, {amount.tokens:.0f} token"
