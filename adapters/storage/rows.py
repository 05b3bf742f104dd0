"""Turns an entry of the journal into statements with parameters. Pure.

Raises what the values raise: invalid Unicode cannot become JSON. `batches.py` skips such an entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, assert_never

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Table

from adapters.storage.statements import OVERHEARD, Row, Statement, plain
from adapters.storage.tables import audit, jobs, memories, requests, sends, turns
from bot.core import codec
from bot.core.actions import MAX_SOURCE, SentSegment
from bot.core.events import MessageReceived
from bot.core.jobs import RECALLABLE, Job, JobChanged, JobMade, JobsEnded, JobState
from bot.core.journal import (
    AttachmentNamed,
    Audited,
    ConversationReset,
    Entry,
    Judged,
    MemberNumbered,
    MessageErased,
    MessageObserved,
    MessageOverheard,
    MessageTakenUp,
    PersonaChosen,
    PictureDescribed,
    PlaceSet,
    RequestMade,
    RunResumed,
    RunSuspended,
    SendChanged,
    SendQueued,
    TurnClosed,
    TurnOpened,
    TurnSteered,
    UsageAdded,
    UsageReleased,
    UsageReserved,
    WindowMoved,
)
from bot.core.memories import MemoriesForgotten, MemoriesUsed, MemoryKept, StoredFact, Visibility
from bot.core.segments import Segment
from frostagent.types.messages import Message, Usage
from frostagent.types.runs import StepFinished, ToolFinished, ToolStarted
from frostagent.types.speech import Attachment

IN_SCOPE = 500  # facts of one conversation; the least used are dropped
EVERYWHERE = "everywhere"
"""The shelf of facts that may be shown everywhere."""


def memory_rows(entry: MemoryKept | MemoriesUsed | MemoriesForgotten) -> tuple[Row, ...]:
    match entry:
        case MemoryKept(memory=memory, terms=terms):
            return _kept_memory(memory, terms)
        case MemoriesUsed(memory_ids=ids, at=at, expires=expires):
            used = ({"memory_id": id_, "at": at, "expires": expires} for id_ in ids)
            return tuple((Statement.USE_MEMORY, row) for row in used)
        case MemoriesForgotten(memory_ids=ids):
            gone = [{"memory_id": id_} for id_ in ids]
            return (
                *((Statement.FORGET_TERMS, row) for row in gone),
                *((Statement.FORGET_MEMORY, row) for row in gone),
            )
        case _:
            assert_never(entry)


def unlearned(conversation: str, message_id: str) -> tuple[Row, ...]:
    """The statements that delete facts taken from this message."""
    named = codec.write(message_id).replace("!", "!!").replace("%", "!%").replace("_", "!_")
    taken = {"conversation": conversation, "named": f"%{named}%"}
    return (Statement.UNLEARN_TERMS, taken), (Statement.UNLEARN, taken)


def _kept_memory(memory: StoredFact, terms: Iterable[str]) -> tuple[Row, ...]:
    place = {"memory_id": memory.memory_id, "conversation": str(memory.scope)}
    row = {**_columns(memories, memory), **place, "private": not memory.scope.is_group}
    found_by = (
        (Statement.ADD_TERM, {**place, "shelf": shelf, "term": plain(term)})
        for shelf in shelves_of(memory)
        for term in terms
    )
    crop = {"conversation": str(memory.scope), "most": IN_SCOPE}
    return (
        (Statement.FORGET_TERMS, {"memory_id": memory.memory_id}),
        (Statement.KEEP_MEMORY, row),
        *found_by,
        (Statement.CROP_TERMS, crop),
        (Statement.CROP_MEMORIES, crop),
    )


def shelves_of(memory: StoredFact) -> tuple[str, ...]:
    """The shelves of a fact: its conversation's, and where else it may be shown."""
    here = str(memory.scope)
    match memory.visibility:
        case Visibility.HERE:
            return (here,)
        case Visibility.PERSON:
            return (here, shelf_of(memory.subject))
        case Visibility.EVERYWHERE:
            return (here, EVERYWHERE)


def shelf_of(user: int) -> str:
    """The shelf of facts that may be shown wherever this person asks."""
    return f"person:{user}"


NO_TURN = "-"  # of lines that no run reads

SEGMENTS = tuple[Segment, ...]
SEND_SEGMENTS = tuple[SentSegment, ...]
ROUND = tuple[Message, ...]


def rows(entry: Entry, taken: float) -> tuple[Row, ...]:
    """Return the statements of an entry put at `taken`, in the order of execution."""
    match entry:  # most frequent cases first: each one skipped costs time
        case MessageObserved():
            return _observed(entry, taken)
        case SendQueued() | SendChanged():
            return (_of_send(entry),)
        case Judged():
            return (_verdict(entry, taken),)
        case TurnOpened():
            return _opened(entry)
        case TurnClosed():
            return _closed(entry)
        case StepFinished() | ToolStarted() | ToolFinished():
            return _of_step(entry, taken)
        case TurnSteered():
            return _steered(entry)
        case MessageOverheard(message=message):
            # Inserted again: its new id tells when it was overheard, which may be after a turn
            # began.
            return (
                (Statement.TAKE_BACK_MESSAGE, _place(message)),
                (Statement.ADD_MESSAGE, _message(message, taken, overheard=True)),
            )
        case MessageTakenUp():
            return _taken_up(entry)
        case MessageErased():
            return _erased(entry, taken)
        case WindowMoved() | ConversationReset() | PersonaChosen() | PlaceSet():
            return (_of_window(entry),)
        case MemberNumbered(number=number, user_id=user_id, name=name):
            member = {"number": number, "user_id": user_id, "name": plain(name)}
            return ((Statement.NUMBER_MEMBER, {"conversation": str(entry.conversation), **member}),)
        case AttachmentNamed() | PictureDescribed():
            return (_of_thing(entry, taken),)
        case UsageAdded() | UsageReserved() | UsageReleased():
            return _of_usage(entry)
        case RequestMade():
            return ((Statement.ADD_REQUEST, _columns(requests, entry)),)
        case Audited():
            return ((Statement.ADD_AUDIT, _columns(audit, entry)),)
        case MemoryKept() | MemoriesUsed() | MemoriesForgotten():
            return memory_rows(entry)
        case RunSuspended(turn_id=turn_id, state=state, expires=expires):
            run = {"run_id": turn_id, "turn_id": turn_id, "state": plain(state), "expires": expires}
            return ((Statement.SUSPEND_RUN, run),)
        case RunResumed(turn_id=turn_id):
            return ((Statement.RESUME_RUN, {"run_id": turn_id}),)
        case JobMade() | JobChanged() | JobsEnded():
            return (_of_job(entry),)
        case _:
            assert_never(entry)


CHANGES = (
    "account",
    "number",
    "made",
    "maker",
    "rule",
    "zone",
    "state",
    "claim",
    "due",
    "wake",
    "fired",
    "missed",
    "notes",
)
"""The columns by which a job is found, and those that change."""


def _of_job(entry: JobMade | JobChanged | JobsEnded) -> Row:
    match entry:
        case JobMade(job=job):
            return Statement.ADD_JOB, _job(job)
        case JobChanged(job=job):
            row = _job(job)
            return Statement.CHANGE_JOB, {name: row[name] for name in CHANGES}
        case JobsEnded(where=where, maker=maker, left=left):
            return Statement.END_JOBS, {"conversation": str(where), "maker": maker, "left": left}


def _job(job: Job) -> dict[str, Any]:
    return {
        **_columns(jobs, job),
        "account": job.where.platform_id,
        "conversation": str(job.where),
        "via_group": job.where.via_group,
        "wake": None if job.state is JobState.ENDED else job.wake,
    }


def _columns(table: Table, entry: Struct) -> dict[str, Any]:
    """The columns named like fields of the entry, so that a new column needs no code here. Frequent
    entries are written out below, which is faster.
    """
    found = {}
    for name, is_json in _common(table, type(entry)):
        value = getattr(entry, name)
        if is_json and value is not None:
            value = codec.write(value)
        elif isinstance(value, str):
            value = plain(value)
        found[name] = value
    return found


@cache
def _common(table: Table, kind: type[Struct]) -> tuple[tuple[str, bool], ...]:
    """Their names, and whether they hold JSON."""
    fields = kind.__struct_fields__
    return tuple((one.name, "json" in one.info) for one in table.c if one.name in fields)


def _of_usage(entry: UsageAdded | UsageReserved | UsageReleased) -> tuple[Row, ...]:
    if isinstance(entry, UsageReleased):
        return _in_place_of(entry.turn_id, entry.number)
    where, who = entry.payer or ("", 0)  # otherwise the turn tells
    added = {
        "turn_id": entry.turn_id,
        "step": entry.step,
        "reserved": entry.number if isinstance(entry, UsageReserved) else 0,
        "model": plain(entry.model),
        "at": entry.at,
        **_tokens(entry.usage),
        "place": str(where),
        "who": who,
    }
    before = _in_place_of(entry.turn_id, entry.usage.reserved)
    return (Statement.ADD_USAGE, added), *before


def _in_place_of(turn_id: str, number: int) -> tuple[Row, ...]:
    """Delete the reservation of this number."""
    return ((Statement.DROP_RESERVED, {"turn_id": turn_id, "number": number}),) if number else ()


def _of_thing(entry: AttachmentNamed | PictureDescribed, taken: float) -> Row:
    if isinstance(entry, PictureDescribed):
        found = {"digest": entry.digest, "words": plain(entry.words), "at": taken}
        return Statement.DESCRIBE_PICTURE, found
    thing = {
        "conversation": str(entry.conversation),
        "number": entry.number,
        "message_id": plain(entry.message_id),
        "sender": entry.sender.user_id,
        "thing": codec.write(entry),
        "at": taken,
    }
    return Statement.NAME_THING, thing


def _of_window(entry: WindowMoved | ConversationReset | PersonaChosen | PlaceSet) -> Row:
    place = {"conversation": str(entry.conversation)}
    match entry:
        case WindowMoved(first_turn=turn_id, light_to=light_to, summary=summary):
            window = {"turn_id": turn_id, "light_to": light_to, "summary": plain(summary)}
            return Statement.MOVE_WINDOW, place | window
        case ConversationReset():
            return Statement.RESET_WINDOW, place
        case PersonaChosen(persona=persona):
            return Statement.CHOOSE_PERSONA, place | {"persona": plain(persona)}
        case PlaceSet(name=name, value=value):
            return Statement.SET_PLACE, place | {"name": plain(name), "value": plain(value)}
        case _:
            assert_never(entry)


def kept(segments: tuple[SentSegment, ...]) -> tuple[tuple[SentSegment, ...], bool]:
    """Drop media too large to keep. Returns the segments, and whether they are complete."""
    small = tuple(
        replace(segment, source="")
        if isinstance(segment, Attachment) and len(segment.source) > MAX_SOURCE
        else segment
        for segment in segments
    )
    return small, small == segments


def _taken_up(entry: MessageTakenUp) -> tuple[Row, ...]:
    """Make a message a line of a turn that is not stored yet, so it waits like a question; or, if
    `gone`, of one that never will be.
    """
    turn = {"turn_id": NO_TURN if entry.gone else ""}
    return ((Statement.TAKE_IN_LINE, {**turn, **_place(entry.message), **_said(entry.message)}),)


def _erased(entry: MessageErased, taken: float) -> tuple[Row, ...]:
    place = {"conversation": str(entry.conversation), "message_id": plain(entry.message_id)}
    return (
        (Statement.ERASE_MESSAGE, place),
        (Statement.ERASE_STEERED, place),
        (Statement.FIND_READERS, place),
        (Statement.ERASE_THINGS, place),
        (Statement.RECALL_JOBS, {**place, "since": taken - RECALLABLE}),
        *unlearned(str(entry.conversation), entry.message_id),
    )


def _place(message: MessageReceived) -> dict[str, Any]:
    return {"conversation": str(message.conversation), "message_id": plain(message.message_id)}


def _message(message: MessageReceived, taken: float, *, overheard: bool) -> dict[str, Any]:
    return {
        "conversation": str(message.conversation),
        "via_group": message.conversation.via_group,
        "message_id": plain(message.message_id),
        "message_seq": plain(message.message_seq),
        "self_id": message.self_id,
        "sender": message.sender.user_id,
        "nickname": plain(message.sender.nickname),
        "card": plain(message.sender.card),
        "role": message.sender.role,
        "sub_type": plain(message.sub_type),
        "group_name": plain(message.group_name),
        "segments": codec.write(message.segments),
        "time": message.time,
        "taken": taken,
        "overheard": overheard,
    }


def _observed(entry: MessageObserved, taken: float) -> tuple[Row, ...]:
    message = _message(entry.message, taken, overheard=entry.overheard)
    added = Statement.ADD_MESSAGE, message
    return (added,) if entry.judged is None else (added, _verdict(entry.judged, taken))


def _verdict(entry: Judged, taken: float) -> Row:
    verdict = {
        "conversation": str(entry.conversation),
        "message_id": plain(entry.message_id),
        "sender": entry.sender,
        "wakes": entry.wakes,
        "weak": entry.weak,
        "reason": plain(entry.reason),
        "at": taken,
        "until": entry.until or None,
    }
    return Statement.ADD_VERDICT, verdict


def _opened(entry: TurnOpened) -> tuple[Row, ...]:
    question = entry.question
    conversation, message_id = str(question.conversation), plain(question.message_id)
    turn = {
        **_columns(turns, entry),
        "conversation": conversation,
        "message_id": message_id,
        "asker": question.sender.user_id,
        "opened": entry.at,
    }
    if entry.retry_of:  # it reads what the repeated turn has read
        return ((Statement.OPEN_TURN, turn),)
    read: dict[str, Any] = {
        "turn_id": entry.turn_id,
        "conversation": conversation,
        "overheard": OVERHEARD,
        **_said(question),
    }
    lines = [{"turn_id": entry.turn_id, **_place(one), **_said(one)} for one in entry.lines]
    return (
        (Statement.CONSUME_MESSAGES, read),
        (Statement.MARK_READ, {"conversation": conversation}),
        *((Statement.CONSUME_LINE, line) for line in lines),
        (Statement.OPEN_TURN, turn),
    )


def _said(message: MessageReceived) -> dict[str, Any]:
    """Distinguishes messages with the same id."""
    return {
        "message_id": plain(message.message_id),
        "asker": message.sender.user_id,
        "asked": message.time,
    }


def _steered(entry: TurnSteered) -> tuple[Row, ...]:
    message, turn = entry.message, {"turn_id": entry.turn_id}
    taken = {**turn, "conversation": str(message.conversation), **_said(message)}
    line = {**turn, "step": entry.step, "user": codec.write(entry.user)}
    return (
        (Statement.TAKE_IN_LINE, taken),
        (Statement.ADD_STEERED, {**line, "message_id": plain(message.message_id)}),
    )


def _closed(entry: TurnClosed) -> tuple[Row, ...]:
    run = {
        "run_id": entry.turn_id,
        "turn_id": entry.turn_id,
        "stop": entry.outcome,
        "error": plain(entry.error),
        "steps": entry.steps,
        **_tokens(entry.usage),
    }
    round_ = codec.write(entry.round) if entry.round else None
    turn = {"turn_id": entry.turn_id}
    unread = ((Statement.MARK_UNREAD, turn), (Statement.GIVE_BACK, turn)) if entry.unread else ()
    return (
        (Statement.CLOSE_RUN, run),
        *unread,
        (Statement.CLOSE_TURN, {"turn_id": entry.turn_id, "round": round_, "at": entry.at}),
    )


def _tokens(usage: Usage) -> dict[str, Any]:
    return {
        "prompt": usage.prompt,
        "completion": usage.completion,
        "cached": usage.cached,
        "reasoning": usage.reasoning,
        "cost": usage.cost,
    }


def _of_step(entry: StepFinished | ToolStarted | ToolFinished, taken: float) -> tuple[Row, ...]:
    number: dict[str, Any] = {"turn_id": entry.run_id, "step": entry.step}
    match entry:
        case StepFinished(completion=completion):
            step = {
                **number,
                "message": codec.write(completion.message),
                "finish": str(completion.finish),
                "model": plain(completion.endpoint or completion.model),
                "seconds": entry.seconds,
                "at": taken,
            }
            if (usage := completion.usage) is None:
                return ((Statement.ADD_STEP, step),)
            tokens = {**number, "model": step["model"], **_tokens(usage), "at": taken}
            tokens |= {"reserved": 0, "place": "", "who": 0}
            before = _in_place_of(entry.run_id, usage.reserved)
            return (Statement.ADD_STEP, step), (Statement.ADD_USAGE, tokens), *before
        case ToolStarted(call=call):
            begun = {"call_id": plain(call.id), "name": plain(call.name), "started": taken}
            return ((Statement.START_CALL, {**number, **begun}),)
        case ToolFinished(result=result):
            ended = {
                **number,
                "call_id": plain(result.call_id),
                "name": plain(result.name),
                "result": codec.write(result),
                "code": entry.code,
                "seconds": entry.seconds,
            }
            return ((Statement.FINISH_CALL, ended),)
        case _:
            assert_never(entry)


def _of_send(entry: SendQueued | SendChanged) -> Row:
    match entry:
        case SendQueued(action=action):
            segments, whole = kept(action.segments)
            return Statement.QUEUE_SEND, {
                **_columns(sends, entry),
                "conversation": str(action.conversation),
                "via_group": action.conversation.via_group,
                "segments": codec.write(segments),
                "whole": whole,
                "queued": entry.at,
                "changed": entry.at,
            }
        case SendChanged():
            return Statement.CHANGE_SEND, {
                "send_id": entry.send_id,
                "state": str(entry.state),
                "at": entry.at,
                "message_id": plain(entry.message_id),
                "reason": plain(entry.reason),
            }
        case _:
            assert_never(entry)
