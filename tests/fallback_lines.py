"""The lines that stand in place of an answer, as people read them: in Chinese by name, in English by the Chinese."""

from __future__ import annotations

from bot.chat import pokes
from bot.policy import fallback_replies as replies

SORRY = replies.SORRY.zh
LOST = replies.LOST.zh
REST = replies.REST.zh
UNANSWERED = replies.UNANSWERED.zh
TOO_LONG = replies.TOO_LONG.zh
NO_CONCLUSION = replies.NO_CONCLUSION.zh
SLOW_DOWN = replies.SLOW_DOWN.zh
CROWDED = replies.CROWDED.zh
NO_MORE = replies.NO_MORE.zh
ENGLISH = {line.zh: line.en for line in replies.LINES}
HERE = pokes.HERE.zh
HERE_IN_PRIVATE = pokes.HERE_IN_PRIVATE.zh
