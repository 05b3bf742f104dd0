"""Data of the console's pages, for one bot or a whole cluster, and decisions made on a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.approvals.decision import MAX_REASON, Choice, Reply
from bot.approvals.join_requests import DAYS
from bot.build import App
from bot.core.actions import plain_words
from bot.core.console_views import (
    AccountState,
    ApplicantRule,
    BotStatus,
    Failure,
    GreetingState,
    GroupState,
    JobRow,
    ModelState,
    OutboxState,
    OwnerDecision,
    PersonaState,
    State,
    WaitingCall,
    WaitingDraft,
    WaitingJoinRequest,
)
from bot.core.conversation import Conversation
from bot.core.drafts import draft_id
from bot.core.journal import SendState
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.settlement import Settled
from bot.jobs.rules import tell_date, tell_moment
from bot.memory.drafts import LASTS, KeptDraft
from bot.memory.personas import Personas
from bot.outbox.sends import Send
from bot.welcome import OFF, SETTINGS, Change, Templates
from frostagent.types.messages import ToolMessage

DRAFTS = 20  # shown on a page
LATEST = 200  # actions about a group among which those on its greetings are found
BY = Phrase("控制台", "the console")  # the author of a decision, as shown to owners in QQ
CATALOGUE.register(__name__, globals())


async def read_all(app: App, *, with_drafts: bool = False) -> BotStatus:
    """The status of all bots together, with this one's number."""
    own = await read_status(app, with_drafts=with_drafts)
    return await app.others.add_statuses(own, with_drafts=with_drafts)


async def decide_anywhere(app: App, decision: OwnerDecision) -> Settled:
    """Have a decision applied by the bot that has its account."""
    if not decision.account or app.journal.scope.has(decision.account):
        return await decide(app, decision)
    return await app.others.decide(decision)


async def render_anywhere(app: App, where: Conversation) -> Sequence[str] | None:
    """The part of a prompt before the conversation; None if no bot has its account now."""
    if app.journal.scope.has_place(where):
        return render_context(app, where)
    return await app.others.render_context(where)


async def decide(app: App, decision: OwnerDecision) -> Settled:
    kind, number, words = decision.kind, decision.number, decision.reason.strip()
    choice: Choice
    if kind == "D":
        choice = ("edit" if words else "publish") if decision.allows else "discard"
    else:
        choice = "approve" if decision.allows else "deny"
        words = "" if decision.allows else " ".join(words.split())[:MAX_REASON]
    reply = Reply(choice, number, words)
    return await app.decisions.settle(kind, number, reply, by=BY.format(app.owner.language))


async def read_status(app: App, *, with_drafts: bool) -> BotStatus:
    """The current status of this bot; the text of drafts only `with_drafts`."""
    drafts, more = await read_drafts(app) if with_drafts else ((), 0)
    personas = {one.key: one.chats for one in list_personas(app.personas)}
    waits = app.decisions.count()
    number, state = app.journal.scope.number, read_state(app)
    waiting = count_decisions(app)
    return BotStatus(number, state, waiting, drafts, more, personas, waits)


def list_calls(app: App) -> tuple[WaitingCall, ...]:
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
        for one in app.decisions.calls.open.values()
    )


def count_decisions(app: App) -> int:
    """Number of waiting decisions for the page of approvals: all but new groups."""
    waiting = app.decisions.count()
    return sum(waiting.values()) - waiting["group"]


async def read_drafts(app: App) -> tuple[tuple[WaitingDraft, ...], int]:
    """Return the latest DRAFTS waiting drafts, and the number of the others."""
    waiting = [*app.decisions.drafts.open.values()][::-1]
    told = [await read_draft(app, where, one) for where, one in waiting[:DRAFTS]]
    shown = sorted((one for one in told if one is not None), key=lambda one: -one.expires)
    return tuple(shown), max(0, len(waiting) - DRAFTS)


async def read_draft(app: App, where: Conversation, waiting: KeptDraft) -> WaitingDraft | None:
    """Return a draft with its text; None if its question was recalled or erased."""
    if (spoken := await app.store.spoken(waiting.turn_id)) is None:
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


def list_join_requests(app: App) -> tuple[WaitingJoinRequest, ...]:
    """The friend requests, invitations and applicants that wait."""
    return tuple(
        WaitingJoinRequest(
            one.number,
            one.user_id,
            one.group_id,
            one.comment,
            one.since + DAYS * 86_400,
            one.account,
            one.kind == "apply",
        )
        for one in app.decisions.join_requests.open
    )


def list_personas(personas: Personas) -> tuple[PersonaState, ...]:
    """The default persona and the others, each with its chats."""
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


def job_moment(job: JobRow, now: float, language: Language) -> str:
    """When a job comes next, or was to come, by the clock of its zone."""
    tell = tell_moment if job.due > now else tell_date
    return tell(job.due, zone=job.zone, now=now, language=language)


async def read_group(app: App, where: Conversation, *, asks_owners: bool) -> GroupState | None:
    """What is said to people who join and leave a group, and who is let in; None if the journal
    cannot be read now. Its settings are read from the journal: a bot of a cluster has only those of
    its own accounts in memory.
    """
    books, house = app.journal.books, app.personas.house(where)
    kept, audited = (
        await books.settings_of(where),
        await books.audit(latest=LATEST, about=str(where)),
    )
    if kept is None or audited is None:
        return None
    greetings = []
    changes: tuple[Change, ...] = "joined", "left"
    for change in changes:
        name, filed = SETTINGS[change].name, Templates(house.welcome, house.farewell).of(change)
        chosen = kept.get(name)
        words = filed if chosen is None else chosen
        last = next((one for one in audited if (one.action, one.outcome) == (name, "ok")), None)
        greetings.append(
            GreetingState(
                change=change,
                words="" if words == OFF else words,
                source="set" if chosen is not None else "file" if filed else "",
                at=last.at if last else 0.0,
                by=(last.login or last.address) if last else "",
            )
        )
    rules = (ApplicantRule(one.text, one.accepts, one.reason) for one in house.join)
    return GroupState(greetings=tuple(greetings), rules=tuple(rules), asks_owners=asks_owners)


def render_context(app: App, where: Conversation) -> tuple[str, ...]:
    """The part of a prompt before the conversation: system prompt, and the persona's examples."""
    return tuple(
        one.content if isinstance(one, ToolMessage) else one.text
        for one in app.prompt_head(where).messages
    )


def group_open_sends(sends: Iterable[Send]) -> tuple[OutboxState, ...]:
    """The undelivered and unconfirmed sends by chat, oldest chat first."""
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


def read_state(app: App) -> State:
    now = app.clock.monotonic()
    upstreams = dict.fromkeys(app.models.upstreams())
    lanes, state = app.lanes, app.journal.state()
    models = [ModelState(one.name, one.cooldown(now), one.is_priced) for one in upstreams]
    return State(
        accounts=tuple(
            AccountState(one.self_id, one.online is not False, one.server)
            for one in app.peers.accounts()
        ),
        active=lanes.active,
        waiting=max(0, lanes.waiting - lanes.active),
        models=merge_models(models),
        place=str(state["place"]),
        in_trouble=bool(state["in_trouble"]),
        unwritten=int(state["waiting"]),
        calls=list_calls(app),
        petitions=list_join_requests(app),
        failures=tuple(Failure(*one) for one in reversed(app.failures.last)),
        paused=tuple(filter(app.journal.scope.has_place, app.quiet_hours.muted)),
        outbox=group_open_sends(app.outbox.open_sends),
        ignored=tuple(sorted(app.message_log.ignored, key=lambda one: one.at)),
    )


def merge_models(models: Iterable[ModelState]) -> tuple[ModelState, ...]:
    """Merge models of the same name; the longest cooldown counts."""
    merged = dict[str, ModelState]()
    for model in models:
        other = merged.get(model.name, model)
        merged[model.name] = ModelState(
            model.name, max(model.cooldown, other.cooldown), model.is_priced or other.is_priced
        )
    return tuple(merged.values())
