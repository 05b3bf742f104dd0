"""What docker compose runs before everything else."""

from __future__ import annotations

import json
import os
from itertools import count
from pathlib import Path

import pytest

from bot.cli.setup.container import FileOwner, _files_of, passed_on, prepare, read_owner, read_server
from bot.cli.setup.files import Server
from config.loading import load_settings
from config.settings import Settings
from frostagent.types.errors import ConfigError
from tests.cases import each_case

ENVIRON = {
    "LLM_BASE_URL": "https://api.deepseek.com/v1",
    "LLM_API_KEY": "sk-abcdefgh",
    "LLM_MODEL": "deepseek-chat",
    "ONEBOT_ACCESS_TOKEN": "correct-horse",
}


class Machine:
    """The folder that compose mounts, and `init` run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[str] = []
        self._made = count(1)

    def init(self, server: Server = "napcat", **changes: str) -> Settings:
        return prepare(
            folder=self.folder,
            environ={**ENVIRON, **changes},
            server=server,
            make_token=lambda: f"made-by-init-itself-number-{next(self._made)}",
            tell=self.told.append,
        )

    def problems(self, server: Server = "napcat", **changes: str) -> dict[str, str]:
        with pytest.raises(ConfigError) as caught:
            self.init(server, **changes)
        return {problem.name: str(problem) for problem in caught.value.problems}

    def json(self, path: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.text(path))
        return found

    def text(self, path: str) -> str:
        return (self.folder / path).read_text("utf-8")

    @property
    def files(self) -> list[str]:
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_napcats_settings_come_with_the_token_of_the_env_file(machine: Machine) -> None:
    machine.init(NAPCAT_WEBUI_TOKEN="open-sesame")
    assert machine.files == [
        "data/tokens.env", "napcat/config/account", "napcat/config/onebot11.json", "napcat/config/webui.json",
    ]  # fmt: skip
    assert '"token": "correct-horse"' in machine.text("napcat/config/onebot11.json")
    assert machine.json("napcat/config/webui.json")["token"] == "open-sesame"
    assert (machine.folder / "data" / "media").is_dir()


def test_a_missing_token_is_made_and_the_bot_finds_the_same_one(machine: Machine) -> None:
    settings = machine.init(ONEBOT_ACCESS_TOKEN="")
    found, _ = load_settings(
        environ={**ENVIRON, "ONEBOT_ACCESS_TOKEN": ""}, env_file=machine.folder / "data" / "tokens.env"
    )
    token = found.onebot_access_token.get_secret_value()
    assert token.startswith("made-by-init-")
    assert settings.onebot_access_token == found.onebot_access_token
    assert f'"token": "{token}"' in machine.text("napcat/config/onebot11.json")
    assert "ONEBOT_ACCESS_TOKEN: not set in .env, so it was made; see data/tokens.env" in machine.told
    assert not any(token in text for text in machine.told)
    assert (machine.folder / "data" / "tokens.env").stat().st_mode & 0o777 == 0o600


def test_running_again_changes_nothing(machine: Machine) -> None:
    machine.init(ONEBOT_ACCESS_TOKEN="")
    before = {name: machine.text(name) for name in machine.files}
    machine.init(ONEBOT_ACCESS_TOKEN="")
    assert {name: machine.text(name) for name in machine.files} == before


def test_an_old_file_of_napcat_is_never_overwritten(machine: Machine) -> None:
    machine.init()
    file = machine.folder / "napcat" / "config" / "onebot11.json"
    edited = file.read_text("utf-8").replace('"debug": false', '"debug": true')
    file.write_text(edited, "utf-8")
    machine.init()
    assert file.read_text("utf-8") == edited


def test_a_changed_token_is_told_before_napcat_is_refused_for_ever(machine: Machine) -> None:
    machine.init()
    own = machine.folder / "napcat" / "config" / "onebot11_10000.json"
    own.write_text(machine.text("napcat/config/onebot11.json"), "utf-8")
    found = machine.problems(ONEBOT_ACCESS_TOKEN="another-one")
    assert sorted(found) == ["napcat/config/onebot11.json", "napcat/config/onebot11_10000.json"]
    assert "another token" in found["napcat/config/onebot11_10000.json"]


def test_napcat_gets_the_token_of_its_account_and_those_of_the_others_are_no_mistake(machine: Machine) -> None:
    tokens = {"ONEBOT_ACCESS_TOKEN": "10001:correct-horse,10002:battery-staple", "NAPCAT_ACCOUNT": "10002"}
    machine.init("napcat", **tokens)
    assert '"token": "battery-staple"' in machine.text("napcat/config/onebot11.json")
    own = machine.folder / "napcat" / "config" / "onebot11_10001.json"
    own.write_text(machine.text("napcat/config/onebot11.json").replace("battery-staple", "correct-horse"), "utf-8")
    machine.init("napcat", **tokens)
    own.write_text(machine.text("napcat/config/onebot11.json").replace("battery-staple", "older"), "utf-8")
    assert list(machine.problems("napcat", **tokens)) == ["napcat/config/onebot11_10001.json"]


def test_llbot_gets_the_token_of_its_account(machine: Machine) -> None:
    machine.init("llbot", ONEBOT_ACCESS_TOKEN="10001:correct-horse,10002:battery-staple", LLBOT_ACCOUNT="10002")
    assert '"token": "battery-staple"' in machine.text("llbot/config_10002.json")


def test_a_token_set_later_takes_the_place_of_the_one_that_was_made(machine: Machine) -> None:
    machine.init(ONEBOT_ACCESS_TOKEN="")
    (machine.folder / "napcat" / "config" / "onebot11.json").unlink()
    machine.init()
    assert "ONEBOT_ACCESS_TOKEN" not in machine.text("data/tokens.env")
    assert '"token": "correct-horse"' in machine.text("napcat/config/onebot11.json")


def test_everything_wrong_is_told_at_once_and_nothing_is_written(machine: Machine) -> None:
    found = machine.problems(
        ONEBOT_ACCESS_TOKEN="change-me", LLM_MODEL="", NAPCAT_WEBUI_TOKEN="change-me", BOT_OWNERS="me"
    )
    assert sorted(found) == ["BOT_OWNERS", "LLM_MODEL", "NAPCAT_WEBUI_TOKEN", "ONEBOT_ACCESS_TOKEN"]
    assert machine.files == []


def test_a_misspelt_name_is_refused_with_a_suggestion(machine: Machine) -> None:
    assert "BOT_OWNERS" in machine.problems(BOT_OWNER="10001")["BOT_OWNER"]


@pytest.mark.parametrize("name", ["LLM_BASE_URL", "CODER_BASE_URL"])
def test_a_model_inside_the_container_is_told(machine: Machine, name: str) -> None:
    assert "host.docker.internal" in machine.problems("napcat", **{name: "http://127.0.0.1:11434/v1"})[name]


FORWARD = {"ONEBOT_MODE": "Forward", "ONEBOT_URL": "ws://napcat:3001"}


def test_a_bot_that_dials_finds_napcat_listening(machine: Machine) -> None:
    machine.init("napcat", **FORWARD)
    assert '"port": 3001' in machine.text("napcat/config/onebot11.json")
    machine.init("napcat", **FORWARD)


def test_a_bot_that_dials_finds_llbot_listening(machine: Machine) -> None:
    machine.init("llbot", LLBOT_ACCOUNT="10000", ONEBOT_MODE="forward", ONEBOT_URL="ws://llbot:3001")
    written = machine.text("llbot/config_10000.json")
    assert '"type": "ws"' in written
    assert "ws-reverse" not in written


def test_a_changed_token_is_told_where_the_bot_dials_too(machine: Machine) -> None:
    machine.init("napcat", **FORWARD)
    (told,) = machine.problems("napcat", **FORWARD, ONEBOT_ACCESS_TOKEN="another-one").values()
    assert "onebot11.json: has another token for ws://napcat:3001" in told


def test_a_bot_that_dials_is_told_of_a_napcat_that_does_not_listen(machine: Machine) -> None:
    machine.init()
    (told,) = machine.problems("napcat", **FORWARD).values()
    assert "onebot11.json: has no websocket server at ws://napcat:3001" in told
    machine.init(ONEBOT_MODE="forward", ONEBOT_URL="wss://elsewhere.invalid/")  # it reads no file here


def test_an_address_of_the_onebot_server_that_leads_back_into_the_container_is_told(machine: Machine) -> None:
    told = machine.problems(ONEBOT_MODE="forward", ONEBOT_URL="ws://127.0.0.1:3001")["ONEBOT_URL"]
    assert "ws://napcat:3001" in told


@pytest.mark.parametrize(("server", "name"), [("napcat", "NAPCAT_WEBUI_TOKEN"), ("llbot", "LLBOT_WEBUI_TOKEN")])
def test_another_password_of_the_webui_is_told_and_changes_nothing(machine: Machine, server: Server, name: str) -> None:
    given = {"LLBOT_ACCOUNT": "10000", "CONSOLE_TOKEN": "0123456789abcdef0123456789abcdef"}
    machine.init(server, **given, **{name: "open-sesame"})
    before = machine.files
    machine.told.clear()
    machine.init(server, **given, **{name: "open-sesame"})
    assert not machine.told
    machine.init(server, **given, **{name: "another-one"})
    (told,) = machine.told
    assert f"has another password than {name}" in told
    assert "sesame" not in told
    assert machine.files == before


def test_llbots_settings_are_named_after_its_account(machine: Machine) -> None:
    machine.init("llbot", LLBOT_ACCOUNT="10000", LLBOT_AUTH_TOKEN="granted")
    assert machine.files == [
        "data/tokens.env", "llbot/account", "llbot/auth_token.txt", "llbot/config_10000.json", "llbot/webui_token.txt",
    ]  # fmt: skip
    assert '"token": "correct-horse"' in machine.text("llbot/config_10000.json")
    assert f"LLBOT_WEBUI_TOKEN={machine.text('llbot/webui_token.txt')}" in machine.text("data/tokens.env")
    assert machine.text("llbot/auth_token.txt") == "granted\n"


@pytest.mark.parametrize("account", ["", "me", "10000,10001"])
def test_llbot_needs_its_account(machine: Machine, account: str) -> None:
    assert "LLBOT_ACCOUNT" in machine.problems("llbot", LLBOT_ACCOUNT=account)
    assert machine.files == []


def test_both_servers_may_have_been_prepared_for_the_same_bot(machine: Machine) -> None:
    machine.init(ONEBOT_ACCESS_TOKEN="")
    made = machine.text("data/tokens.env")
    machine.init("llbot", ONEBOT_ACCESS_TOKEN="", LLBOT_ACCOUNT="10000")
    assert set(made.splitlines()) < set(machine.text("data/tokens.env").splitlines())


@pytest.mark.system
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_bots_folder_is_given_to_it_and_nothing_else(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("not yours")
    data = tmp_path / "data"
    data.mkdir()
    (data / "link").symlink_to(outside)
    prepare(
        folder=tmp_path,
        environ=ENVIRON,
        server="napcat",
        make_token=lambda: "made-by-init-for-the-first-time",
        tell=lambda _: None,
        owner=FileOwner(1000, 1001),
    )
    given = {path: path.lstat() for path in (data, *data.rglob("*"))}
    assert {(status.st_uid, status.st_gid) for status in given.values()} == {(1000, 1001)}
    assert outside.stat().st_uid == 0


def test_a_data_folder_that_cannot_be_made_is_told(machine: Machine) -> None:
    (machine.folder / "data").write_text("a file")
    assert any("data" in name for name in machine.problems())


def test_owner_and_server_are_read_as_they_are_typed() -> None:
    assert (read_owner(""), read_owner("1000:1001")) == (None, FileOwner(1000, 1001))
    assert [read_server(name, {}) for name in ("napcat", "llbot", "")] == ["napcat", "llbot", "napcat"]
    assert read_server("", {"COMPOSE_PROFILES": "monitoring, llbot"}) == "llbot"
    for wrong in ("1000", "a:b", "1:2:3"):
        with pytest.raises(ConfigError):
            read_owner(wrong)
    with pytest.raises(ConfigError):
        read_server("lagrange", {})


@each_case(
    ("changes", "told"),
    [
        ({"COMPOSE_PROFILES": "monitoring"}, set()),
        ({"COMPOSE_PROFILES": "cluster"}, {"FROSTAGENT_REPLICAS", "CLUSTER_PASSWORD"}),
        ({"COMPOSE_PROFILES": "cluster", "FROSTAGENT_REPLICAS": "0", "CLUSTER_PASSWORD": "abc"}, set()),
        ({"FROSTAGENT_REPLICAS": "0"}, {"FROSTAGENT_REPLICAS"}),
        ({"COMPOSE_PROFILES": "llbot,monitoring", "NAPCAT_REPLICAS": "1"}, {"NAPCAT_REPLICAS"}),
        ({"COMPOSE_PROFILES": "llbot", "NAPCAT_REPLICAS": "0"}, set()),
    ],
)
def test_a_profile_without_the_lines_that_belong_to_it_starts_nothing(
    tmp_path: Path, changes: dict[str, str], told: set[str]
) -> None:
    machine = Machine(tmp_path / str(len(list(tmp_path.iterdir()))))
    machine.folder.mkdir()
    if told:
        assert machine.problems("llbot", LLBOT_ACCOUNT="10000", **changes).keys() == told
        assert machine.files == []
    else:
        machine.init("llbot", LLBOT_ACCOUNT="10000", **changes)


def test_the_account_follows_the_env_file_and_the_file_that_is_waited_for_is_written_last(machine: Machine) -> None:
    machine.init()
    before = machine.text("napcat/config/onebot11.json")
    assert machine.text("napcat/config/account") == "\n"
    machine.init(NAPCAT_ACCOUNT="10001")
    assert machine.text("napcat/config/account") == "10001\n"
    assert machine.text("napcat/config/onebot11.json") == before
    settings = machine.init()
    for server, awaited in (("napcat", "onebot11.json"), ("llbot", "config_10000.json")):
        tokens = {"NAPCAT_WEBUI_TOKEN": "a", "LLBOT_WEBUI_TOKEN": "b"}
        environ = {"LLBOT_ACCOUNT": "10000", "LLBOT_AUTH_TOKEN": "c"}
        files = list(_files_of(machine.folder, environ, read_server(server, {}), settings, tokens))
        assert files[-1].path.name == awaited


def test_a_database_whose_driver_is_not_in_the_image_is_told_before_anything_starts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql://frost:secret@db/frost"
    monkeypatch.setattr("adapters.storage.url.find_spec", lambda _name: None)
    said = machine.problems(STORE_URL=url)["STORE_URL"]
    assert "EXTRAS=postgres into .env, then: docker compose up -d --build" in said
    assert "secret" not in said
    assert machine.files == []
    monkeypatch.undo()
    machine.init(STORE_URL=url)
    assert machine.told


def test_a_misspelt_name_is_told_once(machine: Machine) -> None:
    with pytest.raises(ConfigError) as caught:
        machine.init(LLM_MODEL="", LLM_MODLE="deepseek-chat")
    told = [str(problem) for problem in caught.value.problems if problem.name == "LLM_MODLE"]
    assert len(told) == 1
    assert "ignored" not in told[0]
    assert "Did you mean LLM_MODEL?" in told[0]


def test_quotes_around_what_compose_passes_on_are_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("NAPCAT_WEBUI_TOKEN=“of-the-file”\nLLM_MODEL=“file”\n", "utf-8")
    found = passed_on(tmp_path, {"LLM_MODEL": "'environment'"})
    assert found == {"NAPCAT_WEBUI_TOKEN": "of-the-file", "LLM_MODEL": "environment"}
