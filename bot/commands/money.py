"""Tokens and money as people read them on a phone. Pure."""

from __future__ import annotations

from bot.domain.books import UsageSum


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
