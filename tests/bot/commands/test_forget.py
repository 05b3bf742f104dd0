from __future__ import annotations

import math
from collections.abc import Callable

from bot.commands.forget import DONE, FAILED, HOW, NOBODY, NOT_YOURS, forget_command
from bot.core.command import Command
from bot.core.erasure import SubjectErased
from bot.memory.forgetting import Forgetting
from bot.memory.history import History
from bot.memory.speakers import Speakers
from frostagent.types.errors import BotError
from tests.bot.commands.typed import HONG, MING, OWNER, SAID, lines
from tests.cases import each_case
from tests.fakes import GROUP, PRIVATE, RecordingStore, said


class Shredder:
    """Fits `Eraser`; what it erased, each of which it told to `begin`; it can `last` for so many."""

    def __init__(self, begin: Callable[[], None] = lambda: None) -> None:
        self.begin = begin
        self.gone: list[tuple[str, int]] = []
        self.since: list[float] = []
        self.last = math.inf
        self.swept = 0

    async def forget_user(self, user: int, *, since: float = math.inf) -> int:
        return self._shred("user", user, since)

    async def forget_group(self, group: int, *, since: float = math.inf) -> int:
        return self._shred("group", group, since)

    def _shred(self, kind: str, number: int, since: float) -> int:
        self.begin()
        self.since.append(since)
        if len(self.gone) >= self.last:
            raise BotError("the disk is full")
        self.gone.append((kind, number))
        return 12 if self.gone.count((kind, number)) == 1 else 0

    async def sweep(self) -> None:
        self.swept += 1


class Asked:
    """Whose questions wait no more."""

    def __init__(self) -> None:
        self.gone: list[tuple[int, int]] = []
        self.said: list[float] = []
        self.since: list[float] = []

    async def forget(self, note: SubjectErased) -> None:
        self.gone.append((note.user, note.group))
        self.said.append(math.inf if note.said is None else note.said)
        self.since.append(math.inf if note.since is None else note.since)


class Nobody:
    """Whose requests to join wait no more."""

    def __init__(self) -> None:
        self.gone: list[tuple[int, int]] = []

    def forget(self, note: SubjectErased) -> None:
        self.gone.append((note.user, note.group))


class Room:
    def __init__(self) -> None:
        self.eraser, store = Shredder(), RecordingStore()
        speakers = Speakers(store=store)
        speakers.learn(GROUP, ())
        speakers.meet(GROUP, MING, "小明")
        speakers.meet(GROUP, HONG, "小红")
        self.history = History(store=store)
        self.history.know(said("我的秘密", message_id="5"))
        self.let_go = 0
        self.asked = Asked()
        forgetting = Forgetting(
            self.eraser,
            self.history,
            cancel_questions=self.asked.forget,
            cancel_join_requests=Nobody().forget,
            now=lambda: 7.5,
            then=(self._let_go,),
        )
        self.command: Command = forget_command(forgetting, speakers)

    def _let_go(self) -> None:
        self.let_go += 1


async def test_everybody_may_have_himself_forgotten_and_memory_lets_go_of_it() -> None:
    room = Room()
    assert await lines(room.command, "我") == [DONE.zh.format(rows=12)]
    assert room.eraser.gone == [("user", MING)] * 2
    assert room.history.known(GROUP, "5") is None
    assert (room.asked.gone, room.asked.said) == ([(MING, 0)] * 2, [SAID] * 2)  # what is asked after that is answered
    assert room.let_go == 2


def test_what_takes_long_is_not_broken_off_halfway() -> None:
    assert Room().command.within == 120.0


async def test_others_and_groups_are_forgotten_by_owners_alone() -> None:
    room = Room()
    for words in ("#2", "group", "群"):
        assert await lines(room.command, words, role="owner") == [NOT_YOURS.zh]
    assert room.eraser.gone == []
    assert await lines(room.command, "#2", user=OWNER) == [DONE.zh.format(rows=12)]
    assert await lines(room.command, "群", user=OWNER) == [DONE.zh.format(rows=12)]
    assert room.eraser.gone == [("user", HONG)] * 2 + [("group", GROUP.session_id)] * 2
    assert (room.asked.gone, room.asked.said) == ([(HONG, 0)] * 2 + [(0, GROUP.session_id)] * 2, [SAID] * 4)
    for nobody in ("#9", "#0", "#" + "9" * 5000):
        assert await lines(room.command, nobody, user=OWNER) == [NOBODY.zh]
    assert await lines(room.command, "群", user=OWNER, where=PRIVATE) == HOW.zh.splitlines()


@each_case(
    "words",
    [(), ("everything",), ("小明",), ("me", "saying", "that"), ("我", "喜欢猫"), ("#2", "昨天的话"), ("群", "名")],
)
async def test_without_saying_whom_or_with_any_word_behind_it_nothing_is_forgotten(words: tuple[str, ...]) -> None:
    room = Room()
    assert await lines(room.command, *words, user=OWNER, chinese=False) == [HOW.en]
    assert room.eraser.gone == []


async def test_what_cannot_be_erased_now_is_told() -> None:
    room = Room()
    room.eraser.last = 0
    assert await lines(room.command, "me") == [FAILED.zh]
    assert (room.eraser.gone, room.asked.gone, room.let_go) == ([], [], 0)
