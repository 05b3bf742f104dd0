"""The current status: what waits for an owner's decision, and the free space on the disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from adapters.storage.files import free_at
from adapters.storage.url import file_of, read_url
from bot.commands.digest import Standing
from bot.conversation.approval.join_requests import JoinRequests
from bot.domain.cluster_queries import ClusterClient, PartitionStatus, StatusQuery
from bot.wiring.conversation import Answering, Ground
from config.settings import Settings


def count_waiting(
    on: Ground, answering: Answering, join_requests: JoinRequests
) -> Mapping[str, int]:
    """How much of each kind waits for an owner's word."""
    asked = Counter(one.kind for one in join_requests.open)
    return {
        "call": len(answering.requests.open),
        "friend": asked["friend"],
        "invite": asked["invite"],
        "group": len(on.modes.open),
        "draft": len(on.shadow.drafts.open),
    }


async def current_status(
    others: ClusterClient,
    folder: Path,
    on: Ground,
    answering: Answering,
    join_requests: JoinRequests,
) -> Standing:
    """How things stand here and at the `others`, the disk being that of the folder."""
    waiting = Counter(count_waiting(on, answering, join_requests))
    # While a partition changes hands two bots may answer for it.
    told = await others.ask_all(StatusQuery())
    found = {one.partition: one.waits for one in told if isinstance(one, PartitionStatus)}
    for waits in found.values():
        waiting.update(waits)
    return Standing(waiting, await free_at(folder), absent=others.count - len(found))


def data_folder(settings: Settings) -> Path:
    """The folder of the journal; that of the media if the journal is on a database server."""
    file = file_of(read_url(settings.store_url.get_secret_value()))
    return settings.media_dir if file is None else file.parent
