"""What the recorded conversations need is what the tests of the model client have."""

from __future__ import annotations

from tests.adapters.storage.conftest import postgres, schemas, sqlite, url
from tests.frostagent.openai.conftest import session, sessions, vendor
from tests.system.cluster.cluster import cluster, rabbit, store_url, unconnected

__all__ = (
    "cluster",
    "postgres",
    "rabbit",
    "schemas",
    "session",
    "sessions",
    "sqlite",
    "store_url",
    "unconnected",
    "url",
    "vendor",
)
