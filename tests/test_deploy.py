"""What an operator deploys: the Dockerfile and the compose file, as far as they can be held without an engine.

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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from adapters.onebot.sockets import CLOSE_WITHIN
from bot.app import LAST_ANSWERS
from bot.cli.process import GRACE
from tests.cases import each_case
from tests.dockerfile import Instruction, ignored, read_ignore, read_stages
from tests.reference import NAMES

ROOT = Path(__file__).parents[1]
COMPOSE = "docker-compose.yml"
SERVERS = ("napcat", "llbot")
OURS = "${COMPOSE_PROJECT_NAME}:local"
LIMITS = {"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}}


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@cache
def stages() -> list[list[Instruction]]:
    return read_stages(text("Dockerfile"))


def services() -> dict[str, Any]:
    """The services of the compose file, anchors resolved."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    found: dict[str, Any] = yaml.safe_load(text(COMPOSE))["services"]
    return found


VARIABLE = re.compile(r"\$\$|\$\{(\w+)(?:(:[-+?])((?:[^{}]|\$\{[^{}]*\})*))?\}")


def interpolated(value: Any, settings: Mapping[str, str]) -> Any:
    """A value of the file with the variables in it, as docker compose puts them in: `:-`, `:+`, and one in another."""
    if isinstance(value, Mapping):
        return {key: interpolated(one, settings) for key, one in value.items()}
    if isinstance(value, list):
        return [interpolated(one, settings) for one in value]

    def put_in(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        given, way, other = settings.get(found[1], ""), found[2], str(interpolated(found[3] or "", settings))
        assert way != ":?", "a variable that must be set stops those, too, who do not use its profile"
        return (other if given else "") if way == ":+" else given or other

    return VARIABLE.sub(put_in, value) if isinstance(value, str) else value


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
    assert "init: true" not in text(COMPOSE)


def test_every_package_of_ours_is_in_the_image_and_nothing_private_reaches_the_builder() -> None:
    copied = [
        source for stage in (0, 1) for rest in of("COPY", stage) if "--from" not in rest for source in rest.split()[:-1]
    ]
    assert {"adapters", "bot", "config", "frostagent", "tools", "requirements.txt", "pyproject.toml"} <= set(copied)
    patterns = read_ignore(text(".dockerignore"))
    assert not [source for source in copied if ignored(source, patterns) or not (ROOT / source).exists()]
    for private in (".env", ".git/config", "data/frostagent.db", "napcat/config/onebot11.json", "tests/fakes.py"):
        assert ignored(private, patterns), private
    assert ignored("bot/__pycache__/app.cpython-311.pyc", patterns)
    assert not ignored("bot/cli/setup/wizard.py", patterns)


def test_the_image_loses_the_tests_of_libraries_and_keeps_what_our_users_test_with(tmp_path: Path) -> None:
    (command,) = (
        re.search(r"find \. -depth .*? -exec rm -r {} \+", run) for run in of("RUN", 0) if "find . -depth" in run
    )
    assert command is not None
    folders = {name: tmp_path / name for name in ("frostagent/testing", "sqlalchemy/testing/plugin", "orjson/tests")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    subprocess.run(["sh", "-c", command[0]], cwd=tmp_path, check=True, timeout=30)
    assert [name for name, folder in folders.items() if folder.exists()] == ["frostagent/testing"]


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


def test_every_image_is_pinned() -> None:
    images = re.findall(r"^ +image: (\S+)", text(COMPOSE), re.MULTILINE)
    assert OURS in images
    for image in set(images) - {OURS}:
        assert re.fullmatch(r"[\w./-]+:v?\d+(\.\d+){1,2}(-alpine)?|postgres:17-alpine", image), image


def test_nothing_is_published_beyond_this_computer() -> None:
    published = re.findall(r"^ +ports: (.*)$", text(COMPOSE), re.MULTILINE)
    console = (
        '["127.0.0.1:${CONSOLE_PORT:-}:${CONSOLE_PORT:-8090}"]'  # without the variable a free port, not one of ours
    )
    assert published.count(console) == 2  # of the bot, and of nginx in its place
    others = [ports for ports in published if ports != console]
    assert all(re.fullmatch(r'\["127\.0\.0\.1:\$\{\w+_PORT:-(\d+)\}:\1"\]', ports) for ports in others)


def test_the_image_is_built_once_and_by_the_service_that_runs_first() -> None:
    assert [name for name, service in services().items() if "build" in service] == ["init"]
    ours = {name: service for name, service in services().items() if service["image"] == OURS}
    assert ours.keys() == {"init", "bot", "gateway", "worker"}
    assert all(service["pull_policy"] == "never" for name, service in ours.items() if name != "init")


def test_every_variable_the_compose_file_takes_is_on_the_page_of_settings() -> None:
    taken = set(re.findall(r"\$\{(\w+)", text(COMPOSE)))
    assert taken
    assert taken <= set(NAMES)


def test_every_file_of_ours_that_is_mounted_exists() -> None:
    for settings in ({}, {"CLUSTER_PASSWORD": "x"}):
        mounted = re.findall(r"- \./(deploy/[^:]+):", interpolated(text(COMPOSE), settings))
        assert mounted
        assert [name for name in mounted if not (ROOT / name).exists()] == []


# --- compose: what takes a reader of YAML -----------------------------------------------------------


def test_the_bot_waits_for_init_and_an_onebot_server_only_for_its_settings() -> None:
    found = services()
    for name in ("bot", "gateway", "worker"):
        assert found[name]["depends_on"]["init"] == {"condition": "service_completed_successfully"}
    assert found["init"]["restart"] == "no"
    assert found["init"]["network_mode"] == "none"
    lasting = [service for name, service in found.items() if name != "init"]
    assert {service["restart"] for service in lasting} == {"unless-stopped"}


@each_case("server", SERVERS)
def test_no_change_of_env_and_of_nothing_else_throws_an_onebot_server_away(server: str) -> None:
    """Compose makes a container anew if its resolved service changes, or one that it depends on is made anew.

    What it leaves out of the former (`pkg/compose/hash.go`): build, pull_policy, profiles, replicas, depends_on.
    """
    service = services()[server]
    assert not {"depends_on", "env_file", "links", "volumes_from", "network_mode", "ipc", "pid"} & service.keys()
    hashed = {key: value for key, value in service.items() if key not in {"profiles", "deploy"}}
    before = interpolated(hashed, {})
    changing = {name for name in NAMES if interpolated(hashed, {name: "12345"}) != before}
    own = {"napcat": {"NAPCAT_UID", "NAPCAT_GID", "NAPCAT_WEBUI_PORT"}, "llbot": {"LLBOT_WEBUI_PORT"}}
    assert changing == own[server]
    assert "deploy" not in service or service["deploy"].keys() == {"replicas"}


@each_case(("server", "folder", "awaited"), [("napcat", "config", "onebot11.json"), ("llbot", "", "config_1.json")])
def test_an_onebot_server_starts_once_its_settings_are_there_with_the_account_of_the_env_file(
    tmp_path: Path, server: str, folder: str, awaited: str
) -> None:
    """Its entry point, run as a shell runs it, with a stand-in for the server itself."""
    shell, flag, script = services()[server]["entrypoint"]
    home = tmp_path / server
    (home / ("napcat/config" if folder else "llbot/data")).mkdir(parents=True)
    settings = home / ("napcat/config" if folder else "llbot/data") / awaited
    (home / "entrypoint.sh").write_text('echo "started for $ACCOUNT$QQ"')
    script = (
        script.replace("$$", "$").replace("/app", str(home)).replace("exec /startup.sh", "exec sh ../../entrypoint.sh")
    )
    script = script.replace("sleep 1", f'echo 10001 >"{settings.parent}/account"; touch "{settings}"')  # as init does
    done = subprocess.run([shell, flag, script], capture_output=True, text=True, check=True, timeout=30)
    waits, started = done.stdout.splitlines()
    assert waits.endswith("waits until its settings are written: docker compose logs init")
    assert started == "started for 10001"
    again = subprocess.run([shell, flag, script], capture_output=True, text=True, check=True, timeout=30)
    assert again.stdout.splitlines() == ["started for 10001"]


def test_every_log_has_its_limit_and_every_container_of_ours_no_rights_it_does_not_need() -> None:
    found = services()
    assert all(service["logging"] == LIMITS for service in found.values())
    assert all(service["cap_drop"] == ["ALL"] for service in found.values() if service["image"] == OURS)
    assert [name for name, service in found.items() if "cap_add" in service or "user" in service] == ["init"]


@each_case("server", SERVERS)
def test_qq_sees_the_same_computer_after_every_restart(server: str) -> None:
    service = services()[server]
    assert service["hostname"] == server
    assert re.fullmatch(r"02(:[0-9a-f]{2}){5}", service["mac_address"])


def test_napcat_gets_nothing_from_the_environment_that_init_writes_into_its_files() -> None:
    environment = services()["napcat"]["environment"]
    assert not {"ACCOUNT", "WEBUI_TOKEN"} & environment.keys()
    assert "MODE" not in environment  # it would overwrite what init wrote, at each start


def test_what_is_not_asked_for_by_its_profile_is_not_there() -> None:
    profiles = {
        name: service["profiles"] for name, service in services().items() if name not in {"init", "bot", "napcat"}
    }
    belonging = {
        "llbot": {"llbot"},
        "cluster": {"nginx", "gateway", "worker", "rabbitmq", "postgres"},
        "monitoring": {"prometheus", "grafana"},
    }
    assert profiles == {name: [profile] for profile, names in belonging.items() for name in names}
    replicas = {name: services()[name]["deploy"]["replicas"] for name in ("bot", "napcat")}
    assert replicas == {"bot": "${FROSTAGENT_REPLICAS:-1}", "napcat": "${NAPCAT_REPLICAS:-1}"}


def test_one_file_is_read_so_that_an_override_always_is() -> None:
    assert [path.name for path in ROOT.glob("docker-compose*.yml")] == [COMPOSE]
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    assert [page.name for page in pages if re.search(r"docker compose (-f|--file)", page.read_text("utf-8"))] == []


@pytest.mark.system
@pytest.mark.parametrize("server", SERVERS)
def test_what_init_writes_is_where_the_others_look_for_it(tmp_path: Path, server: str) -> None:
    init = services()["init"]
    profiles = {"llbot": {"COMPOSE_PROFILES": "llbot", "NAPCAT_REPLICAS": "0"}}
    environment = interpolated(
        {key: str(value) for key, value in init["environment"].items()}, profiles.get(server, {})
    )
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
    assert len(written) >= 4
    assert not [file for file in written if not any(f"/app/{file}".startswith(f"{inside}/") for inside in places)]
    assert {file.partition("/")[0] for file in written} == {"data", server}
    theirs = {volume.split(":")[0] for volume in services()[server]["volumes"]}
    assert places["/app/data"] in {volume.split(":")[0] for volume in services()["bot"]["volumes"]}
    assert [place for place in places.values() if place.startswith(f"./{server}")] == [*(theirs & set(places.values()))]


def test_nothing_in_the_containers_of_ours_can_be_written_but_the_volumes_and_all_see_the_tools() -> None:
    for service in (service for service in services().values() if service["image"] == OURS):
        assert service["read_only"] is True
        assert service["tmpfs"][0] == "/tmp"  # the container's own
        assert service["pids_limit"] == 256
        assert service["mem_limit"] == "${FROSTAGENT_MEMORY:-1g}"
        assert "./my-tools:/app/my-tools:ro" in service["volumes"]
    assert (ROOT / "my-tools").is_dir()  # docker would make a missing one for root


def test_a_second_folder_is_another_project_with_an_image_of_its_own() -> None:
    assert not re.search(r"^name:", text(COMPOSE), re.MULTILINE)


def test_grafana_does_not_start_with_a_password_that_everybody_knows() -> None:
    """Its entry point, run as a shell runs it, with a stand-in for Grafana itself."""
    grafana = services()["grafana"]
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
    shutil.copy(ROOT / COMPOSE, folder)
    shutil.copy(ROOT / ".env.example", folder / ".env")
    done = subprocess.run(
        [*docker_compose(), *words], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.system
@pytest.mark.parametrize("profiles", [(), ("monitoring",), ("llbot",), ("cluster", "monitoring")])
def test_docker_compose_understands_the_file(tmp_path: Path, profiles: tuple[str, ...]) -> None:
    compose(tmp_path, *(word for profile in profiles for word in ("--profile", profile)), "config", "-q")


@pytest.mark.system
def test_the_bot_gets_the_env_file_and_its_own_addresses_win(tmp_path: Path) -> None:
    bot = json.loads(compose(tmp_path, "config", "--format", "json"))["services"]["bot"]
    assert bot["environment"]["LLM_BASE_URL"] == "https://api.deepseek.com/v1"
    assert (bot["environment"]["ONEBOT_HOST"], bot["environment"]["WEB_HOST"]) == ("0.0.0.0", "0.0.0.0")
    assert bot["environment"]["CONSOLE_PORT"] == ""
    assert [port["host_ip"] for port in bot["ports"]] == ["127.0.0.1"]


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


def test_docker_waits_longer_than_a_stop_takes() -> None:
    periods = re.findall(r"stop_grace_period: (\d+)s", text(COMPOSE))
    assert len(periods) == 1  # of all that are ours
    assert int(periods[0]) > GRACE + LAST_ANSWERS + CLOSE_WITHIN + 2
