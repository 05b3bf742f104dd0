"""The settings: what loads, what is refused and how it is said, what is never shown."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from bot.domain.errors import ConfigError, Problem
from config import values
from config.settings import (
    DEFAULT_PERSONA,
    KNOWN,
    Settings,
    is_configured,
    load_settings,
    read_persona,
)

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


# --- what loads -----------------------------------------------------------------------------------


def test_three_names_are_enough_for_the_service() -> None:
    settings, warnings = load(GOOD)
    assert warnings == ()
    assert settings == Settings(
        llm_base_url="https://api.deepseek.com/v1", llm_model="deepseek-chat", onebot_access_token=SecretStr(TOKEN)
    )


TYPED: dict[str, tuple[str, object]] = {
    "LLM_BASE_URL": ("http://localhost:11434/v1/", "http://localhost:11434/v1"),
    "LLM_API_KEY": ("k1", SecretStr("k1")),
    "LLM_MODEL": ("qwen", "qwen"),
    "LLM_DIALECT": ("DeepSeek", "deepseek"),
    "LLM_FALLBACKS": (
        '[{"base_url": "https://b.test/v1/", "api_key": "k5, k6", "model": "b", "context": 4096}]',
        (
            {
                "base_url": "https://b.test/v1",
                "api_key": SecretStr("k5,k6"),
                "model": "b",
                "dialect": "",
                "context": 4096,
            },
        ),
    ),
    "LLM_VISION_MODEL": ("qwen-vl", "qwen-vl"),
    "LLM_CONTEXT": ("8192", 8192),
    "ONEBOT_MODE": ("Forward", "forward"),
    "ONEBOT_HOST": ("[::1]", "::1"),
    "ONEBOT_PORT": ("6200", 6200),
    "ONEBOT_URL": ("ws://napcat:3001", "ws://napcat:3001"),
    "ONEBOT_ACCESS_TOKEN": ("t1", SecretStr("t1")),
    "BOT_NAME": ("Frost Fox", "Frost Fox"),
    "BOT_ALIASES": ("霜降狐，霜降", ("霜降狐", "霜降")),
    "BOT_OWNERS": ("[10001]", {10001}),
    "BOT_GROUPS": ("1 2", {1, 2}),
    "BOT_USERS": ("3", {3}),
    "BOT_BLOCK": ("4,5", {4, 5}),
    "BOT_MAX_STEPS": ("64", 64),
    "BOT_HISTORY_TOKENS": ("500", 500),
    "BOT_SEND_RATE": ("0.5", 0.5),
    "CODER_BASE_URL": ("https://coder.test/v1", "https://coder.test/v1"),
    "CODER_API_KEY": ("k2", SecretStr("k2")),
    "CODER_MODEL": ("coder", "coder"),
    "STORE_URL": ("postgresql://u:p@db/frost", SecretStr("postgresql://u:p@db/frost")),
    "STORE_KEEP_DAYS": ("0", 0),
    "STORE_KEEP_MESSAGES": ("5000", 5000),
    "TOOLS_DENY": ("get_weather，send_message", ("get_weather", "send_message")),
    "TOOLS_APPROVE": ('["use_subagent"]', ("use_subagent",)),
    "TOOLS_MIRRORS": ('{"a.test": "https://b.test"}', {"a.test": "https://b.test"}),
    "TOOLS_CONTACT": ("bot@example.com", "bot@example.com"),
    "QWEATHER_HOST": ("https://abc.def.qweatherapi.com/", "abc.def.qweatherapi.com"),
    "QWEATHER_KEY": ("k3", SecretStr("k3")),
    "QWEATHER_JWT_PROJECT": ("P1", "P1"),
    "QWEATHER_JWT_KEY_ID": ("K1", "K1"),
    "QWEATHER_JWT_PRIVATE_KEY": (SIGNING_KEY, SecretStr(SIGNING_KEY)),
    "AMAP_KEY": ("k4", SecretStr("k4")),
    "MEDIA_SEND": ("FILE", "file"),
    "WEB_HOST": ("0.0.0.0", "0.0.0.0"),
    "WEB_PORT": ("0", 0),
    "LOG_LEVEL": ("warn", "WARNING"),
    "LOG_FORMAT": ("JSON", "json"),
    "LOG_CONTENT": ("on", True),
}
"""What a person types for each variable, and what it is; those that name files are in the test."""


def test_every_variable_arrives_in_its_field(tmp_path: Path) -> None:
    persona = tmp_path / "fox.md"
    persona.write_text("You are a fox.")
    rows = tmp_path / "subagents.toml"
    rows.touch()
    table = TYPED | {
        **dict.fromkeys(("LLM_PRICES", "BOT_PERSONA", "GAMES_FILE", "LOG_RUNS"), (str(persona), persona)),
        "SUBAGENTS_FILE": (str(rows), rows),
        **dict.fromkeys(("TOOLS_DIR", "MEDIA_DIR"), (str(tmp_path), tmp_path)),
    }
    assert set(table) == set(KNOWN) - {"SYSTEM_PROMPT"}
    settings, warnings = load({name: typed for name, (typed, _) in table.items()})
    assert warnings == ()
    assert settings.model_dump(exclude={"system_prompt"}) == {name.lower(): value for name, (_, value) in table.items()}


def test_settings_read_nothing_by_themselves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("LLM_MODEL=file")
    monkeypatch.setenv("LLM_MODEL", "environment")
    monkeypatch.setenv("BOT_NAME", "environment")
    assert Settings().llm_model == ""
    assert Settings(llm_model="given").bot_name == "FrostAgent"
    settings, _ = load(GOOD)
    assert settings.bot_name == "FrostAgent"


def test_settings_are_frozen_and_know_their_fields() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().llm_model = "other"  # type: ignore[misc]  # the very thing that must fail
    with pytest.raises(ValidationError, match="Extra inputs"):
        Settings.model_validate({"llm_modle": "x"})


def test_the_names_of_the_go_frostagent_load(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(
        "UPSTREAM_ENDPOINT=https://old.test/v1\nUPSTREAM_API_KEY=k\nMODEL_NAME=old\nSYSTEM_PROMPT=Be a fox.\n"
    )
    settings, _ = load_settings(environ={"ONEBOT_ACCESS_TOKEN": TOKEN}, env_file=file)
    assert settings.main_model.base_url == "https://old.test/v1"
    assert settings.main_model.api_key.get_secret_value() == "k"
    assert settings.main_model.model == "old"
    assert read_persona(settings) == "Be a fox."


def test_a_problem_is_told_under_the_name_that_was_typed() -> None:
    with pytest.raises(ConfigError) as caught:
        load({"UPSTREAM_ENDPOINT": "old.test", "MODEL_NAME": "your-model", "ONEBOT_ACCESS_TOKEN": TOKEN})
    assert [problem.name for problem in caught.value.problems] == ["UPSTREAM_ENDPOINT", "MODEL_NAME"]


# --- each problem ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("LLM_BASE_URL", "api.deepseek.com", "does not begin with https:// or http://"),
        ("LLM_BASE_URL", "https://api.example.com/v1", "still has the host of an example"),
        ("LLM_API_KEY", "sk-xxxx", "still has the text of an example"),
        ("LLM_API_KEY", "sk-your-key-here", "still has the text of an example"),
        ("LLM_API_KEY", "<key>", "still has the text of an example"),
        ("LLM_API_KEY", "Bearer sk-abc", "Copy it once more, without “Bearer”"),
        ("LLM_MODEL", "your-model", "still has the text of an example"),
        ("ONEBOT_MODE", "forwrad", "“forwrad” is none of its choices. Write one of: reverse, forward"),
        ("ONEBOT_HOST", "0.0.0.0:6199", "is not an address to listen on"),
        ("ONEBOT_PORT", "65536", "65536 is out of range. Write a number from 0 to 65535"),
        ("ONEBOT_PORT", "tcp://10.0.0.7:6199", "enableServiceLinks"),
        ("ONEBOT_URL", "http://napcat:3001", "does not begin with ws:// or wss://"),
        ("ONEBOT_ACCESS_TOKEN", "CHANGE_ME", "still has the text of an example"),
        ("ONEBOT_ACCESS_TOKEN", "芝麻开门", "a character that is not ASCII"),
        ("BOT_OWNERS", "10001;me", "“me” is not a QQ number"),
        ("BOT_GROUPS", "-1", "is not a QQ number"),
        ("BOT_USERS", "[1", "is not good JSON"),
        ("BOT_BLOCK", "1.5", "is not a QQ number"),
        ("BOT_ALIASES", '["a", null]', "neither a text nor a number"),
        ("BOT_MAX_STEPS", "0", "Write a number from 1 to 64"),
        ("BOT_MAX_STEPS", "65", "Write a number from 1 to 64"),
        ("GAMES_FILE", "no/such/games.toml", "no/such/games.toml is not there"),
        ("SUBAGENTS_FILE", "no/such/agents.toml", "no/such/agents.toml cannot be read (No such file or directory)"),
        ("TOOLS_DIR", __file__, "cannot be read as a folder"),
        ("LOG_RUNS", str(Path(__file__).parent), "is a folder"),
        ("LLM_API_KEY", "sk-a, Bearer sk-b", "Copy it once more, without “Bearer”"),
        ("LLM_FALLBACKS", "https://b.test/v1", "is not good JSON"),
        ("LLM_FALLBACKS", '[{"base_url": "https://b.test/v1", "api_key": "sk-b"}]', "entry 1 has no model"),
        (
            "LLM_FALLBACKS",
            '[{"base_url": "https://b.test", "model": "b", "dialect": "klingon"}]',
            "has a dialect there is not",
        ),
        (
            "LLM_FALLBACKS",
            '[{"base_url": "https://b.test", "model": "your-model"}]',
            "still has the text of an example",
        ),
        ("LLM_CONTEXT", "8k", "“8k” is not a whole number"),
        ("LLM_PRICES", "no/such/prices.toml", "no/such/prices.toml is not there"),
        ("QWEATHER_JWT_PRIVATE_KEY", "k.pem", "is not an Ed25519 private key"),
        ("QWEATHER_HOST", "http://a b", "is not the name of a host"),
        ("TOOLS_CONTACT", "主人", "a character that is not ASCII"),
        ("BOT_PERSONA", "no/such/file.md", "no/such/file.md cannot be read (No such file or directory)"),
        ("CODER_BASE_URL", "coder", "does not begin with"),
        ("CODER_API_KEY", "你的密钥", "Copy it once more"),
        ("TOOLS_MIRRORS", "a=b", "is not good JSON"),
        ("MEDIA_SEND", "url", "Write one of: base64, file"),
        ("WEB_HOST", "http://0.0.0.0", "is not an address to listen on"),
        ("WEB_PORT", "tcp://10.0.0.7:8080", "enableServiceLinks"),
        ("LOG_LEVEL", "loud", "Write one of: DEBUG, INFO, WARNING, ERROR"),
        ("LOG_FORMAT", "xml", "Write one of: console, json"),
        ("LOG_CONTENT", "maybe", "“maybe” is neither on nor off. Write 1 for on or 0 for off"),
    ],
)
def test_a_bad_value_is_one_clear_problem(name: str, value: str, said: str) -> None:
    [problem] = problems({name: value})
    assert problem.startswith(f"{name}: ")
    assert said in problem


@pytest.mark.parametrize("name", ["LLM_BASE_URL", "LLM_MODEL"])
def test_the_service_needs_a_model(name: str) -> None:
    [problem] = problems({name: ""})
    assert problem.startswith(f"{name}: is not set. Set the ")


def test_qweather_needs_a_host_and_all_of_a_credential() -> None:
    [problem] = problems({"QWEATHER_KEY": "k"})
    assert problem.startswith("QWEATHER_HOST: is not set, but a credential of QWeather is")
    told = problems({"QWEATHER_HOST": "a.qweatherapi.com", "QWEATHER_JWT_PROJECT": "P"})
    assert [line.partition(":")[0] for line in told] == ["QWEATHER_JWT_KEY_ID", "QWEATHER_JWT_PRIVATE_KEY"]


def test_a_host_of_qweather_that_is_not_used_is_told() -> None:
    _, [warning] = load(GOOD | {"QWEATHER_HOST": "a.qweatherapi.com"})
    assert str(warning).startswith("QWEATHER_HOST: is set but not used")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "bot"])
def test_a_server_others_can_reach_needs_a_token_and_says_how_to_make_one(host: str) -> None:
    [problem] = problems({"ONEBOT_ACCESS_TOKEN": "", "ONEBOT_HOST": host})
    assert problem.startswith("ONEBOT_ACCESS_TOKEN: is not set, but others than this machine can reach")
    assert "openssl rand -hex 16" in problem


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_server_of_this_machine_only_needs_no_token(host: str) -> None:
    _, warnings = load(GOOD | {"ONEBOT_ACCESS_TOKEN": "", "ONEBOT_HOST": host})
    assert warnings == ()


def test_forward_needs_an_address_but_no_token() -> None:
    [problem] = problems({"ONEBOT_MODE": "forward"})
    assert problem.startswith("ONEBOT_URL: is not set, but ONEBOT_MODE=forward needs it")
    load(GOOD | {"ONEBOT_MODE": "forward", "ONEBOT_URL": "ws://napcat:3001", "ONEBOT_ACCESS_TOKEN": ""})


def test_a_bad_mode_or_host_does_not_raise_questions_that_hang_on_it() -> None:
    assert len(problems({"ONEBOT_ACCESS_TOKEN": "", "ONEBOT_MODE": "forwrad"})) == 1
    assert len(problems({"ONEBOT_ACCESS_TOKEN": "", "ONEBOT_HOST": "127.0.0.1:6199"})) == 1


def test_persona_and_prompt_together_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "fox.md"
    file.write_text("You are a fox.")
    [problem] = problems({"BOT_PERSONA": str(file), "SYSTEM_PROMPT": "You are a cat."})
    assert problem == "SYSTEM_PROMPT: and BOT_PERSONA both say who the bot is. Keep one of them"


def test_a_persona_file_is_read_checked_and_used(tmp_path: Path) -> None:
    file = tmp_path / "fox.md"
    for content, said in [(b" \n", "is empty"), ("狐".encode("gbk"), "is not UTF-8 text")]:
        file.write_bytes(content)
        [problem] = problems({"BOT_PERSONA": str(file)})
        assert said in problem
    [problem] = problems({"BOT_PERSONA": str(tmp_path)})
    assert "cannot be read (Is a directory)" in problem
    file.write_bytes(b"\xef\xbb\xbf\xe7\x8b\x90\n")
    settings, _ = load(GOOD | {"BOT_PERSONA": str(file)})
    assert read_persona(settings) == "狐"


def test_the_default_persona_is_there() -> None:
    assert read_persona(Settings()) == DEFAULT_PERSONA.read_text("utf-8").strip()
    assert 100 < len(read_persona(Settings())) < 2000


def test_the_media_folder_may_be_missing_but_not_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "media"
    load(GOOD | {"MEDIA_DIR": str(file / "deep" / "down")})
    assert not file.exists()
    file.touch()
    for path in (file, file / "deep"):
        [problem] = problems({"MEDIA_DIR": str(path)})
        assert problem.startswith(f"MEDIA_DIR: {file} is a file")


def test_all_problems_come_at_once_in_the_order_of_the_variables(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("LOG_LEVEL=loud\nLLM_API_KEY=sk-xxxx\nBOT_MAX_STEPS=many\nLLM_MODLE=x\nMEDIA_SEND=url\n")
    with pytest.raises(ConfigError) as caught:
        load_settings(environ={"BOT_OWNER": "1", "BOT_OWNERS": "me"}, env_file=file)
    assert [problem.name for problem in caught.value.problems] == [
        "LLM_BASE_URL",
        "LLM_API_KEY",
        "LLM_MODEL",
        "ONEBOT_ACCESS_TOKEN",
        "BOT_OWNERS",
        "BOT_MAX_STEPS",
        "MEDIA_SEND",
        "LOG_LEVEL",
        "LLM_MODLE",
        "BOT_OWNER",
    ]
    assert all(problem.what and problem.mend for problem in caught.value.problems)


def test_a_misspelt_name_in_the_environment_explains_the_one_that_is_missing() -> None:
    said = problems({"LLM_MODEL": "", "LLM_MODLE": "x", "WEB_SERVICE_PORT": "80"})
    assert [line.partition(":")[0] for line in said] == ["LLM_MODEL", "LLM_MODLE"]
    assert "Did you mean LLM_MODEL?" in said[1]


def test_an_unreadable_file_is_told_alone(tmp_path: Path) -> None:
    [problem] = problems({"LOG_LEVEL": "loud"}, env_file=tmp_path)
    assert "is a folder" in problem


# --- warnings -------------------------------------------------------------------------------------


def test_a_name_in_the_environment_that_nobody_knows_is_a_warning() -> None:
    _, warnings = load(GOOD | {"BOT_SERVICE_HOST": "10.0.0.7", "ONEBOT_TOKEN": "x", "NAPCAT_UID": "0"})
    assert [warning.name for warning in warnings] == ["BOT_SERVICE_HOST", "ONEBOT_TOKEN"]
    assert warnings[1].mend == "Did you mean ONEBOT_ACCESS_TOKEN?"


def test_a_weak_token_is_a_warning_where_others_can_try_it() -> None:
    _, warnings = load(GOOD | {"ONEBOT_ACCESS_TOKEN": "1234567"})
    assert [warning.name for warning in warnings] == ["ONEBOT_ACCESS_TOKEN"]
    assert load(GOOD | {"ONEBOT_ACCESS_TOKEN": "1", "ONEBOT_HOST": "127.0.0.1"})[1] == ()


def test_an_address_that_is_not_used_is_a_warning() -> None:
    _, [warning] = load(GOOD | {"ONEBOT_URL": "ws://napcat:3001"})
    assert warning.name == "ONEBOT_URL"
    assert "ONEBOT_MODE=forward" in warning.mend


# --- chat -----------------------------------------------------------------------------------------


def test_chat_needs_neither_model_nor_token() -> None:
    assert load({}, service=False) == (Settings(), ())


@pytest.mark.parametrize(
    ("environ", "missing"),
    [
        ({"LLM_BASE_URL": "http://localhost/v1"}, "LLM_MODEL"),
        ({"LLM_MODEL": "qwen"}, "LLM_BASE_URL"),
        ({"LLM_API_KEY": "k", "LLM_MODEL": "qwen"}, "LLM_BASE_URL"),
    ],
)
def test_half_a_model_is_refused_in_chat_too(environ: dict[str, str], missing: str) -> None:
    with pytest.raises(ConfigError, match=f"^{missing}: is not set") as caught:
        load(environ, service=False)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("name", ["LLM_MODEL", "ONEBOT_HOST", "UPSTREAM_ENDPOINT", "LLM_TYPO"])
def test_any_name_of_a_model_or_a_onebot_server_makes_it_the_service(tmp_path: Path, name: str) -> None:
    file = tmp_path / ".env"
    assert is_configured({name: "x"}, None)
    assert not is_configured({name: " "}, file)
    file.write_text(f"{name}=x")
    assert is_configured({}, file)


def test_nothing_of_a_model_or_a_onebot_server_makes_it_chat(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("#LLM_MODEL=x\nLLM_MODEL=\nBOT_NAME=fox")
    assert not is_configured({"BOT_NAME": "fox", "LOG_LEVEL": "DEBUG"}, file)


def test_a_file_that_cannot_be_read_is_no_reason_to_chat(tmp_path: Path) -> None:
    assert is_configured({}, tmp_path)
