from __future__ import annotations

import socket
from pathlib import Path

import pytest

from bot.app import open_service
from bot.domain.errors import ConfigError
from tests.e2e.test_watching import settings


async def test_a_port_somebody_asked_for_must_be_had_and_a_default_need_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        given = settings("http://127.0.0.1:9/v1", tmp_path, web_port=port)
        with pytest.RaisesGroup(pytest.RaisesExc(ConfigError, match="WEB_PORT"), flatten_subgroups=True):
            async with open_service(given):
                pass
        given.model_fields_set.discard("web_port")
        async with open_service(given):
            pass
    assert "nobody can watch the bot: WEB_PORT: cannot listen" in caplog.text
