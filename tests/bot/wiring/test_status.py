from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bot.domain.cluster_queries import NO_OTHERS, ClusterQuery, ClusterReply, ContextReply, PartitionStatus, StatusQuery
from bot.domain.console_views import State
from bot.domain.errors import NotConnected
from bot.wiring.status import current_status, data_folder
from config.settings import Settings
from tests.cases import each_case


@each_case(("url", "folder"), [("sqlite:///there/frost.db", "there"), ("postgresql://me@db/frost", "data/media")])
def test_the_disk_that_counts_is_the_journals_or_where_a_server_has_that_the_medias(url: str, folder: str) -> None:
    assert data_folder(Settings.model_validate({"store_url": url})) == Path(folder)


class Three:
    """Three other bots; one says nothing, and one is about to be taken over, so that two answer for it."""

    count = 3

    async def ask_all(self, ask: ClusterQuery, /) -> tuple[ClusterReply, ...]:
        assert ask == StatusQuery()
        first, older = (
            PartitionStatus(1, State(), waits={"call": 2, "draft": 1}),
            PartitionStatus(2, State(), waits={"call": 5}),
        )
        return first, older, PartitionStatus(2, State(), waits={"friend": 1, "group": 4}), ContextReply(())

    async def ask(self, account: int, ask: ClusterQuery, /) -> ClusterReply:
        raise NotConnected(f"{account} is asked {ask}")


async def test_what_waits_is_counted_everywhere_and_who_did_not_say_it_is_told(tmp_path: Path) -> None:
    drafts: Any = SimpleNamespace(open={1: "", 2: ""})
    on: Any = SimpleNamespace(modes=SimpleNamespace(open={}), shadow=SimpleNamespace(drafts=drafts))
    answering: Any = SimpleNamespace(requests=SimpleNamespace(open={1: ""}))
    petitions: Any = SimpleNamespace(open=[SimpleNamespace(kind="friend")])
    here = tmp_path, on, answering, petitions
    alone, all_four = await current_status(NO_OTHERS, *here), await current_status(Three(), *here)
    assert (alone.waiting, alone.absent) == ({"call": 1, "friend": 1, "invite": 0, "group": 0, "draft": 2}, 0)
    assert (all_four.waiting, all_four.absent) == ({"call": 3, "friend": 2, "invite": 0, "group": 4, "draft": 3}, 1)
    assert alone.free is not None
