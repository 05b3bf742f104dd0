"""Reading settings as they are typed: what is good, and what is said of the rest."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from config import values
from config.loading import load_settings
from config.settings import Settings
from frostagent.types.errors import ConfigError, Problem

TOKEN = "sesame-open-sesame"
SIGNING_KEY = base64.b64encode(values.ED25519 + bytes(range(32))).decode()
GOOD = {
    "LLM_BASE_URL": "https://api.deepseek.com/v1",
    "LLM_MODEL": "deepseek-chat",
    "ONEBOT_ACCESS_TOKEN": TOKEN,
}


def load(environ: dict[str, str], *, service: bool = True) -> tuple[Settings, tuple[Problem, ...]]:
    return load_settings(environ=environ, env_file=None, service=service)


def problems(environ: dict[str, str], *, service: bool = True, env_file: Path | None = None) -> list[str]:
    """What is said about this environment on top of what is good."""
    with pytest.raises(ConfigError) as caught:
        load_settings(environ=GOOD | environ, env_file=env_file, service=service)
    return [str(problem) for problem in caught.value.problems]
