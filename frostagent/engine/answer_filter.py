"""Decides which text of the model is an answer: not the prompt's frame, not one of our own notices,
not a receipt for a message it sent, and not doubted (or doubted, but no better one came).
"""

from __future__ import annotations

import json
import re
from functools import cache

from msgspec.structs import replace

from frostagent.engine.run_state import Run, RunState
from frostagent.models.request_repairs import is_told_call, with_notice
from frostagent.text.similarity import comparable_lengths, is_similar_to_any, letters_only
from frostagent.types.errors import ERROR
from frostagent.types.messages import AssistantMessage, Message, ToolCall, ToolMessage
from frostagent.types.runs import Outcome, Stop
from frostagent.types.speech import SEND
from frostagent.words import Words

ID = re.compile(r"message_id: ?[\w-]+")
LONGEST = 60  # characters


def next_request_messages(run: Run, state: RunState, notice: str) -> tuple[Message, ...]:
    """The messages of the next request; after a spoilt answer, with examples."""
    *before, question = run.transcript
    examples = run.examples if state.is_spoilt else ()
    return with_notice((*before, *examples, question, *state.messages), notice)


def filter_answer(
    run: Run, state: RunState, message: AssistantMessage
) -> tuple[AssistantMessage, bool]:
    """The tidied message, and whether text was removed that was not meant as silence.

    Removes text that is silence, that repeats one of our notices or a call's error, that is doubted
    for the first time, or that is a receipt for a message the asker has read.
    """
    tidied = message if run.tidy is None else run.tidy(message)
    if run.silence is not None and run.silence(tidied.text, state.silence):
        state.silence = tidied.text
        return replace(tidied, text=""), False
    if tidied.tool_calls:
        cited = _cited(run, state, tidied)
        return cited, cited is not message
    heard, text = run.was_heard(), tidied.text
    ours = own_words(run.words)
    is_receipt_alone = heard and ours.has_receipt(text) and _only_spoke_here(state)
    if is_receipt_alone or _is_said_back(ours, state, ours.without_run(text)):
        return replace(tidied, text=""), True
    if run.doubts is not None and not (state.is_spoilt or heard) and run.doubts(text):
        state.doubted = _cited(run, state, tidied).text
        return replace(tidied, text=""), True
    cited = _cited(run, state, tidied)
    return cited, cited is not message


def _cited(run: Run, state: RunState, message: AssistantMessage) -> AssistantMessage:
    return message if run.cite is None else run.cite(message, state.messages)


def doubted_answer(run: Run, state: RunState) -> str:
    """The doubted answer; empty if a message was sent since."""
    return "" if run.was_heard() else state.doubted


def fallback_answer(run: Run, state: RunState, *, spoilt: bool) -> str:
    """The doubted answer, once a retry has brought no text (`spoilt`: all of it was removed); empty
    if the model may stay silent.
    """
    is_asked_again = state.is_spoilt and not run.may_end_empty(spoilt=spoilt)
    return doubted_answer(run, state) if is_asked_again else ""


def failed_outcome(run: Run, state: RunState, error: str) -> Outcome:
    """The outcome of an error, or the doubted answer, which is better than none."""
    if text := doubted_answer(run, state):
        state.messages.append(AssistantMessage(text))
        return state.outcome(Stop.ANSWERED, text)
    return state.outcome(Stop.FAILED, error=error)


def _is_said_back(ours: OwnWords, state: RunState, text: str) -> bool:
    """Whether the text only repeats one of our notices or a call's error."""
    if ours.told.has(text) or is_call_error(text) or is_told_call(text):
        return True
    errors = [one for one in state.messages if isinstance(one, ToolMessage) and one.is_error]
    return bool(errors) and KnownTexts(*(one.content for one in errors)).has(text)


def _only_spoke_here(state: RunState) -> bool:
    """Whether the latest calls only sent to this chat. A mail, or a message to another chat, would
    be news to the asker.
    """
    said = (one.tool_calls for one in reversed(state.messages) if isinstance(one, AssistantMessage))
    return all(call.name == SEND and not _session(call) for call in next(said, ()))


def _session(call: ToolCall) -> bool:
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return False
    return isinstance(given, dict) and bool(given.get("session"))


# --- our own texts --------------------------------------------------------------------------------

ECHO = 90.0  # percent
LONG_ENOUGH = 8  # letters and digits: shorter greetings are often returned verbatim
LETTERS = 3  # worth as much as one Chinese character
CJK = re.compile(r"[\u3400-\u9fff]")


OUR_ERROR = re.compile(rf"\s*{ERROR}.*\[[A-Z]+(?:_[A-Z]+)+\]\s*", re.DOTALL)
"""A failed call, as the model reads it."""


class KnownTexts:
    """Our own texts, prepared once for finding them in answers."""

    def __init__(self, *texts: str) -> None:
        self._texts = tuple(map(letters_only, texts))
        self._all = "\n".join(self._texts)
        self._longest = max(map(len, self._texts), default=0)
        self._near: dict[int, tuple[str, ...]] = {}  # by the length of the answer

    def has(self, text: str) -> bool:
        """Whether the text is only a part of one of these, or almost all of one."""
        words = letters_only(text)
        if words in self._all or is_similar_to_any(words, self._like(len(words)), least=ECHO):
            return len(words) + (LETTERS - 1) * len(CJK.findall(words)) >= LETTERS * LONG_ENOUGH
        return False  # the usual case

    def _like(self, length: int) -> tuple[str, ...]:
        if length > 2 * self._longest:
            return ()
        if (near := self._near.get(length)) is None:
            near = self._near[length] = tuple(comparable_lengths(length, self._texts, least=ECHO))
        return near


def is_call_error(text: str) -> bool:
    """Whether the text is a failed call's result, as a model reads it."""
    return OUR_ERROR.fullmatch(text) is not None


class OwnWords:
    """What to look for in answers, prepared once for each `Words`."""

    def __init__(self, words: Words) -> None:
        self.told = KnownTexts(words.last_step, words.empty, words.no_conclusion, *words.fallbacks)
        self._receipts = frozenset(map(letters_only, words.receipts))
        marks = [mark.partition("{run}") for mark in words.run_marks]
        ways = (rf"{re.escape(begin)}[\w{{}}]+{re.escape(end)}" for begin, _, end in marks)
        self._ends = tuple(end for _, _, end in marks)
        self._mark = re.compile(f"(?:{'|'.join(ways)})$")

    def has_receipt(self, text: str) -> bool:
        """Whether the text is only a receipt for a sent message, with or without its id."""
        return len(text) <= LONGEST and letters_only(ID.sub("", text)) in self._receipts

    def without_run(self, text: str) -> str:
        """The line without the id of its run."""
        return self._mark.sub("", text) if self._ends and text.endswith(self._ends) else text


own_words = cache(OwnWords)
