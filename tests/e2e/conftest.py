"""What the recorded conversations need is what the tests of the model client have."""

from __future__ import annotations

from tests.adapters.openai.conftest import session, sessions, vendor

__all__ = ("session", "sessions", "vendor")
