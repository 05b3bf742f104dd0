"""How a whole cluster is, as people read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def cluster_to_text(cluster: Mapping[str, Any]) -> str:
    """The whole of it as people read it: a line for each part, and what is wrong with the rest."""
    if "error" in cluster:
        return f"cluster   cannot be asked: {cluster['error']}"
    waiting = sum(one["waiting"] for one in cluster["partitions"])
    rows = [
        ("broker", f"{cluster['broker']}: {waiting} events wait, {_aside(cluster['set_aside'])}")
    ]
    rows += [("queue", line) for line in _queues(cluster["partitions"])]
    rows += [("worker", f"{_who(one)}: {_worker(one)}") for one in cluster["workers"]]
    rows += [("gateway", f"{_who(one)}: {_gateway(one)}") for one in cluster["gateways"]]
    rows += [("silent", f"{name}: {why}") for name, why in cluster["silent"].items()]
    return "\n".join(f"{name:<9} {value}" for name, value in rows)


def _aside(number: int) -> str:
    return f"{number} set aside in frost.dead" if number else "none is set aside"


def _queues(partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of those alone with which something is the matter."""
    lines = []
    for number, one in enumerate(partitions):
        nobody = "" if one["worked"] else ", no worker has it"
        if one["waiting"] or nobody:
            lines.append(f"partition {number}: {one['waiting']} events wait{nobody}")
    return lines


def _who(part: Mapping[str, Any]) -> str:
    return f"{part['host']} {part['pid']}, {part['version']}"


def _worker(part: Mapping[str, Any]) -> str:
    if part["standing_by"]:
        return "stands by"
    numbers, lanes = ", ".join(map(str, part["partitions"])), part["lanes"]
    trouble = ", the journal CANNOT BE WRITTEN" if part["journal"]["in_trouble"] else ""
    return (
        f"partitions {numbers}; {_accounts(part)}; {lanes['active']} conversations at work,"
        f" {lanes['waiting']} questions wait{trouble}{', stopping' if part['stopping'] else ''}"
    )


def _gateway(part: Mapping[str, Any]) -> str:
    events = part["events"]
    away = "" if events["broker"] else ", the BROKER IS AWAY"
    return f"{_accounts(part)}; {events['waiting']} events wait, {events['lost']} lost{away}"


def _accounts(part: Mapping[str, Any]) -> str:
    told = [f"{one['account']}{'' if one['online'] else ' OFFLINE'}" for one in part["accounts"]]
    return ", ".join(told) or "no account"
