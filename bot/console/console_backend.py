"""A bot as the console's pages show it, and the word it carries out that was said on
one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from adapters.storage.store import SqlStore
from bot.conversation.approval.join_request_store import DAYS
from bot.domain.actions import plain_words
from bot.domain.cluster_queries import ClusterClient, OwnerDecision, PartitionStatus
from bot.domain.console_views import (
    AccountState,
    Doctor,
    Failure,
    ModelState,
    OutboxState,
    PersonaState,
    State,
    WaitingCall,
    WaitingDraft,
    WaitingJoinRequest,
)
from bot.domain.drafts import draft_id
from bot.domain.events import Conversation
from bot.domain.journal import SendState
from bot.domain.model_messages import ToolMessage
from bot.domain.ports import Clock
from bot.domain.suspension import Settled
from bot.domain.trial_group import Trial
from bot.memory.drafts import LASTS, KeptDraft
from bot.memory.newest import Newest
from bot.memory.personas import Personas
from bot.memory.spending import Spending
from bot.policy.approval import MAX_REASON, Answer
from bot.policy.drafts import DraftWord
from bot.speaking.sends import Send
from bot.web import Connections, Shown
from bot.wiring.resources import Resources
from bot.wiring.service import Rooms
from bot.wiring.status import count_waiting

DRAFTS = 20  # that are shown on a page
BY = ("控制台", "the console")  # who decided, as others read it


@dataclass(frozen=True, slots=True)
class ConsoleBackend:
    """The bot the console looks at, and the `others` of its cluster."""

    shown: Shown
    journal: SqlStore
    means: Resources
    newest: Newest
    clock: Clock
    others: ClusterClient
    trying: Trial | None = None
    doctor: Doctor | None = None

    @property
    def rooms(self) -> Rooms:
        """All that is in the bot."""
        return self.shown.rooms

    @property
    def peers(self) -> Connections:
        """Who is connected."""
        return self.shown.peers

    @property
    def spending(self) -> Spending:
        """The amounts that are taken, and may be."""
        return self.shown.spending


async def settle(rooms: Rooms, word: OwnerDecision) -> Settled:
    """An owner's word that was said on a page, about a call, a request of people or a draft."""
    number, reason, by = word.number, word.reason.strip(), BY[rooms.owner.tongue]
    if word.kind == "D":
        publishing = rooms.answering.publishing
        if not word.allows:
            return await publishing.leave(number, by=by)
        said = DraftWord(number, changes=bool(reason), words=reason)
        return await publishing.settle(said, by=by)
    answer = Answer(word.allows, number, "" if word.allows else cut(reason))
    if word.kind == "A":
        return rooms.answering.word.settle(number, answer, by=by)
    return await rooms.stages.petitions.settle(number, answer, by=by)


def cut(reason: str) -> str:
    """In one line, and no longer than a reason may be."""
    return " ".join(reason.split())[:MAX_REASON]


async def glance_of(seen: ConsoleBackend, *, with_drafts: bool) -> PartitionStatus:
    """How a bot is now."""
    rooms = seen.rooms
    drafts, more = await drafts_of(rooms) if with_drafts else ((), 0)
    personas = {one.key: one.chats for one in personas_of(rooms.keeping.personas)}
    waits = count_waiting(rooms.on, rooms.answering, rooms.stages.petitions)
    share, waiting = seen.journal.share, waiting_on_page(rooms)
    return PartitionStatus(share.partition, state_of(seen), waiting, drafts, more, personas, waits)


def calls_of(rooms: Rooms) -> tuple[WaitingCall, ...]:
    """The calls that wait."""
    return tuple(
        WaitingCall(
            one.number,
            one.where,
            one.full or one.text.partition("\n")[0],
            one.expires,
            f"{one.question.sender.name} ({one.asker})",
            plain_words(one.question.segments, own=one.question.self_id),
            one.led,
            one.question.group_name,
            *one.parts,
        )
        for one in rooms.answering.requests.open.values()
    )


def waiting_on_page(rooms: Rooms) -> int:
    """How much waits that the page of approvals shows."""
    waiting = count_waiting(rooms.on, rooms.answering, rooms.stages.petitions)
    return sum(waiting.values()) - waiting["group"]


async def drafts_of(rooms: Rooms) -> tuple[tuple[WaitingDraft, ...], int]:
    """The newest drafts that wait, and how many more there are."""
    waiting = [*rooms.on.shadow.drafts.open.values()][::-1]
    told = [await draft_of(rooms, where, one) for where, one in waiting[:DRAFTS]]
    return tuple(one for one in told if one is not None), max(0, len(waiting) - DRAFTS)


async def draft_of(rooms: Rooms, where: Conversation, waiting: KeptDraft) -> WaitingDraft | None:
    """A draft with its words; None where its question was recalled, or is forgotten."""
    if (spoken := await rooms.on.store.spoken(waiting.turn_id)) is None:
        return None
    name = draft_id(waiting.number)
    kept = [one.action for one in spoken.sends if one.send_id.startswith(name)]
    question = spoken.question
    return WaitingDraft(
        waiting.number,
        where,
        question.sender.name,
        plain_words(question.segments, own=question.self_id),
        "\n".join(plain_words(one.segments, own=where.platform_id) for one in kept),
        waiting.at + LASTS,
        question.group_name,
    )


def petitions_of(rooms: Rooms) -> tuple[WaitingJoinRequest, ...]:
    """The friend requests and invites that wait."""
    return tuple(
        WaitingJoinRequest(
            one.number,
            one.user_id,
            one.group_id,
            one.comment,
            one.since + DAYS * 86_400,
            one.account,
        )
        for one in rooms.stages.petitions.open
    )


def personas_of(personas: Personas) -> tuple[PersonaState, ...]:
    """The usual one and the others, with the chats where each is."""
    cast, at = personas.cast, dict[str, list[str]]()
    for where in personas.chosen:
        at.setdefault(personas.key(where), []).append(str(where))
    by_file = {group: house.persona for group, house in cast.houses.items() if house.persona}
    for group, key in sorted((dict(cast.claimed) | by_file).items()):
        at.setdefault(key, []).append(str(group))
    return tuple(
        PersonaState(
            key=key,
            name=one.name,
            text=personas.text(key),
            chats=tuple(at.get(key, ())),
            filed=one.prompt if personas.is_changed(key) else None,
        )
        for key, one in (("", cast.usual), *sorted(cast.others.items()))
    )


def rendered(rooms: Rooms, where: Conversation) -> tuple[str, ...]:
    """The prompt before a conversation: the system prompt, and the persona's examples."""
    return tuple(
        one.content if isinstance(one, ToolMessage) else one.text
        for one in rooms.keeping.around(where).messages
    )


def outbox_of(sends: Iterable[Send]) -> tuple[OutboxState, ...]:
    """The sends that are not delivered yet, or may not be, by chat; the oldest first."""
    by_chat: dict[Conversation, list[Send]] = {}
    for send in sends:
        by_chat.setdefault(send.action.conversation, []).append(send)
    states = (
        OutboxState(
            where,
            waiting=sum(one.state is not SendState.UNKNOWN for one in there),
            unsure=sum(one.state is SendState.UNKNOWN for one in there),
            since=min(one.at for one in there),
        )
        for where, there in by_chat.items()
    )
    return tuple(sorted(states, key=lambda one: one.since))


def state_of(seen: ConsoleBackend) -> State:
    """How everything is now."""
    rooms, now = seen.rooms, seen.clock.monotonic()
    upstreams = dict.fromkeys(seen.means.models.upstreams())
    lanes, state = rooms.on.lanes, seen.journal.state()
    return State(
        accounts=tuple(
            AccountState(one.self_id, one.online is not False, one.server)
            for one in seen.peers.accounts()
        ),
        active=lanes.active,
        waiting=max(0, lanes.waiting - lanes.active),
        models=tuple(ModelState(one.name, one.cooldown(now), one.is_priced) for one in upstreams),
        place=str(state["place"]),
        in_trouble=bool(state["in_trouble"]),
        unwritten=int(state["waiting"]),
        calls=calls_of(rooms),
        petitions=petitions_of(rooms),
        failures=tuple(Failure(*one) for one in reversed(rooms.failures.last)),
        paused=tuple(filter(seen.journal.share.has_place, rooms.on.quiet_overrides.muted)),
        outbox=outbox_of(rooms.on.outbox.open_sends),
        ignored=tuple(rooms.asking.hearing.ignored),
    )
