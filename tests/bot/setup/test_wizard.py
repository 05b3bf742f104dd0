"""From answers to files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pytest
import typer

from bot.domain.errors import ConfigError
from bot.setup.servers import BOT_URL, Link, tokens_for, write_onebot
from bot.setup.trial import Trial
from bot.setup.wizard import Wishes, Wizard
from config.endpoints import Endpoint
from config.settings import Settings, load_settings
from tests.bot.setup.fakes import LEAVE, ScriptedTerminal

EXAMPLE = Path(__file__).parents[3] / ".env.example"
TYPED = {"LLM_BASE_URL": "deepseek", "LLM_API_KEY": "sk-abcdefgh", "LLM_MODEL": "deepseek-chat", "BOT_OWNERS": "10001"}
GOOD = Trial(True, 0.8)
BAD = Trial(False, 0.8, "Authentication Fails", "Copy the key once more")


class Evening:
    """A folder as it is cloned, and somebody who sets FrostAgent up in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tried: list[Endpoint] = []
        self._made = count(1)
        shutil.copy(EXAMPLE, folder)

    def setup(
        self,
        *answers: str,
        typed: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        trials: tuple[Trial, ...] = (GOOD,),
        force: bool = False,
        test: bool = True,
        interactive: bool = False,
        napcat_url: str = BOT_URL,
    ) -> tuple[bool, ScriptedTerminal]:
        person = ScriptedTerminal(*answers)
        left = list(trials)

        def try_endpoint(endpoint: Endpoint) -> Trial:
            self.tried.append(endpoint)
            return left.pop(0)

        wizard = Wizard(
            folder=self.folder,
            environ=environ or {},
            terminal=person,
            try_endpoint=try_endpoint,
            make_token=lambda: f"made-by-setup-{next(self._made)}",
        )
        wishes = Wishes(typed=typed or {}, napcat_url=napcat_url, force=force, test=test, interactive=interactive)
        return wizard.run(wishes), person

    @property
    def files(self) -> dict[str, str]:
        return {
            path.relative_to(self.folder).as_posix(): path.read_text("utf-8")
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != EXAMPLE.name
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
    assert "NAPCAT_WEBUI_TOKEN=made-by-setup-" in evening.files[".env"]
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
    assert person.said("Copy the key once more")
    assert evening.files == {}


def test_the_model_is_not_asked_when_nobody_wants_it(evening: Evening) -> None:
    written, _ = evening.setup(typed=TYPED, trials=(), test=False)
    assert written
    assert evening.tried == []


def test_without_a_terminal_nothing_is_overwritten_unless_forced(evening: Evening) -> None:
    evening.setup(typed=TYPED)
    before = evening.files
    with pytest.raises(ConfigError, match=r"\.env: is there already. Add --force"):
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


def test_somebody_is_asked_for_everything(evening: Evening) -> None:
    written, person = evening.setup("moonshot", "sk-1", "kimi", "10001", "4242", "10000", interactive=True)
    assert written
    assert not person.left
    settings = evening.settings()
    assert (settings.llm_base_url, settings.llm_model) == ("https://api.moonshot.cn/v1", "kimi")
    assert settings.bot_owners == frozenset({10001})
    assert settings.bot_groups == frozenset({4242})
    assert "\nNAPCAT_ACCOUNT=10000\n" in evening.files[".env"]


def test_a_model_that_does_not_answer_is_asked_about_again(evening: Evening) -> None:
    first, second = ("1", "sk-wrong", "m"), ("", "sk-right", "")
    written, person = evening.setup(*first, "y", *second, "", "", "", trials=(BAD, GOOD), interactive=True)
    assert written
    assert not person.left
    assert [endpoint.api_key.get_secret_value() for endpoint in evening.tried] == ["sk-wrong", "sk-right"]


def test_somebody_may_go_on_with_a_model_that_does_not_answer(evening: Evening) -> None:
    written, _ = evening.setup("1", "sk-1", "m", "n", "", "", "", trials=(BAD,), interactive=True)
    assert written


@pytest.mark.parametrize("answer", ["y", ""])
def test_what_is_there_is_overwritten_only_by_somebody_who_agrees(evening: Evening, answer: str) -> None:
    evening.setup(typed=TYPED)
    before = evening.files
    written, person = evening.setup("", "", "another", "", "", "", answer, interactive=True)
    assert "Overwrite .env?" in person.questions[-1]
    assert written is (answer == "y")
    assert (evening.files == before) is not written


def test_leaving_in_the_middle_leaves_nothing_behind(evening: Evening) -> None:
    with pytest.raises(typer.Abort):
        evening.setup("1", "sk-1", "m", "10001", LEAVE, interactive=True)
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
    own.write_text(write_onebot(Link("reverse", "ws://bot:6199/", "older")), "utf-8")
    _, person = evening.setup(typed=TYPED)
    assert person.said("onebot11_10000.json has another token")


def test_without_the_example_it_says_where_to_go(evening: Evening) -> None:
    (evening.folder / EXAMPLE.name).unlink()
    with pytest.raises(ConfigError, match="Run setup in the folder of FrostAgent"):
        evening.setup(typed=TYPED)


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
    assert tokens_for(written, Link("forward", "ws://napcat:3001", "")) == {token}
    before = evening.files
    evening.setup()  # now .env says so
    assert evening.files == before


def test_the_tokens_that_init_made_stay_the_tokens(evening: Evening) -> None:
    made = "ONEBOT_ACCESS_TOKEN=made-by-init\nNAPCAT_WEBUI_TOKEN=made-by-init-too\n"
    write(evening.folder / "data" / "tokens.env", made)
    write(evening.folder / ".env", "ONEBOT_ACCESS_TOKEN=\n")
    evening.setup(typed=TYPED, force=True)
    assert evening.settings().onebot_access_token.get_secret_value() == "made-by-init"
    assert "NAPCAT_WEBUI_TOKEN=made-by-init-too" in evening.files[".env"]


def test_where_the_tokens_of_init_cannot_be_read_no_others_are_made(evening: Evening) -> None:
    write(evening.folder / "data" / "tokens.env" / "not a file", "")
    evening.setup(typed=TYPED)
    assert "\nONEBOT_ACCESS_TOKEN=\n" in evening.files[".env"]
    assert "made-by-setup" not in str(evening.files)
    assert "napcat/config/onebot11.json" not in evening.files


def test_a_model_on_this_computer_is_run_without_docker_first(evening: Evening) -> None:
    _, person = evening.setup(typed=TYPED | {"LLM_BASE_URL": "ollama"})
    (told,) = (text for text in person.told if "Next" in text)
    assert told.index("make run") < told.index("host.docker.internal") < told.index("docker compose up")


@pytest.mark.parametrize("url", ["", "bot:6199", "ws://bot:many", "http://bot"])
def test_an_address_for_napcat_that_cannot_be_is_told_before_anything_is_written(evening: Evening, url: str) -> None:
    with pytest.raises(ConfigError, match="--napcat-url"):
        evening.setup(typed=TYPED, napcat_url=url)
    assert evening.files == {}


def test_the_password_of_a_proxy_is_not_told_when_the_model_does_not_answer(evening: Evening) -> None:
    proxy = "http://bot:open-sesame@127.0.0.1:many"
    trial = Trial(False, 0.1, f"cannot use {proxy}", "Try again")
    _, person = evening.setup(typed=TYPED, environ={"HTTPS_PROXY": proxy}, trials=(trial,))
    assert person.said("cannot use http://***@127.0.0.1")
