"""Friend requests and invites that wait for a decision, kept over restarts as settings of their
places.
"""

from __future__ import annotations

from itertools import count

from cachetools import LRUCache
from msgspec.structs import replace

from bot.core import codec
from bot.core.cluster_messages import SubjectErased
from bot.core.group_admin import JoinRequest
from bot.core.journal import PlaceSet
from bot.core.ports import Store
from bot.core.query_results import Choices
from frostagent.types.ports import Clock

SETTING = "petition"
DAYS = 7  # that one waits: QQ forgets older ones
MAX_OPEN = 20
MAX_OPEN_EACH = 3  # invites of one person: an owner is no mailbox
MAX_PAST = 200  # answered ones whose flags are known: some servers tell them again


class JoinRequestStore:
    """Numbers requests while they wait; a place has one at most."""

    def __init__(self, *, store: Store, choices: Choices, clock: Clock) -> None:
        self._store = store
        self._choices = choices
        self._clock = clock
        self._numbers = count(1)
        self._past: LRUCache[tuple[int, str], None] = LRUCache(MAX_PAST)
        self.open: dict[int, JoinRequest] = {}

    async def restore(self) -> tuple[JoinRequest, ...] | None:
        """Know what waited in an earlier process: the ones that were answered there, nobody knows
        with what success, and wait no more. None where it cannot be read yet.
        """
        if (stored := await self._choices.settings(SETTING)) is None:
            return None
        doubtful = []
        for where, value in stored.items():
            petition = _read(value)
            if petition is None or self.is_over(petition):
                await self._store.commit(PlaceSet(where, SETTING, ""))
            elif petition.answered:
                doubtful.append(petition)
                await self.end(petition)
            else:
                self.open[petition.number] = petition
        self._numbers = count(max(self.open, default=0) + 1)
        return tuple(doubtful)

    def is_known(self, petition: JoinRequest) -> bool:
        """Whether it waits already, or was answered: some servers tell them again."""
        before = self._before(petition)
        is_open = before is not None and before.flag == petition.flag
        return is_open or (petition.account, petition.flag) in self._past

    def has_room(self, petition: JoinRequest) -> bool:
        """Whether one more may wait, of all and of whoever asks."""
        before = self._before(petition)
        others = [each for each in self.open.values() if each is not before]
        theirs = [each for each in others if each.user_id == petition.user_id]
        return len(others) < MAX_OPEN and len(theirs) < MAX_OPEN_EACH

    async def add(self, petition: JoinRequest) -> JoinRequest:
        """Let it wait, in the place of one before it; it, with its number."""
        if (before := self._before(petition)) is not None:
            del self.open[before.number]
        petition = replace(petition, number=next(self._numbers))
        self.open[petition.number] = petition
        await self._write(petition, codec.write(petition))
        return petition

    async def answer(self, petition: JoinRequest) -> bool:
        """Write down that an answer goes out now. False where that cannot be done."""
        return await self._write(petition, codec.write(replace(petition, answered=True)))

    async def wait(self, petition: JoinRequest) -> None:
        """No answer went out: it waits on."""
        if petition.number in self.open:  # else its person was forgotten meanwhile
            await self._write(petition, codec.write(petition))

    async def end(self, petition: JoinRequest) -> None:
        """Nobody's word is needed any more."""
        self.open.pop(petition.number, None)
        self._past[petition.account, petition.flag] = None
        await self._write(petition, "")

    def forget(self, note: SubjectErased) -> None:
        """The requests of this person, or into this group, wait no more."""
        for one in tuple(self.open.values()):
            if one.user_id == note.user or 0 != one.group_id == note.group:
                del self.open[one.number]

    def is_over(self, petition: JoinRequest) -> bool:
        """Whether it has waited too long."""
        return self._clock.now() >= petition.since + DAYS * 86_400

    def _before(self, petition: JoinRequest) -> JoinRequest | None:
        return next((each for each in self.open.values() if each.where == petition.where), None)

    async def _write(self, petition: JoinRequest, value: str) -> bool:
        return await self._store.commit(PlaceSet(petition.where, SETTING, value))


def _read(value: str) -> JoinRequest | None:
    """The entry as written; None for what nobody understands any more."""
    try:
        petition: JoinRequest = codec.read(JoinRequest, value)
    except codec.Unreadable:
        return None
    return petition
