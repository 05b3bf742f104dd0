"""What must hold once the last life has ended, from the records of both ends. Pure; complaints in words."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from adapters.simulator.call import SentMessage
from bot.core.journal import MessageErased, MessageObserved, MessageOverheard, SendState, Undelivered
from bot.policy.fallback_replies import ASK_AGAIN
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from frostagent.types.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from frostagent.types.speech import Text
from tests.fallback_lines import ENGLISH, UNANSWERED
from tests.torture.evidence import Evidence, Verdict
from tests.torture.journal import ADDED, Journal, Turn, is_asked, without
from tests.torture.model import Asked, Json, behind_notes, faults
from tests.torture.moments import Kind
from tests.torture.stage import ACCOUNT, Question

TROUBLES = frozenset(kind for kind in Kind if kind.comes_back or kind.is_lost)
ANSWERED = ("answered", *Undelivered)  # whatever became of the words
POLITE = (*ASK_AGAIN, *(one.partition("{")[0] for one in (UNANSWERED, ENGLISH[UNANSWERED])))


UNQUOTED = {"long", "refused"}  # a forward has no quote, and what was refused is said without it
NOTES = tuple(words.heading(words.notes) for words in (ZH, EN))


def judge(evidence: Evidence) -> Verdict:
    """Everything that can be said about a moment."""
    journal, verdict = evidence.journal, Verdict()
    unknown = [row for row in journal.sends if row["state"] == SendState.UNKNOWN]
    verdict.unknown = len(unknown)
    verdict.arrived = sum(any(_words(row) == (m.text, _place(m)) for m in evidence.delivered) for row in unknown)
    verdict.polite = sum(message.text.startswith(POLITE) for message in evidence.delivered)
    verdict.asked_again = sum(bool(one.retry_of) for one in journal.turns)
    verdict.complaints += evidence.errors
    verdict.complaints += evidence.invalid
    verdict.complaints += unsound(evidence)
    verdict.complaints += journal.broken(evidence.kept, evidence.taken_back)
    verdict.complaints += _said_twice(evidence)
    verdict.complaints += (f"the model was asked {one} again after its answer" for one in evidence.asked_again)
    verdict.complaints += _uncounted(evidence)
    verdict.complaints += _rung_wrongly(evidence)
    verdict.complaints += _answered_after_all(evidence)
    verdict.complaints += _unanswered(evidence, verdict)
    if evidence.kind is not Kind.KEEPING:  # there windows move, and people begin anew
        verdict.complaints += _changed_prompts(evidence)
        verdict.complaints += _unread(evidence)
    return verdict


def unsound(evidence: Evidence) -> Iterator[str]:
    """What is wrong with the log, and with the journal by itself."""
    yield from _logged(evidence)
    yield from unsound_rows(evidence.journal)


def _words(row: dict[str, Any]) -> tuple[str, str]:
    """What a send says, and where."""
    segments = json.loads(row["segments"])
    return "".join(segment["text"] for segment in segments if segment["type"] == "text"), row["conversation"]


def _place(message: SentMessage) -> str:
    kind, number = ("group", message.group_id) if message.group_id else ("private", message.user_id)
    return f"{ACCOUNT}:{kind}:{number}"


def _logged(evidence: Evidence) -> Iterator[str]:
    """Nothing goes wrong but what was made to."""
    for line in evidence.log:
        expected = evidence.kind in TROUBLES and "The journal " in line
        if (" ERROR " in line and not expected) or line.startswith("Traceback"):
            yield line


def _uncounted(evidence: Evidence) -> Iterator[str]:
    """Each request that came to the model is a row, and of a turn that was cut off in its first one no other is."""
    if evidence.kind in TROUBLES:  # what was not written nobody can count
        return
    rows, stepped = evidence.journal.usage, {turn_id for turn_id, _ in evidence.journal.steps}
    opened = evidence.journal.opened.keys()  # of who was forgotten the steps are gone, too
    if len(rows) < (made := len(evidence.asked)):
        yield f"of {made} requests only {len(rows)} are counted"
    cut_off = Counter(row["turn_id"] for row in rows if row["step"])
    for turn_id, times in cut_off.items():
        if times > _made_of(turn_id, evidence) and turn_id in opened - stepped:
            yield f"the request of turn {turn_id} that was cut off is counted {times} times"


def _made_of(turn_id: str, evidence: Evidence) -> int:
    """How many requests of a turn may be from before its first answer: one, and each that came after a line."""
    of_turn = {(one.where, one.message_id) for one in evidence.journal.turns if one.turn_id == turn_id}
    tokens = {one.token for one in evidence.questions if (one.where, str(one.message_id)) in of_turn}
    came = sum(one.token in tokens and not one.step for one in evidence.asked)
    return max(1, min(came, 1 + evidence.journal.steered[turn_id]))


# --- the journal ----------------------------------------------------------------------------------


def unsound_rows(journal: Journal) -> Iterator[str]:
    """What no journal may be left with once all is done."""
    if journal.integrity != "ok":
        yield f"the database is damaged: {journal.integrity}"
    for row in journal.sends:
        if row["state"] in (SendState.SENDING, SendState.QUEUED):
            yield f"send {row['send_id']} ({row['segments']}) was left {row['state']}"
    for (where, message_id), rows in journal.messages.items():
        if len(rows) > 1:
            yield f"message {message_id} in {where} is stored {len(rows)} times"
    for one in journal.turns:
        if not one.closed:
            yield f"turn {one.turn_id} was left open"
        if one.round is not None:
            begins = is_asked(one.round[0], one.user)
            if not (begins and _ends(one.round[-1])):
                yield f"the round of turn {one.turn_id} does not begin with {one.user!r} and end as it may: {one.round}"
            written = [{"role": "system", "content": ""}, *map(_as_wire, _with_note(one.round))]
            yield from (f"the round of turn {one.turn_id}: {what}" for what in faults(written))


def _with_note(round_: Sequence[Message]) -> Sequence[Message]:
    """The round, where nothing was answered with the note on that in the message before it, as vendors get it."""
    match round_:
        case [*before, UserMessage(text=asked), UserMessage(text=noted)] if noted.startswith(NOTES):
            return [*before, UserMessage(f"{asked}\n\n{noted}")]
        case _:
            return round_


def _ends(last: Message) -> bool:
    """With words, with a note on them, or with the result of what said them."""
    match last:
        case AssistantMessage(tool_calls=calls):
            return not calls
        case UserMessage(text=text):
            return text.startswith(NOTES)
        case ToolMessage(name=name):
            return name == "send_message"
        case _:
            return False


def _as_wire(message: Message) -> Json:
    match message:
        case SystemMessage(text=text):
            return {"role": "system", "content": text}
        case UserMessage(text=text):
            return {"role": "user", "content": text}
        case AssistantMessage(text=text, tool_calls=calls):
            return {"role": "assistant", "content": text, "tool_calls": [{"id": call.id} for call in calls]}
        case ToolMessage(call_id=call_id, content=content):
            return {"role": "tool", "tool_call_id": call_id, "content": content}


# --- what people got ------------------------------------------------------------------------------


def _said_twice(evidence: Evidence) -> Iterator[str]:
    """No word of a tool twice, and one answer a question: its own, or a polite line."""
    unproven = {question.token for question in evidence.questions if _is_unproven(question, evidence)}
    for text, times in Counter(m.text for m in evidence.delivered if m.text.startswith("S:")).items():
        if times > 1 and text[2:].partition(" ")[0].partition("-")[0] not in unproven:
            yield f"{text} was said {times} times"
    for question in evidence.questions:
        ends = (evidence.delivered, evidence.sent)
        for end in ends[:1] if question.kind == "refused" else ends:  # said once more after a refusal
            answers = [_first_line(m) for m in end if _is_final(m, question, evidence)]
            if question.friend:
                answers = [text for text in answers if not text.startswith(POLITE)]
            # What was answered before may stand in a later question of the same person, too.
            own = [text for text in answers if text.startswith(POLITE) or text[2:] == question.token]
            answers = own or answers
            if len(answers) > 1:
                yield f"{question} was answered {len(answers)} times: {answers}"
    yield from _said_twice_in_private(evidence)
    tokens = {question.token for question in evidence.questions}
    for message in evidence.delivered:
        words = _first_line(message)
        token = words.partition(":")[2].partition(" ")[0].partition("-")[0]
        if token not in tokens and not words.startswith((*POLITE, *evidence.commanded)):
            yield f"nobody asked for {words!r}"


def _first_line(message: SentMessage) -> str:
    """Which answer it is: a long one, and a merged forward, has more."""
    return message.words.partition("\n")[0]


def _rung_wrongly(evidence: Evidence) -> Iterator[str]:
    """No tool does twice what one question asked for, and what was answered after it was done."""
    unproven = {question.token for question in evidence.questions if _is_unproven(question, evidence)}
    for line, times in Counter(evidence.rung).items():
        if times > 1 and line.split()[-1] not in unproven:
            yield f"a tool did {times} times: {line}"
    said = {message.text for message in evidence.delivered}
    for question in evidence.questions:
        line = f"{question.effect} {question.token}"
        if question.effect and f"F:{question.token}" in said and line not in evidence.rung:
            yield f"a tool never did: {line}"


def _is_unproven(question: Question, evidence: Evidence) -> bool:
    """Whether the journal was deleted before people had an answer, or could not be written in the life in which it was
    asked, and that had no time to answer: what was done for it, nobody knows.
    """
    unwritten = 0 if evidence.kind is Kind.GONE else 1 if evidence.kind.comes_back else -1
    if question.life != unwritten:
        return False
    delivered = zip(evidence.delivered, evidence.delivered_in, strict=True)
    return not any(life == unwritten and _is_final(message, question, evidence) for message, life in delivered)


def _said_twice_in_private(evidence: Evidence) -> Iterator[str]:
    """A polite line in private says to which question it belongs to nobody: there are not more answers than those."""
    asked = Counter(question.friend for question in evidence.questions if question.friend)
    for friend, questions in asked.items():
        texts = [m.text for m in evidence.delivered if not m.group_id and m.user_id == friend]
        answers = [text for text in texts if text.startswith(("A:", "F:", *POLITE))]
        if len(answers) > questions:
            yield f"friend {friend} asked {questions} questions and got {len(answers)} answers: {answers}"


def _answered_after_all(evidence: Evidence) -> Iterator[str]:
    """Nobody answers a question any more in the lives after it was promised that its recall is known."""
    erased: dict[tuple[str, str], int] = {}
    for life, promised in enumerate(evidence.promised):
        for entry in promised:
            if isinstance(entry, MessageErased):
                erased.setdefault((str(entry.conversation), entry.message_id), life)
    for question in evidence.questions:
        known = erased.get((question.where, str(question.message_id)))
        if question.recalled and known is not None:
            delivered = zip(evidence.delivered, evidence.delivered_in, strict=True)
            answers = [m.text for m, life in delivered if life > known and _is_final(m, question, evidence)]
            if answers:
                yield f"{question} was taken back, and answered: {answers}"


def _is_final(message: SentMessage, question: Question, evidence: Evidence) -> bool:
    own = question.is_ended_by(message)
    if question.friend:
        # A polite line in private says to nobody's question in particular; the last one there is always answered.
        polite = message.text.startswith(POLITE) and question.kind != "last"
        return own or (polite and message.user_id == question.friend)
    quoted = [str(segment["data"].get("id")) for segment in message.segments if segment["type"] == "reply"]
    if own and question.kind in UNQUOTED:
        return True
    return (own or message.text.startswith(POLITE)) and len(quoted) == 1 and quoted[0] in question.ids


def _unanswered(evidence: Evidence, verdict: Verdict) -> Iterator[str]:
    """Who was heard for certain got a reply, unless what would have been one is unknown."""
    before = [entry.message for life in evidence.promised[:-1] for entry in life if isinstance(entry, MessageObserved)]
    known = {(str(message.conversation), message.message_id) for message in before}
    places = {str(message.conversation) for message in before} - evidence.gone
    for question in evidence.questions:
        replies = [m for m in evidence.delivered if _is_reply(m, question, evidence)]
        if question.recalled or replies:
            continue
        if question.life < evidence.kind.is_lost:
            verdict.excused["asked before the journal was lost"] += 1
            continue
        alive = question.life == len(evidence.promised) - 1 and not question.missed
        heard = alive or (question.where, str(question.message_id)) in known
        found = question.where in places  # in the history, when that is caught up with
        if not (heard or found):
            continue
        if evidence.kind.comes_back and not heard and question.life < len(evidence.promised) - 2:
            verdict.excused["never taken, and then own words that no journal accounts for"] += 1
            continue
        if any(_is_part_of(question, one) for one in evidence.journal.turns):
            verdict.excused["said into the run of another question, and answered with it"] += 1
            continue
        turns = _turns_of(question, evidence.journal)
        sends = [row for row in evidence.journal.sends if row["turn_id"] in {one.turn_id for one in turns}]
        if any(row["state"] == SendState.UNKNOWN for row in sends):
            verdict.excused["unknown"] += 1
        elif question.kind == "refused" and any(row["state"] == SendState.REFUSED for row in sends):
            yield f"the answer to {question} was refused, and its asker heard nothing (the owner: {evidence.told})"
        else:
            yield f"{question} in {question.where} got no reply (heard: {heard}); turns {turns}"


def _is_part_of(question: Question, turn: Turn) -> bool:
    """Whether a friend had asked something just before: then both are one question."""
    if turn.message_id == str(question.message_id) or turn.stop not in ANSWERED or not question.friend:
        return False
    asked = [message.text for message in turn.round or () if isinstance(message, UserMessage)]
    return turn.where == question.where and any(str(question) in text for text in asked)


def _is_reply(message: SentMessage, question: Question, evidence: Evidence) -> bool:
    said = message.text.startswith("S:") and message.text[2:].partition(" ")[0].partition("-")[0]
    return said in (question.token, *question.answered_with) or _is_final(message, question, evidence)


def _turns_of(question: Question, journal: Journal) -> list[Turn]:
    asked = (question.where, str(question.message_id))
    return [one for one in journal.turns if (one.where, one.message_id) == asked]


# --- what the model saw ---------------------------------------------------------------------------


def _changed_prompts(evidence: Evidence) -> Iterator[str]:
    """Each request begins with what the one before it in its conversation said, as far as that is history."""
    before: dict[str, Asked] = {}
    came_in: dict[str, int] = {}
    lives = {asked.token: life for asked, life in zip(evidence.asked, evidence.asked_in, strict=True)}  # the last ones
    told = [replace(asked, messages=tuple(evidence.as_kept(asked.messages))) for asked in evidence.asked]
    for asked, life in zip(told, evidence.asked_in, strict=True):
        if not asked.conversation or life < evidence.first_of_one_journal:
            continue
        if not _turns_behind(asked, evidence):
            yield f"the model was asked {asked.kind}#{asked.token} in a turn that is not stored"
        if (last := before.get(asked.conversation)) is not None:
            kept = _kept(last, evidence)
            if asked.token != last.token and lives[last.token] > came_in[last.conversation]:
                # It is asked anew, behind others perhaps; the first round decides in which language.
                kept = kept[: _question(last.messages)] if _question(last.messages) > 1 else []
            if not _goes_on_from(kept, asked.messages):
                yield (
                    f"the prompt of {asked.kind}#{asked.token} in {asked.conversation} does not begin with that of"
                    f" {last.kind}#{last.token}: {_bytes(kept)[1:]} -> {_bytes(asked.messages)[1:]}"
                )
        before[asked.conversation], came_in[asked.conversation] = asked, life


def _unread(evidence: Evidence) -> Iterator[str]:
    """The last prompt of a group has every piece of chatter that was promised before the last life, once;
    none that was recalled.

    Not where a life could not read what was said before it: it has answered, and so counts as having read it.
    """
    if evidence.kind.comes_back:
        return
    last = {asked.conversation: "\n".join(_bytes(asked.messages)) for asked in evidence.asked if asked.step == 0}
    promised = list(chain.from_iterable(evidence.promised[evidence.kind.is_lost : -1]))
    recalled = {(one.conversation, one.message_id) for one in promised if isinstance(one, MessageErased)}
    for entry in promised:
        match entry:
            case MessageObserved(message=message, overheard=True) if message.is_own:
                pass  # what askers were told in place of a lost answer: equal lines, and no chatter
            case MessageObserved(message=message, overheard=True) | MessageOverheard(message=message):
                words = "".join(segment.text for segment in message.segments if isinstance(segment, Text)).strip()
                prompt = last.get(str(message.conversation), "")
                is_recalled = (message.conversation, message.message_id) in recalled
                if words in evidence.taken_back and not is_recalled:
                    continue  # whether it was written down is not known
                due = 0 if is_recalled else 1
                if (times := len(re.findall(rf"(?:: |\] ){re.escape(words)}(?![0-9])", prompt))) != due:
                    yield f"{words!r} in {message.conversation} is {times} times in the last prompt"
            case _:
                pass


def _kept(asked: Asked, evidence: Evidence) -> Sequence[Json]:
    """What of a request must stand at the beginning of every later one."""
    messages = asked.messages
    question = _question(messages)
    turns = _turns_behind(asked, evidence)
    words = messages[question]["content"]
    told = [without(one.round[0].text, evidence.taken_back) for one in turns if one.round is not None]
    if not any(text in words for text in told):
        return messages[:question]  # it was taken back, or more was said before anybody answered
    if any(one.stop == "interrupted" for one in turns):
        return messages[: question + 1]  # what came of it may not have been written
    return messages


def _goes_on_from(kept: Sequence[Json], messages: Sequence[Json]) -> bool:
    """Whether they begin with these, byte for byte; what people said last may go on in the same message."""
    before, begins = _bytes(kept), _bytes(messages[: len(kept)])
    if kept and kept[-1]["role"] == "user" and len(begins) == len(kept):
        more = messages[len(kept) - 1]
        return begins[:-1] == before[:-1] and f"{more['content']}\n\n".startswith(f"{kept[-1]['content']}\n\n")
    return begins == before


def _question(messages: Sequence[Json]) -> int:
    """The place of what is asked: what was said into its run stands behind it."""
    return max(
        place
        for place, message in enumerate(messages)
        if message["role"] == "user" and not message["content"].startswith(ADDED)
    )


def _turns_behind(asked: Asked, evidence: Evidence) -> list[Turn]:
    """The turns a request can belong to: a second try has the words of the first."""
    words = behind_notes(asked.messages[_question(asked.messages)]["content"])
    return [
        one
        for one in evidence.journal.turns
        if one.where == asked.conversation and is_asked(UserMessage(words), without(one.user, evidence.taken_back))
    ]


def _bytes(messages: Sequence[Json]) -> list[str]:
    return [json.dumps(message, ensure_ascii=False) for message in messages]
