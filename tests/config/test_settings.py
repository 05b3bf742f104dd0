"""The settings: what arrives in which field, and who the bot is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from config.settings import DEFAULT_PERSONA, KNOWN, Settings, read_persona
from frostagent.types.errors import ConfigError
from tests.config.reading import GOOD, SIGNING_KEY, load, problems

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
    "LLM_FIRST_TOKEN": ("0.5", 0.5),
    "LLM_PARALLEL": ("1", 1),
    "ONEBOT_MODE": ("Forward", "forward"),
    "ONEBOT_HOST": ("[::1]", "::1"),
    "ONEBOT_PORT": ("6200", 6200),
    "ONEBOT_URL": ("ws://napcat:3001", "ws://napcat:3001"),
    "ONEBOT_ACCESS_TOKEN": ("t1-of-16-letters", SecretStr("t1-of-16-letters")),
    "BOT_NAME": ("Frost Fox", "Frost Fox"),
    "BOT_ALIASES": ("霜降狐，霜降", ("霜降狐", "霜降")),
    "BOT_LANGUAGE": ("en", "en"),
    "BOT_ROLE": ("Worker", "worker"),
    "BROKER_URL": ("amqp://a:b@queue/", SecretStr("amqp://a:b@queue/")),
    "BROKER_PARTITIONS": ("16", 16),
    "BOT_OWNERS": ("[10001]", {10001}),
    "BOT_NEW_GROUP": ("Off", "off"),
    "BOT_GROUPS": ("1 2", {1, 2}),
    "BOT_USERS": ("3", {3}),
    "BOT_BLOCK": ("4,5", {4, 5}),
    "BOT_ROBOTS": ("6,7", {6, 7}),
    "BOT_PREFIXES": ("/ai ！", ("/ai", "！")),
    "BOT_ACCEPT": ("friends", "friends"),
    "BOT_AT_ALL": ("on", True),
    "BOT_DIGEST": ("8:30", 30600.0),
    "BOT_RECAP": ("9：05", "09:05"),
    "BOT_CHANCE": ("0.02", 0.02),
    "BOT_APPLICANTS": ("Ask", "ask"),
    "BOT_CHIME_IN": ("0.5", 0.5),
    "BOT_POKE": ("Model", "model"),
    "BOT_STALE": ("60", 60.0),
    "BOT_STEER": ("0", False),
    "BOT_MEMORY": ("0", False),
    "BOT_REMINDERS": ("0", False),
    "LLM_CHEAP_MODEL": ("small", "small"),
    "BOT_LOOP": ("0", 0),
    "BOT_QUIET": ("23:30-07:30，12:00 ～ 13:30", ((1410, 450), (720, 810))),
    "BOT_QUIET_MODE": ("All", "all"),
    "BOT_USER_RATE": ("3 / 30", (3, 30.0)),
    "BOT_GROUP_RATE": ("0", None),
    "BOT_DEBOUNCE": ("0", 0.0),
    "BOT_SCOPE": ("Member", "member"),
    "BOT_LANE": ("100", 100),
    "BOT_MAX_STEPS": ("64", 64),
    "BOT_RUN_REQUESTS": ("40", 40),
    "BOT_RUN_TOKENS": ("200000", 200_000),
    "BOT_MAX_SENDS": ("3", 3),
    **{f"BOT_DAY_COST_{whose}": ("0.5", 0.5) for whose in ("USER", "GROUP", "ALL")},
    **{f"BOT_DAY_TOKENS_{whose}": ("200000", 200_000) for whose in ("USER", "GROUP", "ALL")},
    "BOT_HISTORY_TOKENS": ("500", 500),
    "BOT_SEND_RATE": ("0.5", 0.5),
    "BOT_SEND_BURST": ("5", 5),
    "BOT_PACE": ("0", False),
    "CODER_BASE_URL": ("https://coder.test/v1", "https://coder.test/v1"),
    "CODER_API_KEY": ("k2", SecretStr("k2")),
    "CODER_MODEL": ("coder", "coder"),
    "STT_BASE_URL": ("https://stt.test/v1", "https://stt.test/v1"),
    "STT_API_KEY": ("k6", SecretStr("k6")),
    "STT_MODEL": ("small", "small"),
    "STORE_URL": ("postgresql://u:p@db/frost", SecretStr("postgresql://u:p@db/frost")),
    "STORE_KEEP_DAYS": ("0", 0),
    "STORE_KEEP_MESSAGES": ("5000", 5000),
    "TOOLS_DENY": ("get_weather，send_message", ("get_weather", "send_message")),
    "TOOLS_APPROVE": ('["use_subagent"]', ("use_subagent",)),
    "TOOLS_AUDIENCE": ('{"look": "owner"}', {"look": "owner"}),
    "TOOLS_GROUP": ("1", True),
    "TOOLS_MAX_CALLS": ("4", 4),
    "TOOLS_MIRRORS": ('{"a.test": "https://b.test"}', {"a.test": "https://b.test"}),
    "TOOLS_CONTACT": ("bot@example.com", "bot@example.com"),
    "SEARCH_URL": ("http://searxng:8080/", "http://searxng:8080"),
    "SEARCH_KEY": ("tvly-1", SecretStr("tvly-1")),
    "SEARCH_KIND": ("Brave", "brave"),
    "SEARCH_PRICE": ("8", 8.0),
    "BOT_LINKS": ("Auto", "auto"),
    "BOT_LINKS_SITES": ("WWW.a.test， b.test a.test", ("a.test", "b.test")),
    "BOT_LINKS_DAY": ("10", 10),
    "QWEATHER_HOST": ("https://abc.def.qweatherapi.com/", "abc.def.qweatherapi.com"),
    "QWEATHER_KEY": ("k3", SecretStr("k3")),
    "QWEATHER_JWT_PROJECT": ("P1", "P1"),
    "QWEATHER_JWT_KEY_ID": ("K1", "K1"),
    "QWEATHER_JWT_PRIVATE_KEY": (SIGNING_KEY, SecretStr(SIGNING_KEY)),
    "AMAP_KEY": ("k4", SecretStr("k4")),
    "MEDIA_SEND": ("FILE", "file"),
    "MEDIA_URLS": ("Pass", "pass"),
    "MEDIA_URL": ("http://127.0.0.1:8081/media/", "http://127.0.0.1:8081/media"),
    "WEB_HOST": ("[::1]", "::1"),
    "WEB_PORT": ("8081", 8081),
    "CONSOLE_HOST": ("[::1]", "::1"),
    "CONSOLE_PORT": ("8090", 8090),
    "CONSOLE_TOKEN": ("0123456789abcdef0123456789abcdef", SecretStr("0123456789abcdef0123456789abcdef")),
    "CONSOLE_TOTP": ("abcd efgh " * 4, SecretStr("ABCDEFGH" * 4)),
    "CONSOLE_PROXY": ("[::1]", "::1"),
    "CONSOLE_ORIGIN": ("https://bot.example.com/x/", "https://bot.example.com/x"),
    "LOG_LEVEL": ("warn", "WARNING"),
    "LOG_FORMAT": ("JSON", "json"),
    "LOG_CONTENT": ("on", True),
    "TZ": (" :Asia/Shanghai", ":Asia/Shanghai"),
}
"""What a person types for each variable, and what it is; those that name files are in the test."""


def test_every_variable_arrives_in_its_field(tmp_path: Path) -> None:
    persona = tmp_path / "fox.md"
    persona.write_text("You are a fox.")
    rows = tmp_path / "subagents.toml"
    rows.touch()
    servers = tmp_path / "mcp.json"
    servers.write_text('{"mcpServers": {}}')
    table = TYPED | {
        **dict.fromkeys(("LLM_PRICES", "BOT_PERSONA", "GAMES_FILE", "LOG_RUNS"), (str(persona), persona)),
        **dict.fromkeys(("SUBAGENTS_FILE", "GROUPS_FILE", "WORDS_FILE"), (str(rows), rows)),
        "MCP_FILE": (str(servers), servers),
        **dict.fromkeys(("TOOLS_DIR", "PERSONAS_DIR", "MEDIA_DIR"), (str(tmp_path), tmp_path)),
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
    assert read_persona(settings).prompt == "狐"


def test_the_default_persona_is_there() -> None:
    assert read_persona(Settings()).prompt == DEFAULT_PERSONA.read_text("utf-8").strip()
    assert 100 < len(read_persona(Settings()).prompt) < 2000


def test_a_built_in_persona_has_the_name_it_has_in_a_checkout_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fox = Settings(bot_persona=Path("config/personas/fox.zh.md"))
    assert read_persona(fox).key == "fox.zh"
    for missing in ("config/personas/wolf.md", "personas/fox.zh.md", "fox.zh.md"):
        with pytest.raises(ConfigError, match=f"{missing} cannot be read"):
            read_persona(Settings(bot_persona=Path(missing)))
    own = tmp_path / "config" / "personas" / "fox.zh.md"
    own.parent.mkdir(parents=True)
    own.write_text("狐", "utf-8")
    assert read_persona(fox).prompt == "狐"
