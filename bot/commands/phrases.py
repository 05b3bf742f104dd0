"""Words that several commands have in common, in Chinese and in English."""

from __future__ import annotations

import time

AWAY = ("现在读不到记录。", "The journal cannot be read now.")
NOT_NOW = ("现在做不到，稍后再试。", "Not now, try again later.")
STILL_QUIET = (
    "好；不过按设置现在是安静时段，到点之前照旧安静。",
    "Fine, but these are quiet hours of the settings: it stays quiet until they end.",
)
IN_PRIVATE = ("这个请私聊问我。", "Ask me that in private.")


def at_time(moment: float, now: float) -> str:
    """The time of day, with the day where it is another one."""
    there, here = time.localtime(moment), time.localtime(now)
    same = there[:3] == here[:3]
    return time.strftime("%H:%M" if same else "%m-%d %H:%M", there)
