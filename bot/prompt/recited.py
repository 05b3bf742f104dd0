"""Sentences of our own prompt, recited: the rules of the chat, what we tell a model that answered
badly, notes on its words, the request for a summary. Pure, in linear time.

Only the words of `wording_zh` and `wording_en` count, never those of a persona: what an operator
wrote there may be told. What its asker wrote himself may be, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import astuple
from functools import cache

from bot.policy.circling import LETTERS, letters_of, weight
from bot.prompt.wording import Wording

SHARE = 0.75  # of a sentence
RUN = 12 * LETTERS  # of our words, one behind the other
LONG_ENOUGH = 9 * LETTERS
FEW = 5  # characters that tell where they are from, where the first is Chinese
MANY = 12  # letters
STRIDE = 4  # what is ours for long enough is found at every fourth character

SENTENCE = re.compile(r"[^。！？!?\n.]*(?:\.(?!\s|$)[^。！？!?\n.]*)*[。！？!?\n.]*\s*")
TEMPLATE = re.compile(r"name\s?#\s?number|名字\s?#\s?号码", re.IGNORECASE)
"""What stands in our rules for everybody's name and number."""
LAST_ANSWER = re.compile(r"[你我]上一次的回答|\b(?:your|my) last answer\b", re.IGNORECASE)
"""What our notices speak of, and nobody else."""
ASKS_OF_ANSWERS = re.compile(r"[回作]?答|上[一]?次|\b(?:last|answer)", re.IGNORECASE)
PLACEHOLDER = re.compile(r"\{\w*\}")


def is_template(text: str, asked: str) -> bool:
    """Whether the form of a line stands in it, as the rules show it."""
    return "#" in text and TEMPLATE.search(text) is not None and not TEMPLATE.search(asked)


def without_ours(text: str, words: Wording, asked: str) -> str:
    """The text without sentences that are ours, or nearly; the very same text where it has none."""
    sentences = SENTENCE.findall(text)
    kept = [one for one in sentences if not _is_ours(one, words, asked)]
    return text if len(kept) == len(sentences) else "".join(kept).strip()


def _is_ours(sentence: str, words: Wording, asked: str) -> bool:
    if LAST_ANSWER.search(sentence) and not ASKS_OF_ANSWERS.search(asked):
        return True
    if len(sentence) < FEW + 1:
        return False
    letters = letters_of(sentence)
    if weight(letters) < LONG_ENOUGH or not _is_of(letters, _told(words)):
        return False
    return not (asked and _is_of(letters, frozenset(_pieces(letters_of(asked)))))


def _is_of(letters: str, pieces: frozenset[str]) -> bool:
    """Whether most of it, or much of it in one go, is made of these pieces."""
    if pieces.isdisjoint(_pieces(letters, STRIDE)):
        return False  # as nearly always
    found = total = run = longest = 0
    for piece in _pieces(letters):
        total += 1
        each = LETTERS if len(piece) == FEW else 1
        if piece in pieces:
            found += 1
            run += each
            longest = max(longest, run + each * (len(piece) - 1))
        else:
            run = 0
    return total > 0 and (found >= SHARE * total or longest >= RUN)


def _pieces(letters: str, stride: int = 1) -> Iterator[str]:
    for place in range(0, len(letters), stride):
        size = FEW if letters[place] > "\u2fff" else MANY
        if place + size <= len(letters):
            yield letters[place : place + size]


@cache
def _told(words: Wording) -> frozenset[str]:
    """The pieces of all that we tell a model in a language."""
    notices, about = words.notices, words.about
    told = (
        words.rules,
        words.blind,
        words.summary.request,
        words.summary.instructions,
        notices.last_step,
        notices.spoilt,
        *astuple(about),
    )
    return frozenset(
        piece
        for text in told
        for line in PLACEHOLDER.sub("\n", text).splitlines()
        for piece in _pieces(letters_of(line))
    )
