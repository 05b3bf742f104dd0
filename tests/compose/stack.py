"""A folder as an operator has it, with the stand-ins in it, and docker compose run there."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.ports import free_ports

ROOT = Path(__file__).parents[2]
STANDIN = Path(__file__).parent / "standin"
OVERRIDE = Path(__file__).parent / "override.yml"
OURS = (
    "Dockerfile", ".dockerignore", "docker-compose.yml", ".env.example", "LICENSE", "README.md", "pyproject.toml",
    "setup.py", "requirements.txt", "requirements-broker.txt", "requirements-build.txt", "requirements-mcp.txt",
    "requirements-otel.txt", "requirements-postgres.txt", "requirements-web.txt", "deploy",
    "adapters", "bot", "config", "frostagent", "tools", "my-tools",
)  # fmt: skip
LONG = 900  # seconds an image may take to build where every package is fetched first
PATIENCE = 120.0  # seconds for anything else: the first health check alone comes after 30
LOOK = 0.2  # seconds between two looks at something that tells nobody of its changes

GOOD = {
    "LLM_BASE_URL": "http://model:9000/v1",
    "LLM_API_KEY": "sk-abcdefgh",
    "LLM_MODEL": "scripted",
    "ONEBOT_ACCESS_TOKEN": "correct-horse-battery",
    "BOT_PERSONA": "data/persona.md",
    "TOOLS_DIR": "my-tools",
    "BOT_USER_RATE": "0",  # the checks ask one after the other, as one person
}


class Stack:
    """The folder, its `.env`, its containers; `folder` must be empty, its name is the project's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.webui, self.console = free_ports(2)
        for name in OURS:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)
        shutil.copy(OVERRIDE, folder / "docker-compose.override.yml")
        shutil.copytree(STANDIN, folder / "standin", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(STANDIN / "ring.py", folder / "my-tools" / "ring.py")
        if os.geteuid() == 0:  # a clone belongs to whoever made it, and init runs as root
            shutil.chown(folder / "my-tools", 1234, 1234)
        self.write_persona("You are the first persona.")

    def write_env(self, **changes: str) -> None:
        """The settings, with these in place of the good ones."""
        lines = GOOD | {"NAPCAT_WEBUI_PORT": str(self.webui)} | changes
        (self.folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in lines.items()), "utf-8")

    def write_persona(self, text: str) -> None:
        """Who the bot is from its next start, or reload, on."""
        (self.folder / "data").mkdir(exist_ok=True)
        (self.folder / "data" / "persona.md").write_text(text, "utf-8")

    # --- docker ---------------------------------------------------------------------------------------

    def compose(self, *words: str, within: float = LONG) -> subprocess.CompletedProcess[str]:
        """What `docker compose` with these words did and said."""
        return subprocess.run(
            ["docker", "compose", *words],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=within,
        )

    def docker(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What `docker` with these words did and said."""
        return subprocess.run(["docker", *words], capture_output=True, text=True, check=False, timeout=PATIENCE)

    @property
    def image(self) -> str:
        """The image that is built for this folder."""
        return f"{self.folder.name}:local"

    def page(self, port: int, path: str) -> str:
        """What a browser on this computer is shown; empty where nothing answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def well(self, *words: str) -> str:
        """The standard output of a command that must succeed. Raises AssertionError with what it said."""
        done = self.compose(*words)
        assert done.returncode == 0, f"docker compose {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def bot(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What a command did inside the bot's container."""
        return self.compose("exec", "-T", "bot", *words)

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        """What a line of Python did inside the bot's container, as the bot's account."""
        return self.bot("python", "-c", code)

    def state(self, service: str = "bot") -> dict[str, Any]:
        """The container as the engine sees it; empty where there is none."""
        name = self.compose("ps", "--all", "--quiet", service).stdout.strip()
        if not name:
            return {}
        found: dict[str, Any] = json.loads(self.docker("inspect", name).stdout)[0]
        return found

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Until it holds. Raises AssertionError with what the containers said."""
        pause, deadline = threading.Event(), time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                break
            pause.wait(LOOK)
        else:
            return
        raise AssertionError(f"it never came that {what}: {self.compose('logs', '--tail', '40').stdout}")

    # --- the group and the model ----------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Somebody says it in the group, once NapCat's stand-in is there and the bot has connected."""
        self.until("NapCat is there", self._is_open)
        self._ask("/say", {"text": text})

    def ask(self, text: str) -> dict[str, Any]:
        """Somebody asks the bot; the next message people get."""
        self.until("NapCat is there", self._is_open)
        before = len(self.delivered(0))
        self.say(f"@bot {text}")
        return self.delivered(before + 1)[before]

    def delivered(self, count: int) -> list[dict[str, Any]]:
        """What people got since NapCat's stand-in began, once it is so much."""
        found: list[dict[str, Any]] = self._ask(f"/delivered?count={count}")
        return found

    def asked(self) -> list[dict[str, Any]]:
        """The transcript of the model's last request, whichever container asks for it."""
        code = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9000/last', timeout=30).read().decode())"
        found: list[dict[str, Any]] = json.loads(self.well("exec", "-T", "model", "python", "-c", code))
        return found

    def _is_open(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.webui), timeout=PATIENCE).close()
            self._ask("/delivered?count=0")
        except OSError:
            return False
        return True

    def _ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.webui}{path}", data=data)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())


def missing_engine() -> str:
    """Why containers cannot be run here; empty where they can."""
    for words in (["docker", "info", "--format", "{{.ServerVersion}}"], ["docker", "compose", "version", "--short"]):
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{' '.join(words[:2])}: {error}"
        if done.returncode or not done.stdout.strip():
            lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
            return f"{' '.join(words[:2])}: {lines[-1]}"
    return ""
