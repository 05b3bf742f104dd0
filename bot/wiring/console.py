"""The operator's console, off unless CONSOLE_PORT is set; pages are loaded at the first request."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from adapters.storage.store import SqlStore
from bot.commands.why import Explanations
from bot.conversation.approval.register import DAYS
from bot.domain.audit import Audited
from bot.domain.books import UsageSum
from bot.domain.chat import ToolMessage, Usage
from bot.domain.drafts import draft_id
from bot.domain.events import Conversation
from bot.domain.inspection import Doctor
from bot.domain.journal import PlaceSet, SendState, UsageAdded
from bot.domain.masking import Mask
from bot.domain.plain import plain_words
from bot.domain.ports import Clock
from bot.domain.shown import (
    AccountState,
    Failure,
    ModelState,
    OutboxState,
    PersonaState,
    State,
    WaitingCall,
    WaitingDraft,
    WaitingPetition,
)
from bot.domain.suspension import Settled
from bot.domain.trying import Trial, Wanted
from bot.memory.drafts import LASTS, Waiting
from bot.memory.newest import Newest
from bot.memory.personas import Personas
from bot.memory.row import NOWHERE
from bot.memory.spending import Spending
from bot.memory.window import weigh
from bot.memory.wishes import Wish
from bot.policy.approval import MAX_REASON, Answer
from bot.policy.days import midnight
from bot.policy.drafts import DraftWord
from bot.policy.limits import Rung
from bot.policy.tokens import estimate_text
from bot.speaking.sends import Send
from bot.wiring.background import background
from bot.wiring.limits_shown import limits_shown
from bot.wiring.line import Connections
from bot.wiring.means import Means
from bot.wiring.service import Rooms
from bot.wiring.standing import waiting_of
from bot.wiring.tongue import owners_tongue
from bot.wiring.tools_shown import call_tool, tools_of
from bot.wiring.trying import Trials, ceiling_of
from config.settings import Settings

if TYPE_CHECKING:  # only an open console needs it
    from adapters.console.logins import Logins
    from adapters.console.origins import Origins
    from adapters.console.routes import Routes
    from adapters.console.sources import Sources
    from bot.wiring.simulated import Opens

logger = logging.getLogger(__name__)

Link = Callable[[], str]
"""Makes an address that lets in once."""

DRAFTS = 20  # that are shown on a page
LOGINS = "console"  # what they are kept under
BY = ("控制台", "the console")  # who decided, as others read it

CLOSED = (
    "there is no console, though CONSOLE_PORT is set: CONSOLE_TOKEN is not. `frostagent setup` "
    "makes one, and so does openssl rand -hex 16"
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the console looks at; this service may be itself one that is tried out."""

    rooms: Rooms
    journal: SqlStore
    peers: Connections
    means: Means
    newest: Newest
    clock: Clock
    spending: Spending
    trying: Trial | None = None
    doctor: Doctor | None = None


@asynccontextmanager
async def open_console(
    settings: Settings, seen: Seen, *, mask: Mask, opening: Opens
) -> AsyncIterator[Link | None]:
    """Listen while the block runs; what makes links, None where there is no console. `opening`
    opens a service beside this one.

    Where something is tried out, there is one in any case, on a port that is free.
    """
    token, port = settings.console_token.get_secret_value(), settings.console_port
    if seen.trying is not None and not port:  # nobody has to type anything: a link lets in
        token = token or secrets.token_hex(16)
    elif not port or not token:
        if port:
            logger.warning(CLOSED)
        yield None
        return

    from adapters.console.logins import Logins
    from adapters.console.server import Console

    def load(logins: Logins, _origins: Origins) -> Routes:
        from adapters.console.site import routes_of

        return routes_of(logins, sources_of(settings, seen, mask, trials))

    def keep(logins: str) -> None:
        seen.rooms.on.store.put(PlaceSet(NOWHERE, LOGINS, logins))

    trials = trials_of(settings, seen, mask, opening)
    kept = await seen.journal.books.settings(LOGINS) or {}
    logins = Logins(
        token,
        totp=settings.console_totp.get_secret_value(),
        clock=seen.clock,
        kept=kept.get(NOWHERE, ""),
        keep=keep,
    )
    console = Console(
        host=settings.console_host,
        port=port,
        origin=settings.console_origin,
        logins=logins,
        mask=mask,
        load=load,
    )
    async with background(trials.run()), console:
        yield console.link


def trials_of(settings: Settings, seen: Seen, mask: Mask, opens: Opens) -> Trials:
    """What is tried out beside the bot; nothing of it is loaded before somebody wants it."""
    rooms = seen.rooms

    def opening(wanted: Wanted) -> AbstractAsyncContextManager[Trial]:
        from bot.wiring.trial import offered, open_trial

        told = personas_of(rooms.keeping.personas)
        return open_trial(
            settings,
            wanted,
            opening=opens,
            found=offered(seen.means.staff.toolset.list()),
            texts={one.key: one.text for one in told if one.filed is not None},
            ceiling=trials.ceiling if wanted.is_real else None,
            charge=partial(charge, rooms),
            mask=mask,
        )

    def told(taken: UsageSum) -> None:
        took = f"{taken.requests} requests, {taken.prompt + taken.completion} tokens"
        cost = f"${taken.cost:.4f}{' + ?' if taken.unpriced else ''}"
        at = seen.clock.now()
        rooms.on.store.put(
            Audited(at=at, login="", address="", action="tried", object=took, outcome=cost)
        )

    trials = Trials(
        opening,
        ceiling=partial(ceiling_of, settings),
        is_spent=lambda: seen.spending.rung(NOWHERE, 0) >= Rung.SPENT,
        told=told,
        clock=seen.clock,
        home=seen.trying,
    )
    return trials


def sources_of(settings: Settings, seen: Seen, mask: Mask, trials: Trials) -> Sources:
    """All that the pages show."""
    from adapters.console.sources import Sources

    rooms, clock = seen.rooms, seen.clock
    wishes = rooms.on.wishes

    async def pause(where: Conversation, *, silent: bool) -> bool:
        return await (wishes.keep(where, Wish(is_mute=True)) if silent else wishes.end(where))

    return Sources(
        showing=seen.journal.shown,
        audits=seen.journal.books,
        explain=Explanations(clock.now),
        feed=seen.newest,
        state=partial(state_of, seen),
        limits=partial(limits_shown, settings, seen.spending.own),
        tools=partial(tools_of, seen.means, rooms.keeping.personas),
        call=partial(call_tool, seen.means, rooms.keeping.personas, clock),
        personas=partial(personas_of, rooms.keeping.personas),
        rendered=partial(rendered, rooms),
        retell=rooms.keeping.personas.change,
        untell=rooms.keeping.personas.go_back,
        pause=pause,
        forget=rooms.forgetting.chat,
        settle=partial(settle, rooms, BY[owners_tongue(settings)]),
        drafts=partial(drafts_of, rooms),
        waiting=partial(waiting_on_page, rooms),
        note=rooms.on.store.put,
        tell=rooms.owner.tell,
        tongue=rooms.owner.tongue,
        mask=mask,
        estimate=estimate_text,
        weigh=weigh,
        midnight=midnight,
        clock=clock,
        trying=trials,
        doctor=None if seen.doctor is None else partial(seen.doctor, partial(charge, rooms)),
    )


def charge(rooms: Rooms, model: str, usage: Usage) -> None:
    """What a request took that is nobody's."""
    now = rooms.on.clock.now()
    rooms.on.store.put(UsageAdded(turn_id="", model=model, usage=usage, at=now))


async def settle(
    rooms: Rooms, by: str, kind: str, number: int, *, allows: bool, reason: str = ""
) -> Settled:
    """An owner's word that was said on a page, about a call (`A`), a request of people (`R`) or a
    draft (`D`).
    """
    if kind == "D":
        publishing = rooms.answering.publishing
        if not allows:
            return await publishing.leave(number, by=by)
        word = DraftWord(number, changes=bool(reason.strip()), words=reason.strip())
        return await publishing.settle(word, by=by)
    answer = Answer(allows, number, "" if allows else " ".join(reason.split())[:MAX_REASON])
    if kind == "A":
        return rooms.answering.word.settle(number, answer, by=by)
    return await rooms.stages.petitions.settle(number, answer, by=by)


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
        )
        for one in rooms.answering.requests.open.values()
    )


def waiting_on_page(rooms: Rooms) -> int:
    """How much waits that the page of approvals shows."""
    waiting = waiting_of(rooms.on, rooms.answering, rooms.stages.petitions)
    return sum(waiting.values()) - waiting["group"]


async def drafts_of(rooms: Rooms) -> tuple[tuple[WaitingDraft, ...], int]:
    """The newest drafts that wait, and how many more there are."""
    waiting = [*rooms.on.shadow.drafts.open.values()][::-1]
    told = [await draft_of(rooms, where, one) for where, one in waiting[:DRAFTS]]
    return tuple(one for one in told if one is not None), max(0, len(waiting) - DRAFTS)


async def draft_of(rooms: Rooms, where: Conversation, waiting: Waiting) -> WaitingDraft | None:
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


def petitions_of(rooms: Rooms) -> tuple[WaitingPetition, ...]:
    """The friend requests and invites that wait."""
    return tuple(
        WaitingPetition(
            one.number, one.user_id, one.group_id, one.comment, one.since + DAYS * 86_400
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
    """What stands before a conversation: the system prompt, and the persona's examples."""
    return tuple(
        one.content if isinstance(one, ToolMessage) else one.text
        for one in rooms.keeping.around(where).messages
    )


def outbox_of(sends: Iterable[Send]) -> tuple[OutboxState, ...]:
    """What is not delivered yet, or may not be, by chat; the oldest first."""
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


def state_of(seen: Seen) -> State:
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
        models=tuple(ModelState(one.name, one.rests(now)) for one in upstreams),
        place=str(state["place"]),
        in_trouble=bool(state["in_trouble"]),
        unwritten=int(state["waiting"]),
        calls=calls_of(rooms),
        petitions=petitions_of(rooms),
        failures=tuple(Failure(*one) for one in reversed(rooms.failures.last)),
        paused=rooms.on.wishes.muted,
        outbox=outbox_of(rooms.on.outbox.open_sends),
        ignored=tuple(rooms.asking.hearing.ignored),
    )
