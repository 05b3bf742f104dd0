"""Words that several commands have in common, in Chinese and in English."""

from __future__ import annotations

from bot.core.command import Asked
from bot.core.language import CATALOGUE
from bot.core.query_results import UsageSum
from bot.policy.day_limits import Amount, Cap, percent_of
from frostagent.text.language import Phrase

AWAY = Phrase("现在读不到记录。", "The journal cannot be read now.")
IN_PRIVATE = Phrase("这个请私聊问我。", "Ask me that in private.")
NO_LIMIT = Phrase("不限", "no limit")
UNLIMITED = Phrase("{whose}每天{limit}", "{whose}: {limit}")
LIMITED = Phrase(
    "{whose}每天最多 {limit}，今天用了 {used}", "{whose}: at most {limit} a day, {used} used today"
)
CATALOGUE.register(__name__, globals())


def tokens(number: int) -> str:
    """`980`, `12.3k`, `1.2M`."""
    if number < 1000:
        return str(number)
    scaled, unit = (number / 1000, "k") if number < 1_000_000 else (number / 1_000_000, "M")
    return f"{scaled:.1f}{unit}"


def money(usage: UsageSum) -> str:
    """`$0.0123`, with a mark where the cost of some requests is not known; `?` where of all."""
    if usage.requests and usage.unpriced == usage.requests:
        return "$?"
    amount = f"${usage.cost:.4f}" if usage.cost < 1 else f"${usage.cost:.2f}"
    return f"{amount}+?" if usage.unpriced else amount


def cap_words(asked: Asked, cap: Cap) -> str:
    """`$0.5, 200.0k token`, or that there is no limit."""
    parts = [f"${cap.cost:g}"] if cap.cost else []
    parts += [f"{tokens(cap.tokens)} token"] if cap.tokens else []
    return ", ".join(parts) or NO_LIMIT.format(asked.language)


def used_words(asked: Asked, whose: str, cap: Cap, taken: Amount) -> str:
    """Whose limit it is, and how far it is used today."""
    limit, used = cap_words(asked, cap), f"{percent_of(cap.used(taken))}%"
    if cap == Cap():
        return UNLIMITED.format(asked.language, whose=whose, limit=limit)
    return LIMITED.format(asked.language, whose=whose, limit=limit, used=used)
