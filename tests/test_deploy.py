"""What an operator deploys: the Dockerfile and the compose files, as far as they can be held without an engine.

`docker compose config -q` runs where there is a docker compose; PyYAML, where it is installed, reads the rest.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from adapters.onebot.connection import CLOSE_WITHIN
from bot.app import LAST_ANSWERS
from bot.cli.process import GRACE
from tests.cases import each_case
from tests.dockerfile import Instruction, ignored, read_ignore, read_stages

ROOT = Path(__file__).parents[1]
COMPOSE = ("docker-compose.yml", "docker-compose.llbot.yml")
WITH = [("docker-compose.yml", "napcat"), ("docker-compose.llbot.yml", "llbot")]
OURS = "${COMPOSE_PROJECT_NAME}:local"
LIMITS = {"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}}


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@cache
def stages() -> list[list[Instruction]]:
    return read_stages(text("Dockerfile"))


def services(name: str) -> dict[str, Any]:
    """The services of a compose file, anchors resolved."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    found: dict[str, Any] = yaml.safe_load(text(name))["services"]
    return found


def of(word: str, stage: int = -1) -> list[str]:
    """What stands behind each of these instructions."""
    return [step.rest for step in stages()[stage] if step.word == word]


# --- the image ------------------------------------------------------------------------------------


def test_the_image_is_built_in_two_stages_from_a_pinned_slim_base() -> None:
    assert len(stages()) == 2
    assert [rest.split(" ")[0] for stage in (0, 1) for rest in of("FROM", stage)] == [
        "python:${PYTHON}-slim-bookworm"
    ] * 2
    assert re.search(r"^ARG PYTHON=3\.\d+$", text("Dockerfile"), re.MULTILINE)


def test_the_image_runs_without_root_and_keeps_everything_in_one_volume() -> None:
    assert of("USER") == ["1000:1000"]
    assert of("VOLUME") == ["/app/data"]
    assert of("ENTRYPOINT") == ['["python", "-m", "bot"]']


def test_no_way_to_install_anything_is_left_in_the_image() -> None:
    (run,) = of("RUN")
    assert "pip uninstall --yes --root-user-action ignore pip setuptools wheel" in run
    assert "rm -r /usr/local/lib/python*/ensurepip" in run


def test_no_process_that_docker_starts_shows_its_environment_to_a_program_of_the_bots_account() -> None:
    """All of .env is in it; what may not be read may not be looked into either, unlike Docker's own init or a shell."""
    (run,) = of("RUN")
    assert 'chmod 711 "$(readlink -f /usr/local/bin/python3)"' in run
    for rest in (*of("ENTRYPOINT"), of("HEALTHCHECK")[0].partition("CMD ")[2]):
        assert json.loads(rest)[0] == "python"
    for name in COMPOSE:
        assert "init: true" not in text(name)


def test_every_package_of_ours_is_in_the_image_and_nothing_private_reaches_the_builder() -> None:
    copied = [
        source for stage in (0, 1) for rest in of("COPY", stage) if "--from" not in rest for source in rest.split()[:-1]
    ]
    assert {"adapters", "bot", "config", "tools", "requirements.txt", "pyproject.toml"} <= set(copied)
    patterns = read_ignore(text(".dockerignore"))
    assert not [source for source in copied if ignored(source, patterns) or not (ROOT / source).exists()]
    for private in (".env", ".git/config", "data/frostagent.db", "napcat/config/onebot11.json", "tests/fakes.py"):
        assert ignored(private, patterns), private
    assert ignored("bot/__pycache__/app.cpython-311.pyc", patterns)
    assert not ignored("bot/cli/setup/wizard.py", patterns)


def test_what_is_installed_is_held_to_its_hashes_everywhere() -> None:
    for name in ("requirements.txt", *(file.name for file in ROOT.glob("requirements-*.txt"))):
        pinned = re.findall(r"^([a-z0-9._-]+)==(?:.*\\\n)+?.*--hash=sha256:", text(name), re.MULTILINE)
        assert pinned == re.findall(r"^([a-z0-9._-]+)==", text(name), re.MULTILINE), name
    installing = [line for file in ("Dockerfile", "Makefile") for line in re.findall(r".*install\b.*-r .*", text(file))]
    installing += re.findall(r"^\t?\{? ?\$\(PIP\).*-r .*", text("Makefile"), re.MULTILINE)
    assert len(installing) == 3
    assert all("--require-hashes" in line for line in installing)
    assert all("--no-deps --no-build-isolation" in text(file) for file in ("Dockerfile", "Makefile"))


def test_the_default_persona_has_the_name_that_the_example_of_env_gives_it() -> None:
    shown = re.search(r"^#BOT_PERSONA=(\S+)$", text(".env.example"), re.MULTILINE)
    assert shown is not None
    folder = shown[1].rpartition("/")[0]
    assert f"{folder} ./{folder}" in of("COPY")
    assert (ROOT / shown[1]).is_file()


class Answering(BaseHTTPRequestHandler):
    """A web server that says how it is; `status` of its class is for the next answer."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@contextmanager
def web_server(status: int) -> Iterator[int]:
    handler = type("Handler", (Answering,), {"status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(10)


def health(port: int) -> int:
    """The exit code of the image's health check, run as docker does."""
    (rest,) = of("HEALTHCHECK")
    command = json.loads(rest.partition("CMD ")[2])
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "WEB_PORT": str(port)}
    environment |= {"http_proxy": "http://127.0.0.1:9"}  # a proxy has no business there
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=30)
    return done.returncode


@pytest.mark.parametrize(("status", "well"), [(200, True), (503, False)])
def test_the_health_check_asks_healthz(status: int, *, well: bool) -> None:
    with web_server(status) as port:
        assert (health(port) == 0) is well


def test_the_health_check_fails_where_nobody_answers_and_not_where_nobody_shall() -> None:
    assert health(9) != 0
    assert health(0) == 0


@pytest.mark.system
def test_nothing_private_is_offered_to_git() -> None:
    private = [".env", "data/tokens.env", "napcat/config/onebot11.json", "napcat-second/qq/x", "llbot/auth_token.txt"]
    asked = ["git", "check-ignore", "--no-index", *private]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode == 128:
        pytest.skip("this is no checkout of git")
    assert done.stdout.splitlines() == private


# --- compose: what can be held by reading -----------------------------------------------------------


@each_case("name", COMPOSE)
def test_every_image_is_pinned(name: str) -> None:
    images = re.findall(r"^ +image: (\S+)", text(name), re.MULTILINE)
    assert OURS in images
    for image in set(images) - {OURS}:
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", image), image


@each_case("name", COMPOSE)
def test_nothing_is_published_beyond_this_computer_and_of_the_bot_nothing_at_all(name: str) -> None:
    published = re.findall(r"^ +ports: (.*)$", text(name), re.MULTILINE)
    assert published
    assert all(re.fullmatch(r'\["127\.0\.0\.1:\$\{\w+_PORT:-(\d+)\}:\1"\]', ports) for ports in published)
    bot = text(name).partition("\n  bot:\n")[2].partition("\n\n")[0]
    assert bot
    assert "ports" not in bot


def test_both_files_run_the_bot_the_same_way() -> None:
    def ours(name: str) -> tuple[str, str]:
        head = text(name).partition("x-frostagent:")[2].partition("services:")[0]
        return head, text(name).partition("\n  bot:\n")[2].partition("\n\n")[0]

    assert ours(COMPOSE[0]) == ours(COMPOSE[1])


@each_case("name", COMPOSE)
def test_the_image_is_built_once_and_by_the_service_that_runs_first(name: str) -> None:
    assert len(re.findall(r"^ +build:", text(name), re.MULTILINE)) == 1
    init = text(name).partition("\n  init:\n")[2].partition("\n\n")[0]
    bot = text(name).partition("\n  bot:\n")[2].partition("\n\n")[0]
    assert "    build:\n      context: .\n" in init
    assert "    pull_policy: never" in bot


@each_case("name", COMPOSE)
def test_every_variable_a_compose_file_takes_is_explained_in_the_example(name: str) -> None:
    taken = set(re.findall(r"\$\{(\w+)", text(name)))
    explained = set(re.findall(r"^#?(\w+)=", text(".env.example"), re.MULTILINE))
    assert taken
    assert taken <= explained


@each_case("name", COMPOSE)
def test_every_file_of_ours_that_is_mounted_exists(name: str) -> None:
    for mounted in re.findall(r"- \./(deploy/[^:]+):", text(name)):
        assert (ROOT / mounted).exists(), mounted


# --- compose: what takes a reader of YAML -----------------------------------------------------------


@each_case(("name", "server"), WITH)
def test_the_bot_and_the_onebot_server_wait_for_init(name: str, server: str) -> None:
    found = services(name)
    for waiting in ("bot", server):
        assert found[waiting]["depends_on"]["init"] == {"condition": "service_completed_successfully"}
    assert found["init"]["restart"] == "no"
    assert found["init"]["network_mode"] == "none"
    assert found["bot"]["restart"] == found[server]["restart"] == "unless-stopped"


@each_case("name", COMPOSE)
def test_every_log_has_its_limit_and_every_container_of_ours_no_rights_it_does_not_need(name: str) -> None:
    found = services(name)
    assert all(service["logging"] == LIMITS for service in found.values())
    assert found["bot"]["cap_drop"] == found["init"]["cap_drop"] == ["ALL"]
    assert "cap_add" not in found["bot"]
    assert "user" not in found["bot"]


@each_case(("name", "server"), WITH)
def test_qq_sees_the_same_computer_after_every_restart(name: str, server: str) -> None:
    service = services(name)[server]
    assert service["hostname"] == server
    assert re.fullmatch(r"02(:[0-9a-f]{2}){5}", service["mac_address"])


def test_napcat_takes_its_account_and_its_password_from_the_env_file() -> None:
    environment = services("docker-compose.yml")["napcat"]["environment"]
    assert environment["ACCOUNT"] == "${NAPCAT_ACCOUNT:-}"
    assert environment["WEBUI_TOKEN"] == "${NAPCAT_WEBUI_TOKEN:-}"
    assert "MODE" not in environment  # it would overwrite what init wrote, at each start


def test_the_monitoring_is_there_only_when_asked_for() -> None:
    found = services("docker-compose.yml")
    asked_for = {name for name, service in found.items() if service.get("profiles") == ["monitoring"]}
    assert asked_for == {"prometheus", "grafana"}


@pytest.mark.system
@pytest.mark.parametrize(("name", "server"), WITH)
def test_what_init_writes_is_where_the_others_look_for_it(tmp_path: Path, name: str, server: str) -> None:
    init = services(name)["init"]
    environment = {key: str(value) for key, value in init["environment"].items() if "$" not in str(value)}
    environment |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "LLBOT_ACCOUNT": "10000"}
    environment |= {"LLM_BASE_URL": "https://llm.invalid/v1", "LLM_API_KEY": "sk-abcdefgh", "LLM_MODEL": "m"}
    words = [word for word in init["command"] if os.geteuid() == 0 or word not in {"--owner", "1000:1000"}]
    subprocess.run(
        [sys.executable, "-m", "bot", *words],
        cwd=tmp_path,
        env=environment,
        check=True,
        timeout=50,
        capture_output=True,
    )
    places = dict(volume.split(":")[:2][::-1] for volume in init["volumes"])  # inside -> outside
    written = [file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) >= 3
    assert not [file for file in written if not any(f"/app/{file}".startswith(f"{inside}/") for inside in places)]
    theirs = {volume.split(":")[0] for volume in services(name)[server]["volumes"]}
    assert places["/app/data"] in {volume.split(":")[0] for volume in services(name)["bot"]["volumes"]}
    assert set(places.values()) - {places["/app/data"], places["/app/my-tools"]} <= theirs


@each_case("name", COMPOSE)
def test_nothing_in_the_containers_of_ours_can_be_written_but_the_volumes_and_both_see_the_tools(name: str) -> None:
    for service in (services(name)["init"], services(name)["bot"]):
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]  # the container's own
        assert service["pids_limit"] == 256
        assert service["mem_limit"] == "${FROSTAGENT_MEMORY:-1g}"
        assert "./my-tools:/app/my-tools:ro" in service["volumes"]
    assert (ROOT / "my-tools").is_dir()  # docker would make a missing one for root


@each_case("name", COMPOSE)
def test_a_second_folder_is_another_project_with_an_image_of_its_own(name: str) -> None:
    assert not re.search(r"^name:", text(name), re.MULTILINE)
    assert {services(name)[ours]["image"] for ours in ("init", "bot")} == {OURS}


def test_grafana_does_not_start_with_a_password_that_everybody_knows() -> None:
    """Its entry point, run as a shell runs it, with a stand-in for Grafana itself."""
    grafana = services("docker-compose.yml")["grafana"]
    assert grafana["environment"]["GF_SECURITY_ADMIN_PASSWORD"] == "${GRAFANA_PASSWORD:-}"
    shell, flag, script = grafana["entrypoint"]
    stood_in = script.replace("$$", "$").replace("exec /run.sh", "echo started").replace("sleep 60", "true")
    assert stood_in.count("echo started") == 1
    for password, said in (("", "Set GRAFANA_PASSWORD in .env"), ("secret", "started")):
        done = subprocess.run(
            [shell, flag, stood_in],
            env={"GF_SECURITY_ADMIN_PASSWORD": password},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert said in done.stdout + done.stderr
        assert (done.returncode == 0) is bool(password)


# --- compose: what takes docker compose -------------------------------------------------------------


@cache
def docker_compose() -> list[str]:
    """The command, as a plug-in of docker or alone; empty where there is none, or one too old to know our files."""
    for words in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(words[0]):
            asked = [*words, "version", "--short"]
            done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=30)
            if done.returncode == 0 and int(done.stdout.strip().removeprefix("v").partition(".")[0]) >= 2:
                return words
    return []


def compose(folder: Path, *words: str) -> str:
    """What docker compose says in a folder with our files and a fresh .env."""
    if not docker_compose():
        pytest.skip("there is no docker compose here")
    for name in COMPOSE:
        shutil.copy(ROOT / name, folder)
    shutil.copy(ROOT / ".env.example", folder / ".env")
    done = subprocess.run(
        [*docker_compose(), *words], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.system
@pytest.mark.parametrize("words", [(COMPOSE[0],), (COMPOSE[0], "--profile", "monitoring"), (COMPOSE[1],)])
def test_docker_compose_understands_the_files(tmp_path: Path, words: tuple[str, ...]) -> None:
    compose(tmp_path, "-f", *words, "config", "-q")


@pytest.mark.system
def test_the_bot_gets_the_env_file_and_its_own_addresses_win(tmp_path: Path) -> None:
    bot = json.loads(compose(tmp_path, "config", "--format", "json"))["services"]["bot"]
    assert bot["environment"]["LLM_BASE_URL"] == "https://api.deepseek.com/v1"
    assert (bot["environment"]["ONEBOT_HOST"], bot["environment"]["WEB_HOST"]) == ("0.0.0.0", "0.0.0.0")
    assert "ports" not in bot


# --- reading a Dockerfile ---------------------------------------------------------------------------


def test_a_dockerfile_is_read_stage_by_stage_with_its_long_lines_joined() -> None:
    read = read_stages("ARG A=1\n# why\nFROM x AS build\nRUN one \\\n    && two\nfrom y\nUSER 1\n")
    assert [[(step.word, step.rest) for step in stage] for stage in read] == [
        [("FROM", "x AS build"), ("RUN", "one && two")],
        [("FROM", "y"), ("USER", "1")],
    ]


def test_the_last_pattern_that_fits_decides_what_is_ignored() -> None:
    patterns = ["*", "!bot", "!.env.example", "**/__pycache__"]
    kept = [
        path
        for path in (".env", ".env.example", "bot", "bot/a.py", "bot/__pycache__/a", "x/bot")
        if not ignored(path, patterns)
    ]
    assert kept == [".env.example", "bot", "bot/a.py"]


@each_case("name", ["docker-compose.yml", "docker-compose.llbot.yml"])
def test_docker_waits_longer_than_a_stop_takes(name: str) -> None:
    (seconds,) = re.findall(r"stop_grace_period: (\d+)s", (ROOT / name).read_text("utf-8"))
    assert int(seconds) > GRACE + LAST_ANSWERS + CLOSE_WITHIN + 2
