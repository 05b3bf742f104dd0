"""Words that several commands have in common, in Chinese and in English."""

from __future__ import annotations

AWAY = ("现在读不到记录。", "The journal cannot be read now.")
NOT_NOW = ("现在做不到，稍后再试。", "Not now, try again later.")
IN_PRIVATE = ("这个请私聊问我。", "Ask me that in private.")
