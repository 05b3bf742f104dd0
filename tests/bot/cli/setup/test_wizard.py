"""From answers to files."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import typer

from bot.cli.checks import Check, failure, ok
from bot.cli.setup.files import BOT_URL, ServerLink, tokens_for, write_onebot
from bot.cli.setup.wizard import SetupOptions, Wizard
from bot.core.language import Phrase
from config.endpoints import Endpoint
from config.loading import load_settings
from config.settings import Settings
from frostagent.types.errors import ConfigError
from tests.bot.cli.setup.fakes import LEAVE, ScriptedTerminal
from tests.cases import each_case

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / ".env.example"
TYPED = {"LLM_BASE_URL": "deepseek", "LLM_API_KEY": "sk-abcdefgh", "LLM_MODEL": "deepseek-chat", "BOT_OWNERS": "10001"}
GOOD = ok("model", "0.8 s")
BAD = replace(
    failure("model", "Authentication Fails", Phrase("请重新复制密钥", "Copy the key again")), setting="LLM_API_KEY"
)
NOT_FOUND = replace(failure("model", "Not Found", Phrase("请换一个名称", "Take another name")), setting="LLM_MODEL")


class Evening:
    """A folder as it is cloned, and somebody who sets FrostAgent up in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tried: list[Endpoint] = []
        self._made = count(1)
        for name in ("docker-compose.yml", "Makefile"):
            (folder / name).touch()
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.install("make")

    def install(self, program: str) -> None:
        """Put a program into the PATH."""
        (self.programs / program).touch(mode=0o755)

    def setup(
        self,
        *answers: str,
        typed: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        trials: tuple[Check, ...] = (GOOD,),
        force: bool = False,
        test: bool = True,
        interactive: bool = False,
        napcat_url: str = BOT_URL,
        docker: bool | None = None,
        models: tuple[str, ...] = (),
    ) -> tuple[bool, ScriptedTerminal]:
        person = ScriptedTerminal(*answers)
        left = list(trials)

        def check_endpoint(endpoint: Endpoint) -> Check:
            self.tried.append(endpoint)
            return left.pop(0)

        wizard = Wizard(
            folder=self.folder,
            environ={"PATH": str(self.programs), **(environ or {})},
            terminal=person,
            check_endpoint=check_endpoint,
            list_models=lambda _: models,
            make_token=lambda: f"made-by-setup-token-number-{next(self._made)}",
        )
        wishes = SetupOptions(
            typed=typed or {},
            napcat_url=napcat_url,
            docker=docker,
            force=force,
            test=test,
            interactive=interactive,
        )
        return wizard.run(wishes), person

    @property
    def files(self) -> dict[str, str]:
        return {
            path.relative_to(self.folder).as_posix(): path.read_text("utf-8")
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.stat().st_size
        }

    def settings(self) -> Settings:
        settings, warnings = load_settings(environ={}, env_file=self.folder / ".env")
        assert warnings == ()
        return settings


@pytest.fixture
def evening(tmp_path: Path) -> Evening:
    return Evening(tmp_path)


def test_options_alone_make_an_env_file_that_loads_and_napcats_settings(evening: Evening) -> None:
    written, person = evening.setup(typed=TYPED)
    assert written
    settings = evening.settings()
    assert settings.main_model == evening.tried[0]
    assert (settings.llm_base_url, settings.llm_model) == ("https://api.deepseek.com/v1", "deepseek-chat")
    assert settings.bot_owners == frozenset({10001})
    token = settings.onebot_access_token.get_secret_value()
    assert json.loads(evening.files["napcat/config/onebot11.json"])["network"]["websocketClients"][0]["token"] == token
    assert "NAPCAT_WEBUI_TOKEN=made-by-setup-token-" in evening.files[".env"]
    assert (evening.folder / ".env").stat().st_mode & 0o777 == 0o600
    assert person.said("docker compose up -d")
    assert not person.questions


def test_the_comments_of_the_example_are_kept(evening: Evening) -> None:
    evening.setup(typed=TYPED)
    comments = [line for line in EXAMPLE.read_text("utf-8").splitlines() if line.startswith("# ")]
    assert [line for line in evening.files[".env"].splitlines() if line.startswith("# ")] == comments


def test_no_secret_is_told(evening: Evening) -> None:
    _, person = evening.setup(typed=TYPED)
    assert not any("sk-abcdefgh" in text or "made-by-setup" in text for text in person.told)


def test_what_is_missing_is_told_at_once_and_nothing_is_written(evening: Evening) -> None:
    with pytest.raises(ConfigError) as caught:
        evening.setup()
    names = [problem.name for problem in caught.value.problems]
    assert names == ["LLM_BASE_URL (--base-url)", "LLM_MODEL (--model)"]
    assert evening.files == {}


def test_a_model_that_does_not_answer_leaves_everything_unwritten_with_its_mend(evening: Evening) -> None:
    written, person = evening.setup(typed=TYPED, trials=(BAD,))
    assert not written
    assert person.said("Authentication Fails")
    assert person.said("Copy the key again")
    assert person.said("请重新复制密钥")
    assert evening.files == {}


def test_the_model_is_not_asked_when_nobody_wants_it(evening: Evening) -> None:
    written, _ = evening.setup(typed=TYPED, trials=(), test=False)
    assert written
    assert evening.tried == []


def test_without_a_terminal_nothing_is_overwritten_unless_forced(evening: Evening) -> None:
    evening.setup(typed=TYPED)
    before = evening.files
    with pytest.raises(ConfigError, match=r"\.env: exists already. Add --force"):
        evening.setup(typed={"LLM_MODEL": "another"})
    assert evening.files == before
    written, _ = evening.setup(typed={"LLM_MODEL": "another"}, force=True)
    assert written
    assert evening.settings().llm_model == "another"


def test_a_second_time_keeps_every_answer_and_changes_nothing(evening: Evening) -> None:
    evening.setup(typed=TYPED)
    before = evening.files
    written, person = evening.setup()
    assert written
    assert evening.files == before
    assert person.said("Nothing has changed")


def test_the_key_of_one_service_never_goes_to_another_without_a_terminal_either(evening: Evening) -> None:
    evening.setup(typed=TYPED)
    elsewhere = {"LLM_BASE_URL": "http://127.0.0.1:6391/v1", "LLM_MODEL": "x"}
    evening.setup(typed=elsewhere, force=True)
    assert evening.tried[-1].api_key.get_secret_value() == ""
    assert "sk-abcdefgh" not in evening.files[".env"]
    evening.setup(typed=TYPED | {"LLM_API_KEY": "sk-another"}, force=True)
    assert evening.settings().llm_api_key.get_secret_value() == "sk-another"
    evening.setup(typed={"BOT_OWNERS": "2"}, force=True)  # the same service keeps its key
    assert evening.settings().llm_api_key.get_secret_value() == "sk-another"


def test_somebody_is_asked_for_everything(evening: Evening) -> None:
    written, person = evening.setup(
        *("moonshot", "sk-1", "kimi", "霜降狐", "你是一只狐狸。", "10001", "4242", "10000", "2", "8090"),
        interactive=True,
    )
    assert written
    assert not person.left
    settings = evening.settings()
    assert (settings.llm_base_url, settings.llm_model) == ("https://api.moonshot.cn/v1", "kimi")
    assert settings.bot_owners == frozenset({10001})
    assert settings.bot_groups == frozenset({4242})
    assert settings.console_port == 8090
    assert (settings.bot_name, settings.system_prompt) == ("霜降狐", "你是一只狐狸。")
    assert "\nNAPCAT_ACCOUNT=10000\n" in evening.files[".env"]


REST = ("", "", "", "", "", "1")
"""Name, persona, owners, groups, account: as they are; with Docker."""


def test_only_the_answer_that_was_wrong_is_asked_for_again(evening: Evening) -> None:
    written, person = evening.setup("1", "sk-wrong", "m", "", "sk-right", *REST, trials=(BAD, GOOD), interactive=True)
    assert written
    assert not person.left
    assert "[2]" in person.questions[3]  # the key is what is suggested
    assert "What to change" in person.questions[3]
    assert [endpoint.api_key.get_secret_value() for endpoint in evening.tried] == ["sk-wrong", "sk-right"]
    assert [endpoint.model for endpoint in evening.tried] == ["m", "m"]


def test_another_answer_than_the_suggested_one_may_be_changed(evening: Evening) -> None:
    written, person = evening.setup("1", "sk-1", "m", "3", "n", *REST, trials=(BAD, GOOD), interactive=True)
    assert written
    assert not person.left
    assert [endpoint.model for endpoint in evening.tried] == ["m", "n"]


def test_somebody_may_go_on_with_a_model_that_does_not_answer(evening: Evening) -> None:
    written, _ = evening.setup("1", "sk-1", "m", "0", *REST, trials=(BAD,), interactive=True)
    assert written


@pytest.mark.parametrize("interactive", [True, False])
def test_a_missing_v1_is_tried_and_written(evening: Evening, *, interactive: bool) -> None:
    short = "https://api.deepseek.com"
    answers = (short, "sk-1", "m", *REST) if interactive else ()
    written, person = evening.setup(
        *answers, typed=TYPED | {"LLM_BASE_URL": short}, trials=(NOT_FOUND, GOOD), interactive=interactive
    )
    assert written
    assert [endpoint.base_url for endpoint in evening.tried] == [short, f"{short}/v1"]
    assert evening.settings().llm_base_url == f"{short}/v1"
    assert person.said("added the missing /v1")


def test_where_a_key_is_refused_behind_v1_only_the_key_is_asked_for_again(evening: Evening) -> None:
    short = "https://api.deepseek.com"
    answers = (short, "sk-bad", "m", "", "sk-1", *REST)
    written, person = evening.setup(*answers, trials=(NOT_FOUND, BAD, GOOD), interactive=True)
    assert written
    assert [endpoint.base_url for endpoint in evening.tried] == [short, f"{short}/v1", f"{short}/v1"]
    assert person.said("请重新复制密钥")
    assert evening.settings().llm_base_url == f"{short}/v1"


def test_a_v1_that_does_not_help_either_is_not_written(evening: Evening) -> None:
    typed = TYPED | {"LLM_BASE_URL": "https://api.deepseek.com"}
    written, person = evening.setup(typed=typed, trials=(NOT_FOUND, NOT_FOUND))
    assert not written
    assert person.said("Take another name")
    assert evening.files == {}


def test_a_persona_may_be_a_file_that_is_there(evening: Evening) -> None:
    file = evening.folder / "fox.md"
    missing = str(evening.folder / "none.md")
    file.write_text("You are a fox.", "utf-8")
    said = ("Frost", missing, "You're a fox", str(file))
    written, person = evening.setup("1", "sk-1", "m", *said, *REST[2:], interactive=True)
    assert written
    assert not person.left
    assert (evening.settings().bot_persona, evening.settings().system_prompt) == (file, "")
    assert person.said("Name an existing file")
    assert person.said("有引号、反斜杠或换行")


@pytest.mark.parametrize("answer", ["y", ""])
def test_what_is_there_is_overwritten_only_by_somebody_who_agrees(evening: Evening, answer: str) -> None:
    evening.setup(typed=TYPED)
    before = evening.files
    written, person = evening.setup("", "", "another", *REST, answer, interactive=True)
    assert "Overwrite .env?" in person.questions[-1]
    assert written is (answer == "y")
    assert (evening.files == before) is not written


def test_leaving_in_the_middle_leaves_nothing_behind(evening: Evening) -> None:
    with pytest.raises(typer.Abort):
        evening.setup("1", "sk-1", "m", "", "", "10001", LEAVE, interactive=True)
    assert evening.files == {}


def test_napcats_file_with_the_same_token_stays_as_it_is(evening: Evening) -> None:
    evening.setup(typed=TYPED)
    file = evening.folder / "napcat" / "config" / "onebot11.json"
    file.write_text(file.read_text("utf-8").replace('"debug": false', '"debug": true'), "utf-8")
    evening.setup(typed={"BOT_OWNERS": "2"}, force=True)
    assert '"debug": true' in file.read_text("utf-8")


def test_an_accounts_own_file_with_another_token_is_told(evening: Evening) -> None:
    own = evening.folder / "napcat" / "config" / "onebot11_10000.json"
    own.parent.mkdir(parents=True)
    own.write_text(write_onebot(ServerLink("reverse", "ws://bot:6199/", "older")), "utf-8")
    _, person = evening.setup(typed=TYPED)
    assert person.said("the token in napcat/config/onebot11_10000.json is not the one in .env")


def test_with_a_token_for_each_account_every_one_of_them_is_right(evening: Evening) -> None:
    own = evening.folder / "napcat" / "config" / "onebot11_10001.json"
    own.parent.mkdir(parents=True)
    own.write_text(write_onebot(ServerLink("reverse", "ws://bot:6199/", "correct-horse")), "utf-8")
    tokens = {"ONEBOT_ACCESS_TOKEN": "10001:correct-horse,10002:battery-staple"}
    _, person = evening.setup(typed={**TYPED, "NAPCAT_ACCOUNT": "10002"}, environ=tokens)
    assert not person.said("is not the one in .env")
    file = evening.folder / "napcat" / "config" / "onebot11.json"
    assert '"token": "battery-staple"' in file.read_text("utf-8")
    file.write_text(file.read_text("utf-8").replace("battery-staple", "correct-horse"), "utf-8")
    evening.setup(typed={"BOT_OWNERS": "2"}, environ=tokens, force=True)
    assert '"token": "correct-horse"' in file.read_text("utf-8")


def test_the_model_is_chosen_from_those_its_service_lists(evening: Evening) -> None:
    written, person = evening.setup("1", "sk-1", "2", *REST, models=("m-1", "m-2"), interactive=True)
    assert written
    assert evening.settings().llm_model == "m-2"
    assert person.said("2  m-2")
    evening.setup("", "", "m-1", *REST, "y", models=("m-1", "m-2"), interactive=True, trials=(), test=False)
    assert evening.settings().llm_model == "m-1"


STEPS_BY_HAND = ("ws://127.0.0.1:6199/", "array", "Websocket client", "make run\n")


def test_without_docker_it_says_what_to_paste_into_napcat(evening: Evening) -> None:
    written, person = evening.setup("1", "sk-1", "m", *REST[:5], "2", "8090", interactive=True)
    assert written
    assert set(evening.files) == {".env"}  # NapCat reads none of ours
    token = evening.settings().onebot_access_token.get_secret_value()
    doctor, console = (f"make run ARGS={word}" for word in ("doctor", "console"))
    for words in (*STEPS_BY_HAND, token, doctor, console, "this computer's address"):
        assert words in person.told[-1]
    assert "docker" not in person.told[-1].replace("Docker", "")


def test_outside_of_a_checkout_there_is_no_docker_and_no_make(evening: Evening) -> None:
    for name in ("docker-compose.yml", "Makefile"):
        (evening.folder / name).unlink()
    evening.install("frostagent")
    written, person = evening.setup("1", "sk-1", "m", *REST[:5], "", interactive=True)
    assert written
    assert not person.left
    assert "  frostagent run\n" in person.told[-1]
    assert "  frostagent doctor" in person.told[-1]
    assert "frostagent console" not in person.told[-1]
    assert "make run" not in person.told[-1]
    assert set(evening.files) == {".env"}


def test_without_make_and_outside_of_the_path_the_program_is_named_whole(evening: Evening) -> None:
    (evening.programs / "make").unlink()
    _, person = evening.setup(typed=TYPED, docker=False)
    folder = re.escape(str(Path(sys.executable).parent))
    assert re.search(rf"\n +{folder}/(frostagent|python\S* -m bot) run\n", person.told[-1])


def test_a_script_is_told_where_the_token_stands(evening: Evening) -> None:
    _, person = evening.setup(typed=TYPED, docker=False)
    assert "ws://127.0.0.1:6199/" in person.told[-1]
    assert "ONEBOT_ACCESS_TOKEN (.env)" in person.told[-1]
    assert set(evening.files) == {".env"}
    _, person = evening.setup(typed=TYPED, docker=True)
    assert "ws://" not in person.told[-1]
    assert "napcat/config/onebot11.json" in evening.files


@each_case(
    ("environ", "words"),
    [
        ({"ONEBOT_PORT": "7000"}, "ws://127.0.0.1:7000/"),
        ({"ONEBOT_HOST": "192.168.1.5"}, "ws://192.168.1.5:6199/"),
        ({"ONEBOT_HOST": "::"}, "ws://127.0.0.1:6199/"),
        ({"ONEBOT_HOST": "fd00::1"}, "ws://[fd00::1]:6199/"),
        ({"ONEBOT_MODE": "forward", "ONEBOT_URL": "ws://127.0.0.1:3001"}, "Port     3001"),
    ],
)
def test_what_to_paste_is_where_the_bot_listens_or_dials(tmp_path: Path, environ: dict[str, str], words: str) -> None:
    folder = tmp_path / "-".join(environ.values()).translate({ord(sign): "_" for sign in ":/."})
    folder.mkdir()
    _, person = Evening(folder).setup(typed=TYPED, environ=environ, docker=False)
    assert words in person.told[-1]
    assert ("Websocket server" in person.told[-1]) == ("ONEBOT_MODE" in environ)


@each_case("docker", [True, False, None])
def test_with_an_owner_it_says_that_a_new_group_waits_for_them(tmp_path: Path, docker: bool | None) -> None:
    for name, typed in {
        "owner": TYPED,
        "groups": {**TYPED, "BOT_GROUPS": "1"},
        "nobody": {**TYPED, "BOT_OWNERS": ""},
    }.items():
        (folder := tmp_path / f"{docker}-{name}").mkdir()
        _, person = Evening(folder).setup(typed=typed, docker=docker)
        assert person.said("3. ")
        assert person.said("from an owner's account") == (name == "owner")


def test_an_address_for_napcat_that_is_given_is_the_one_to_paste(evening: Evening) -> None:
    _, person = evening.setup(typed=TYPED, napcat_url="ws://10.0.0.7:6199/", docker=False)
    assert "ws://10.0.0.7:6199/" in person.told[-1]
    assert "127.0.0.1" not in person.told[-1]


def test_docker_is_what_is_likely_if_it_is_installed(evening: Evening) -> None:
    evening.install("docker")
    _, person = evening.setup("1", "sk-1", "m", *REST[:5], "", interactive=True)
    assert person.told[-1].count("docker compose") == 2
    assert "[1]" in person.questions[-1]


def test_an_env_file_that_cannot_be_read_is_told(evening: Evening) -> None:
    (evening.folder / ".env").write_text("LLM_MODEL='half\n")
    with pytest.raises(ConfigError, match=r"\.env line 1"):
        evening.setup(typed=TYPED)


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def test_a_bot_that_dials_makes_a_napcat_that_listens(evening: Evening) -> None:
    environ = {"ONEBOT_MODE": "forward", "ONEBOT_URL": "ws://napcat:3001"}
    evening.setup(typed=TYPED, environ=environ)
    settings = evening.settings()
    assert (settings.onebot_mode, settings.onebot_url) == ("forward", "ws://napcat:3001")
    token = settings.onebot_access_token.get_secret_value()
    written = evening.files["napcat/config/onebot11.json"]
    assert tokens_for(written, ServerLink("forward", "ws://napcat:3001", "")) == {token}
    before = evening.files
    evening.setup()  # now .env says so
    assert evening.files == before


def test_the_tokens_that_init_made_stay_the_tokens(evening: Evening) -> None:
    made = "ONEBOT_ACCESS_TOKEN=made-by-init-itself\nNAPCAT_WEBUI_TOKEN=made-by-init-too\n"
    write(evening.folder / "data" / "tokens.env", made)
    write(evening.folder / ".env", "ONEBOT_ACCESS_TOKEN=\n")
    evening.setup(typed=TYPED, force=True)
    assert evening.settings().onebot_access_token.get_secret_value() == "made-by-init-itself"
    assert "NAPCAT_WEBUI_TOKEN=made-by-init-too" in evening.files[".env"]


def test_where_the_tokens_of_init_cannot_be_read_no_others_are_made(evening: Evening) -> None:
    write(evening.folder / "data" / "tokens.env" / "not a file", "")
    evening.setup(typed=TYPED)
    assert "\nONEBOT_ACCESS_TOKEN=\n" in evening.files[".env"]
    assert "made-by-setup" not in str(evening.files)
    assert "napcat/config/onebot11.json" not in evening.files


def test_of_a_model_on_this_computer_it_says_where_a_container_finds_it(evening: Evening) -> None:
    _, person = evening.setup(typed=TYPED | {"LLM_BASE_URL": "ollama"})
    assert person.said("LLM_BASE_URL=http://host.docker.internal:11434/v1")
    assert "docker compose up -d" in person.told[-1]
    assert "make run" in person.told[-1]


@pytest.mark.parametrize("url", ["", "bot:6199", "ws://bot:many", "http://bot"])
def test_an_address_for_napcat_that_cannot_be_is_told_before_anything_is_written(evening: Evening, url: str) -> None:
    with pytest.raises(ConfigError, match="--napcat-url"):
        evening.setup(typed=TYPED, napcat_url=url)
    assert evening.files == {}


def test_the_password_of_a_proxy_is_not_told_when_the_model_does_not_answer(evening: Evening) -> None:
    proxy = "http://bot:open-sesame@127.0.0.1:many"
    trial = failure("model", f"cannot use {proxy}", Phrase("请重试", "Try again"))
    _, person = evening.setup(typed=TYPED, environ={"HTTPS_PROXY": proxy}, trials=(trial,))
    assert person.said("cannot use http://***@127.0.0.1")
