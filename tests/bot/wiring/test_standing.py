from __future__ import annotations

from pathlib import Path

import pytest

from bot.wiring.standing import data_folder
from config.settings import Settings


@pytest.mark.parametrize(
    ("url", "folder"), [("sqlite:///there/frost.db", "there"), ("postgresql://me@db/frost", "data/media")]
)
def test_the_disk_that_counts_is_the_journals_or_where_a_server_has_that_the_medias(url: str, folder: str) -> None:
    assert data_folder(Settings.model_validate({"store_url": url})) == Path(folder)
