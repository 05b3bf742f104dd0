"""Who says what to the service: a fixed script for its first life, a word while it is dead, questions at the end.

The world has two groups and a few friends of the account. Every question has a token of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

from adapters.simulator.call import SentMessage
from adapters.simulator.faults import Fault
from adapters.simulator.server import Simulator
from adapters.simulator.wire import Json, mention, text
from adapters.simulator.world import Person, World, event_of, other_id
from tests.torture.model import EFFECTS, LONG, Asked
from tests.torture.moments import Kind
from tests.torture.processes import Life

REPEATED = 20  # events that a server tells once more, of those it told an earlier life
PATIENCE = 20.0  # seconds for whatever must happen; the machine may be busy
ACCOUNT = 10001
GROUPS = ONE, TWO = 4242, 4343
FRIENDS = ANN, BOB, EVE = 30001, 30002, 30003
ASKERS = 21000
PEOPLE = (Person(20001, "user1", role="owner"), Person(20002, "user2"))


@dataclass(slots=True)
class Question:
    """A question that was asked in the `life`-th life (from 0), in a group or by a friend; 0 is neither.

    `effect` is what a tool does for it, or empty. `missed`: nobody was connected. `recalled`: it was taken back.
    `answered_with` are further questions of the same person: those that wait together get one answer.
    """

    token: str
    kind: str
    life: int
    group: int = 0
    friend: int = 0
    asker: int = 0
    effect: str = ""
    message_id: int = 0
    missed: bool = False
    recalled: bool = False
    answered_with: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{self.kind}{'+' * bool(self.effect)}{self.effect}#{self.token}"

    @property
    def ids(self) -> tuple[str, str]:
        """Those of its message: that of the event, and the one of a server that numbers it anew."""
        return str(self.message_id), str(other_id(self.message_id))

    @property
    def where(self) -> str:
        """The conversation, as the journal writes it."""
        return f"{ACCOUNT}:group:{self.group}" if self.group else f"{ACCOUNT}:private:{self.friend}"

    def is_ended_by(self, message: SentMessage) -> bool:
        """Whether nothing is to be done for it any more once it is answered with this."""
        words = message.words.partition("\n")[0]  # of a long answer the first line
        return any(words in (f"A:{token}", f"F:{token}") for token in (self.token, *self.answered_with))

    def is_answered_by(self, message: SentMessage) -> bool:
        """Whether this is the answer to it."""
        return self.is_ended_by(message) or message.text == f"S:{self.token} {LONG}"


def make_world() -> World:
    """A world in which something was said before the service came."""
    world = World()
    for group in GROUPS:
        world.add_group(group, f"group {group}", PEOPLE)
    for friend in FRIENDS:
        world.add_friend(Person(friend, f"friend{friend}"))
    return world


class Stage:
    """What people do, and what they have done.

    `asked_in` has the number of the life for each request of the model, `asked_again` the questions of which the model
    was asked although people had their answers, `start_rival` starts another process on the journal of the first life
    and waits for its end, `delivered_in` the number of the life for each message people got.
    """

    def __init__(self, simulator: Simulator, *, kind: Kind = Kind.KILL) -> None:
        self.simulator = simulator
        self._kind = kind
        self.delivered_in: list[int] = []
        self.start_rival: Callable[[], Awaitable[None]] | None = None
        self._ago = 2.0  # seconds: each life begins in a second of its own, though it takes less
        simulator.world.now = lambda: time.time() - self._ago
        self.questions: dict[str, Question] = {}
        self.lives: list[Life] = []
        self.asked_in: list[int] = []
        self.asked_again: list[Question] = []
        world = simulator.world
        self._old_answer = world.post([text("很久以前的回答")], author=ACCOUNT, group_id=TWO).message_id
        self.taken_back: list[str] = []  # words that were recalled after somebody had read them
        self._old_words = world.post([text("很久以前的话")], author=20002, group_id=ONE).message_id
        self._chats = count(1)
        self._drifted = False
        self._steered: set[int] = set()  # steps

    # --- what is said ---------------------------------------------------------------------------------

    async def play(self) -> None:
        """The script of the first life."""
        await self.simulator.wait_connected(timeout=PATIENCE)
        read = await self._chat(ONE)
        await self._chat(TWO)
        first = await self._ask("plain", group=ONE, bare=True)
        await self._ask("tool", group=TWO)
        await self._ask("rounds", friend=ANN)
        self.simulator.faults.arm(Fault.DUPLICATE)
        await self._ask("pair", group=TWO)
        await self._wait_answered([first])
        if self.start_rival is not None:
            await self.start_rival()
        await self._take_back(read)
        answer = next(message for message in self.simulator.delivered if first.is_answered_by(message))
        await self._ask("helper", group=ONE, quoted=answer.message_id)
        await self._ask("plain", friend=EVE)
        await self._ask("plain", group=ONE, shared=True)
        await self._chat(ONE)
        await self._ask("same", group=TWO, quoted=self._old_answer)
        await self._chat(ONE, quoted=self._old_words)
        await self._ask("timeout", group=ONE, led=True)
        await self._ask("steered", group=ONE)
        held = await self._ask("hold", group=TWO)
        await self._wait_answered(question for question in self.questions.values() if question is not held)
        await self.simulator.wait_until(lambda: held.recalled, timeout=PATIENCE)
        await self.lives[-1].settle()  # else what goes adrift is a matter of luck
        adrift = await self._ask("adrift", friend=BOB)
        await self._wait_answered([adrift])

    async def while_dead(self) -> None:
        """What is said while nobody listens; then the way is free for the next life."""
        simulator = self.simulator
        await simulator.wait_until(lambda: not simulator.connected, timeout=PATIENCE)
        simulator.faults.disarm()
        self._ago = min(self._ago, 1.0)
        await self._chat(ONE)
        await self._ask("plain", group=TWO, bare=True)
        await self._ask("plain", friend=ANN)
        self._come_back(len(self.lives))
        self._ago = -1.0

    async def play_again(self, mend: Callable[[], None]) -> None:
        """The script of a life between the first and the last one; `mend` ends what was wrong at its beginning."""
        simulator = self.simulator
        await simulator.wait_connected(timeout=PATIENCE)
        await self._chat(TWO)
        await self._wait_answered([await self._ask("tool", group=ONE, led=True), await self._ask("plain", friend=EVE)])
        await self._come_again()
        asked = [await self._ask("rounds", group=TWO), await self._ask("plain", friend=BOB, bare=True)]
        await self._chat(ONE)
        mend()
        await self._wait_answered([*asked, await self._ask("plain", group=ONE, bare=True)])

    async def _come_again(self) -> None:
        """The socket breaks, somebody asks where the service has heard something, and the server repeats itself."""
        simulator = self.simulator
        await simulator.sockets.drop()
        await self.lives[-1].wait_alone()
        missed = [await self._ask("plain", group=ONE), await self._ask("pair", friend=EVE)]
        self._come_back(len(self.lives) - 1)
        await simulator.wait_connected(timeout=PATIENCE)
        await self._wait_answered(missed)

    def _come_back(self, life: int) -> None:
        """The way is free for this life, and the server tells again what it told before.

        Not where neither a journal nor perhaps a history can say what was answered: after one that was deleted, and
        after a life that wrote nothing down.
        """
        if self._kind is not Kind.GONE and not (self._kind.comes_back and life > 1):
            self.simulator.faults.arm(Fault.REPEAT, value=REPEATED)
        self.simulator.sockets.come_back()

    async def finish(self) -> None:
        """The script of the last life: a question everywhere, all of them answered."""
        await self.simulator.wait_connected(timeout=PATIENCE)
        await self._ask_everywhere()
        await self._come_again()
        await self._ask_everywhere()

    async def _ask_everywhere(self) -> None:
        last = [await self._ask("last", group=group) for group in GROUPS]
        last += [await self._ask("last", friend=friend) for friend in FRIENDS]
        await self._wait_answered(last)

    async def _chat(self, group: int, *, quoted: int = 0, user: int = 20002) -> int:
        words = f"闲话 {next(self._chats)}。"
        return await self.simulator.say([*_quote(quoted), text(words)], group_id=group, user_id=user)

    async def _take_back(self, message_id: int) -> None:
        """Somebody recalls what a run has read."""
        (words,) = self.simulator.world.messages.find(message_id).segments
        self.taken_back.append(words["data"]["text"])
        await self.simulator.incidents.recall(message_id)

    def _share(self) -> list[Json]:
        """A merged forward with another in it."""
        world = self.simulator.world
        inner = world.add_forward([event_of(world, world.messages.find(self._old_answer))])
        return [{"type": "forward", "data": {"id": inner}}]

    async def _ask(
        self,
        kind: str,
        *,
        group: int = 0,
        friend: int = 0,
        quoted: int = 0,
        bare: bool = False,
        shared: bool = False,
        led: bool = False,
        more: str = "",
        asker: int = 0,
    ) -> Question:
        """Something has an effect for every question that is not `bare`; `more` stands behind its words."""
        number = len(self.questions) + 1
        effect = "" if bare else list(EFFECTS)[number % 2]
        asker = friend or asker or ASKERS + number  # nobody asks twice: that would steer
        question = Question(f"q{number}", kind, len(self.lives) - 1, group, friend, asker, effect)
        self.questions[question.token] = question
        words = f"{question} {more}".rstrip()
        if led:  # what he said just before belongs to it
            await self._chat(group, user=asker)
        if friend:
            question.message_id = await self.simulator.say_private(words, user_id=friend)
        elif shared:
            parts = [*self._share(), *_to_bot(words)]
            question.message_id = await self.simulator.say(parts, group_id=group, user_id=asker)
        elif quoted:
            parts = [*_quote(quoted), text(words)]
            question.message_id = await self.simulator.say(parts, group_id=group, user_id=asker)
        else:
            question.message_id = await self.simulator.say(f"@bot {words}", group_id=group, user_id=asker)
        question.missed = question.message_id in self.simulator.missed
        return question

    async def _wait_answered(self, questions: Iterable[Question]) -> None:
        delivered = self.simulator.delivered
        waited = list(questions)

        def answered() -> bool:
            return all(any(map(question.is_answered_by, delivered)) for question in waited)

        await self.simulator.wait_until(answered, timeout=PATIENCE)

    # --- what happens between the question and the answer ---------------------------------------------

    def note_delivery(self) -> None:
        """People got something, in this life."""
        self.delivered_in.append(len(self.lives) - 1)

    async def on_ask(self, asked: Asked) -> None:
        """Let happen what the kind of question is about, in the first life only."""
        self.asked_in.append(len(self.lives) - 1)
        question = self.questions.get(asked.token)
        if question is None:
            return
        for token in asked.together:
            self.questions[token].answered_with.add(asked.token)
        if any(question.is_ended_by(message) for message in self.simulator.delivered):
            self.asked_again.append(question)
        if len(self.lives) > 1:
            return
        match asked.kind, asked.step:
            case "timeout", 1:
                self.simulator.faults.arm(Fault.TIMEOUT)
            case "steered", (0 | 1 as step) if step not in self._steered:
                self._steered.add(step)
                await self._chat(question.group, user=question.asker)
                if not step:
                    await asyncio.get_running_loop().create_future()  # it is for the service to ask anew
            case "hold", 1:
                await self._recall(question)
            case "adrift", 0 if not self._drifted:
                self._drifted = True
                await self.simulator.sockets.drop()
                await self.lives[-1].wait_alone()
                await self._ask("plain", group=ONE)
            case "adrift", 1:
                self.simulator.sockets.come_back()
            case _:
                pass

    async def _recall(self, question: Question) -> None:
        """Take the question back, and never answer who still asks: it is for the service to stop."""
        self.taken_back.append(str(question))
        question.recalled = True  # before: the service may break off, at once, the request that we are in
        try:
            await self.simulator.incidents.recall(question.message_id)
        except Exception:
            question.recalled = False
            raise
        finally:
            self.simulator._tell()
        await asyncio.get_running_loop().create_future()


def _to_bot(words: str) -> list[Json]:
    return [mention(ACCOUNT), text(f" {words}")]


def _quote(message_id: int) -> list[Json]:
    return [{"type": "reply", "data": {"id": str(message_id)}}] if message_id else []
