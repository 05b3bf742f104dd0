"""The way out, put together: where everything is said, or kept back for the owners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adapters.media.folder import DraftFiles
from adapters.storage.store import SqlStore
from bot.conversation.intake.mutes import Mutes
from bot.conversation.turns.live import LiveTurns
from bot.domain.cluster_messages import ALONE, ClusterPeers
from bot.domain.events import Conversation, MessageReceived
from bot.domain.language import Language
from bot.domain.masking import Mask
from bot.domain.ports import Clock, Ids, Store, Transport
from bot.memory.drafts import Drafts
from bot.memory.modes import Modes
from bot.policy.drafts import FORGOTTEN
from bot.speaking.carrier import Carrier
from bot.speaking.outbox import Outbox
from bot.speaking.owner_alerts import Owner
from bot.speaking.queues import Queues
from bot.speaking.screening import Screen, Screened, as_they_are
from bot.speaking.sends import Rows
from bot.speaking.shadow import Shadow
from bot.wiring.models import new_groups
from bot.wiring.resources import Resources
from config.settings import Settings


def owners_tongue(settings: Settings) -> Language:
    """English where BOT_LANGUAGE says so."""
    return Language.ENGLISH if settings.bot_language == "en" else Language.CHINESE


@dataclass(frozen=True, slots=True)
class Mouth:
    """The outbox, and what is asked before something leaves it."""

    outbox: Outbox
    owner: Owner
    shadow: Shadow
    modes: Modes
    live: LiveTurns
    mutes: Mutes


def build_mouth(
    settings: Settings,
    means: Resources,
    journal: SqlStore,
    transport: Transport,
    store: Store,
    mask: Mask,
    clock: Clock,
    ids: Ids,
    neighbours: ClusterPeers = ALONE,
) -> Mouth:
    """Where everything is said, and who tells the owners what only they can mend: that what a turn
    said got lost, too.
    """
    rows, mutes = Rows(store=store, clock=clock, ids=ids), Mutes(clock=clock)
    carrier = Carrier(
        transport=transport,
        rows=rows,
        clock=clock,
        ids=ids,
        rate=settings.bot_send_rate,
        burst=settings.bot_send_burst,
        mutes=mutes,
    )
    queues = Queues(rows=rows, carrier=carrier)
    owner = build_owner(settings, queues, mask=mask, clock=clock, neighbours=neighbours)
    carrier.unreachable.follow(owner.tell_of_unreachable)
    screened: Screened = as_they_are
    if means.words is not None:
        screened = Screen(words=means.words, owner=owner, owners=settings.bot_owners)
    modes = build_modes(settings, store, journal, clock)
    shelf = DraftFiles(settings.media_dir, journal.share)
    drafts = Drafts(
        store=store,
        choices=journal.books,
        clock=clock,
        shelf=shelf,
        forgotten=FORGOTTEN[owners_tongue(settings)],
    )
    live = LiveTurns(store=store, clock=clock)
    shadow = Shadow(
        modes=modes,
        drafts=drafts,
        rows=rows,
        queues=queues,
        owner=owner,
        asked=question_in(live),
        clock=clock,
        tongue=owners_tongue(settings),
    )
    outbox = Outbox(
        rows=rows,
        carrier=carrier,
        queues=queues,
        tell=owner.tell_of_send,
        screened=screened,
        shadow=shadow,
    )
    return Mouth(outbox, owner, shadow, modes, live, mutes)


def question_in(live: LiveTurns) -> Callable[[Conversation, str], MessageReceived | None]:
    """Who finds the question of a turn that goes on."""

    def asked(where: Conversation, turn_id: str) -> MessageReceived | None:
        turns = (one for one in live.at(where) if one.turn and one.turn.run.id == turn_id)
        return next((one.message for one in turns), None)

    return asked


def build_owner(
    settings: Settings, queues: Queues, *, mask: Mask, clock: Clock, neighbours: ClusterPeers
) -> Owner:
    """Who writes to the owners, in their language."""
    return Owner(
        owners=settings.bot_owners,
        queues=queues,
        clock=clock,
        mask=mask,
        quiet=settings.bot_owners.quiet,
        tongue=owners_tongue(settings),
        neighbours=neighbours,
    )


def build_modes(settings: Settings, store: Store, journal: SqlStore, clock: Clock) -> Modes:
    """Who knows how the bot is in each group."""
    return Modes(
        store=store,
        choices=journal.books,
        clock=clock,
        usual=new_groups(settings),
        told=tells_of_new_groups(settings),
    )


def tells_of_new_groups(settings: Settings) -> bool:
    """Whether owners hear of new groups though these are live: they chose none, and are there."""
    return bool(settings.bot_owners) and not settings.bot_groups
