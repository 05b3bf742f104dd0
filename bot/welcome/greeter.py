"""Welcomes people who join a group, and says a line about those who leave, where an admin or
GROUPS_FILE wants that.

Several within `GATHER` seconds are one message. What a server tells once more, as after a login, is
no news.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bot.chat.lanes import Lanes
from bot.chat.tasks import Scheduled, Task, Work
from bot.core.actions import SendMessage
from bot.core.events import OF_JOB, MemberChanged, MessageReceived, Sender
from bot.core.language import CATALOGUE
from bot.core.lru import RecentKeys
from bot.outbox.delivery import Postbox
from bot.policy.wake import Wake
from bot.settings_store import PlaceSetting, SettingsStore
from frostagent.text.language import Language, Phrase
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock
from frostagent.types.speech import Mention, SendSegment, Text
from frostagent.types.traits import Audience

GATHER: Final = 30.0  # seconds in which those who join are welcomed together
OLD: Final = 60.0  # seconds after which a notice is no news
KNOWN: Final = 86_400.0  # seconds in which the same notice is not told twice
MAX_KNOWN: Final = 10_000
MAX_NAMED: Final = 5  # people in one message
MAX_WORDS: Final = 300  # characters of a template
PLACES: Final = 2000

OFF: Final = "off"
RUN: Final = "run"
"""In place of a template: the bot says in its own words what it likes."""

NAME = re.compile(r"\{(?:name|名字)\}")
GROUP = re.compile(r"\{(?:group|群名?)\}")
NEWCOMER = Phrase("新人", "newcomer")
ASKED = Phrase(
    "[刚进群，一共 {count} 人] 用一两句话欢迎新来的人。",
    "[just joined, {count} in all] Welcome the newcomers in a sentence or two.",
)
AND_MORE = Phrase("等 {count} 人", "and {count} more")
CATALOGUE.register(__name__, globals())

WELCOME: Final = PlaceSetting[str]("welcome", read=lambda text: text or None)
FAREWELL: Final = PlaceSetting[str]("farewell", read=lambda text: text or None)


@dataclass(frozen=True, slots=True)
class Templates:
    """What the operator's file says for a group; empty for nothing."""

    welcome: str = ""
    farewell: str = ""


NO_TEMPLATES: Final = Templates()


@dataclass(slots=True)
class _Gathered:
    due: float
    joined: dict[int, None] = field(default_factory=dict)
    left: dict[int, None] = field(default_factory=dict)


class Greeter:
    """Takes notices of who joins and leaves. `filed` are the templates of GROUPS_FILE for a group,
    which a command overrides; `may_speak` says whether the bot may say anything there. `members`
    gives the name of a person there, empty if nobody knows it.
    """

    def __init__(
        self,
        *,
        postbox: Postbox,
        settings: SettingsStore,
        members: Callable[[Conversation, int], str],
        filed: Callable[[Conversation], Templates],
        may_speak: Callable[[Conversation], bool],
        group_name: Callable[[Conversation], str],
        lanes: Lanes[Work],
        clock: Clock,
        tongue: Language = Language.CHINESE,
    ) -> None:
        self._postbox = postbox
        self._settings = settings
        self._members = members
        self._filed = filed
        self._may_speak = may_speak
        self._group_name = group_name
        self._lanes = lanes
        self._clock = clock
        self._tongue = tongue
        self._known = RecentKeys[tuple[Conversation, int, str]](MAX_KNOWN, KNOWN, clock.monotonic)
        self._gathered: dict[Conversation, _Gathered] = {}
        self._changed = asyncio.Event()

    # --- what is said -----------------------------------------------------------------------------

    def template(self, setting: PlaceSetting[str], where: Conversation) -> str:
        """What is said there; empty for nothing."""
        chosen = self._settings.get(setting, where)
        if chosen is None:
            filed = self._filed(where)
            chosen = filed.welcome if setting is WELCOME else filed.farewell
        return "" if chosen == OFF else chosen

    async def choose(self, setting: PlaceSetting[str], where: Conversation, template: str) -> bool:
        """Say this there from now on, nothing if it is empty. Returns False, and changes nothing,
        if that cannot be written now.
        """
        return await self._settings.set(setting, where, template or OFF)

    # --- who comes and goes -----------------------------------------------------------------------

    def take(self, event: MemberChanged, *, is_robot: bool = False) -> None:
        """Somebody joined or left. Never waits."""
        where, user = event.conversation, event.user_id
        if user == event.self_id or is_robot or event.change not in ("joined", "left"):
            return
        is_join = event.change == "joined"
        if not self.template(WELCOME if is_join else FAREWELL, where):
            return
        key = (where, user, event.change)
        if self._clock.now() - event.time > OLD or self._known.knows(key):
            return
        self._known.note(key)
        gathered = self._gathered.get(where)
        if gathered is None:
            if len(self._gathered) >= PLACES:
                return
            gathered = self._gathered[where] = _Gathered(self._clock.monotonic() + GATHER)
            self._changed.set()
        if is_join:
            gathered.joined[user] = None
        else:
            gathered.joined.pop(user, None)  # nobody welcomes who has left again
            gathered.left[user] = None

    async def run(self) -> None:
        """Say it when its time has come, until cancelled."""
        while True:
            due = min((one.due for one in self._gathered.values()), default=math.inf)
            left = due - self._clock.monotonic()
            if left > 0:
                self._changed.clear()
                try:
                    async with asyncio.timeout(None if math.isinf(left) else left):
                        await self._changed.wait()
                except TimeoutError:
                    pass
                continue
            for where in [one for one, it in self._gathered.items() if it.due <= due]:
                self._greet(where, self._gathered.pop(where))

    def _greet(self, where: Conversation, gathered: _Gathered) -> None:
        if not self._may_speak(where):
            return
        joined, left = tuple(gathered.joined), tuple(gathered.left)
        welcome, farewell = self.template(WELCOME, where), self.template(FAREWELL, where)
        if joined and welcome == RUN:
            self._ask(where, joined)
        elif joined and welcome:
            self._say(where, welcome, mentions_of(joined, self._tongue))
        if left and farewell:
            names = [self._members(where, user) or str(user) for user in left[:MAX_NAMED]]
            words = "、".join(names) + _more(left, self._tongue)
            self._say(where, farewell, (Text(words),))

    def _ask(self, where: Conversation, users: Sequence[int]) -> None:
        """Have a turn of the group welcome them: nobody asked for it, and it has no rights."""
        words = ASKED.format(self._tongue, count=len(users))
        now = self._clock.now()
        question = MessageReceived(
            self_id=where.platform_id,
            time=now,
            conversation=where,
            message_id="",
            sender=Sender(users[0], NEWCOMER.format(self._tongue)),
            segments=(Text(words),),
            sub_type=f"{OF_JOB}{Audience.EVERYONE}",
            group_name=self._group_name(where),
        )
        self._lanes.put(where, Task(question, Wake("welcome"), now, scheduled=Scheduled()))

    def _say(self, where: Conversation, template: str, names: Sequence[SendSegment]) -> None:
        group = self._group_name(where) or str(where.session_id)
        self._postbox.send(SendMessage(where, fill_template(template, names, group=group)))


def mentions_of(users: Sequence[int], tongue: Language) -> tuple[SendSegment, ...]:
    """The first few of them as mentions, and how many more there are."""
    segments: list[SendSegment] = []
    for user in users[:MAX_NAMED]:
        segments += [Mention(user), Text(" ")]
    if more := _more(users, tongue):
        segments.append(Text(more))
    return tuple(segments)


def _more(users: Sequence[int], tongue: Language) -> str:
    count = len(users) - MAX_NAMED
    return AND_MORE.format(tongue, count=count) if count > 0 else ""


def fill_template(
    template: str, names: Sequence[SendSegment], *, group: str
) -> tuple[SendSegment, ...]:
    """The words of a template around the names, which stand in front if it names nobody."""
    before, *rest = NAME.split(template) if NAME.search(template) else ["", template]
    parts: list[SendSegment] = [Text(before)]
    for words in rest:
        parts += [*names, Text(words)]
    filled = (
        Text(GROUP.sub(lambda _: group, part.text)) if isinstance(part, Text) else part
        for part in parts
    )
    return tuple(part for part in filled if not (isinstance(part, Text) and not part.text))


def is_template(text: str) -> bool:
    """Whether it may be one."""
    return 0 < len(text) <= MAX_WORDS
