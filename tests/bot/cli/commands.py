"""The commands as a person types them: real processes, for the tests of several modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
WAITLESS = {"BOT_DEBOUNCE": "0", "BOT_PACE": "0"}
"""Settings without which the bot does not wait as among people."""
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(
        ("BOT_", "LLM_", "ONEBOT_", "TOOLS_", "CODER_", "MEDIA_", "STORE_", "LOG_", "UPSTREAM_", "SYSTEM_")
    )
}


def command(folder: Path, *words: str, **environment: str) -> tuple[list[str], dict[str, str], Path]:
    return (
        [sys.executable, "-m", "bot", *words],
        CLEAN | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **WAITLESS} | environment,
        folder,
    )


def run(folder: Path, *words: str, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    arguments, env, cwd = command(folder, *words, **environment)
    return subprocess.run(
        arguments,
        env=env,
        cwd=cwd,
        input=typed,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        encoding="utf-8",
    )


class serving:  # noqa: N801  # reads as a phrase: with serving(...)
    """The service as a process, until the block ends."""

    def __init__(self, folder: Path, **more: str) -> None:
        fixed = {"LLM_BASE_URL": "http://127.0.0.1:9/v1", "LLM_MODEL": "m", "ONEBOT_HOST": "127.0.0.1"}
        arguments, env, cwd = command(folder, "run", **fixed, ONEBOT_PORT="0", **more)
        self.process = subprocess.Popen(
            arguments, env=env, cwd=cwd, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def __enter__(self) -> tuple[subprocess.Popen[str], str]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "ready: listening on 127.0.0.1:" in line:
                return self.process, line.split("127.0.0.1:")[1].split(",")[0]
        raise AssertionError("the service ended before it was ready")

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=10)
