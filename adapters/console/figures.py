"""Numbers as people read them on a phone. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.domain.query_results import UsageSum


def moment(seconds: float) -> str:
    """A time, in the time zone of the process."""
    return _local(seconds).strftime("%m-%d %H:%M:%S")


def clock(seconds: float) -> str:
    """The time of day."""
    return _local(seconds).strftime("%H:%M")


def minute(seconds: float) -> str:
    """A time as browsers have it in a field."""
    return _local(seconds).strftime("%Y-%m-%dT%H:%M")


def date(seconds: float) -> str:
    """A day, with its year."""
    return _local(seconds).strftime("%Y-%m-%d")


def day(seconds: float) -> str:
    """A day."""
    return _local(seconds).strftime("%m-%d")


def money(used: UsageSum) -> str:
    """US dollars, with a mark where the price of some is not known; `$?` where of all."""
    if used.unpriced >= max(used.requests, 1) and not used.cost:
        return "$?"
    return f"{dollars(used.cost)}{'+?' if used.unpriced else ''}"


def dollars(number: float) -> str:
    """US dollars: of less than one, hundredths of a cent."""
    return f"${number:.{4 if number < 1 else 2}f}"


def tokens(number: float) -> str:
    """`980`, `12.3k`, `1.2M`."""
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if number >= scale:
            return f"{number / scale:.1f}{unit}"
    return f"{number:.0f}"


def lasting(seconds: float) -> tuple[str, str]:
    """A time that something takes, and its unit: 20 ms, 0.41 s, 4.1 s, 2 min, 3 h, 7 d."""
    if seconds >= 172_800:
        return f"{seconds / 86_400:.0f}", "d"
    if seconds >= 7_200:
        return f"{seconds / 3_600:.0f}", "h"
    if seconds >= 120:
        return f"{seconds / 60:.0f}", "min"
    if seconds < 0.1:
        return f"{1000 * seconds:.0f}", "ms"
    return f"{seconds:.2f}" if seconds < 1 else f"{seconds:.1f}", "s"


def share(part: float, whole: float) -> str:
    """A share in percent; 0 of nothing."""
    return f"{100 * part / whole:.0f}%" if whole else "0%"


def _local(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).astimezone()
