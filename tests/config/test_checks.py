"""What is refused, alone or only together, and how it is said; what is only doubted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config import checks
from config.checks import writers_of
from frostagent.types.errors import ConfigError
from tests.cases import each_case
from tests.config.reading import GOOD, load, problems


@each_case(
    ("name", "value", "said"),
    [
        ("LLM_BASE_URL", "api.deepseek.com", "does not begin with https:// or http://"),
        ("LLM_BASE_URL", "https://api.example.com/v1", "still has the host of an example"),
        ("LLM_API_KEY", "sk-xxxx", "still has the text of an example"),
        ("LLM_API_KEY", "sk-your-key-here", "still has the text of an example"),
        ("LLM_API_KEY", "<key>", "still has the text of an example"),
        ("LLM_API_KEY", "Bearer sk-abc", "Copy it again, without “Bearer”"),
        ("LLM_MODEL", "your-model", "still has the text of an example"),
        ("ONEBOT_MODE", "forwrad", "“forwrad” is not one of the choices. Write one of: reverse, forward"),
        ("ONEBOT_HOST", "0.0.0.0:6199", "is not an address to listen on"),
        ("ONEBOT_PORT", "65536", "65536 is out of range. Write a number from 0 to 65535"),
        ("ONEBOT_PORT", "tcp://10.0.0.7:6199", "enableServiceLinks"),
        ("ONEBOT_URL", "http://napcat:3001", "does not begin with ws:// or wss://"),
        ("ONEBOT_ACCESS_TOKEN", "CHANGE_ME", "still has the text of an example"),
        ("ONEBOT_ACCESS_TOKEN", "芝麻开门", "a character that is not ASCII"),
        ("ONEBOT_ACCESS_TOKEN", "10001:s3same,10001:sesam3", "has two tokens for account 10001"),
        ("BOT_OWNERS", "10001;me", "“me” is not a QQ number"),
        ("BOT_OWNERS", "10001:quite", "“10001:quite” is not an owner. Write the numbers, e.g. 10001,10002:quiet"),
        ("BOT_GROUPS", "-1", "is not a QQ number"),
        ("BOT_USERS", "[1", "is not good JSON"),
        ("BOT_NAME", "“霜降", "has a “ at one end only"),
        ("LLM_API_KEY", "sk-sesame”", "has a ” at one end only"),
        ("BOT_BLOCK", "1.5", "is not a QQ number"),
        ("BOT_ALIASES", '["a", null]', "neither text nor a number"),
        ("BOT_DAY_COST_ALL", "much", "Write a number from 0 to 1000000, as 0.5"),
        ("BOT_MAX_STEPS", "0", "Write a number from 1 to 64"),
        ("BOT_MAX_STEPS", "65", "Write a number from 1 to 64"),
        ("BOT_RUN_REQUESTS", "-1", "Write a number from 0 to 1000"),
        ("BOT_RUN_TOKENS", "many", "“many” is not a whole number"),
        ("BOT_MAX_SENDS", "101", "Write a number from 0 to 100"),
        ("GAMES_FILE", "no/such/games.toml", "no/such/games.toml is not there"),
        ("SUBAGENTS_FILE", "no/such/agents.toml", "no/such/agents.toml cannot be read (No such file or directory)"),
        ("TOOLS_DIR", __file__, "cannot be read as a folder"),
        ("LOG_RUNS", str(Path(__file__).parent), "is a folder"),
        ("LLM_API_KEY", "sk-a, Bearer sk-b", "Copy it again, without “Bearer”"),
        ("LLM_FALLBACKS", "https://b.test/v1", "is not good JSON"),
        ("LLM_FALLBACKS", '[{"base_url": "https://b.test/v1", "api_key": "sk-b"}]', "entry 1 has no model"),
        (
            "LLM_FALLBACKS",
            '[{"base_url": "https://b.test", "model": "b", "dialect": "klingon"}]',
            "has an unknown dialect",
        ),
        (
            "LLM_FALLBACKS",
            '[{"base_url": "https://b.test", "model": "your-model"}]',
            "still has the text of an example",
        ),
        ("LLM_CONTEXT", "8k", "“8k” is not a whole number"),
        ("LLM_FIRST_TOKEN", "1m", "“1m” is not a number"),
        ("LLM_FIRST_TOKEN", "-1", "Write a number from 0 to 3600"),
        ("LLM_PRICES", "no/such/prices.toml", "no/such/prices.toml is not there"),
        ("QWEATHER_JWT_PRIVATE_KEY", "k.pem", "is not an Ed25519 private key"),
        ("QWEATHER_HOST", "http://a b", "is not the name of a host"),
        ("TOOLS_CONTACT", "主人", "a character that is not ASCII"),
        ("BOT_PERSONA", "no/such/file.md", "no/such/file.md cannot be read (No such file or directory)"),
        ("CODER_BASE_URL", "coder", "does not begin with"),
        ("CODER_API_KEY", "你的密钥", "Copy it again"),
        ("TOOLS_MAX_CALLS", "0", "1"),
        ("TOOLS_MIRRORS", "a=b", "is not good JSON"),
        ("MEDIA_SEND", "url", "Write one of: base64, file"),
        ("MEDIA_URLS", "no", "Write one of: fetch, pass"),
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


@each_case("name", ["LLM_BASE_URL", "LLM_MODEL"])
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


@each_case("host", ["0.0.0.0", "::", "192.168.1.5", "bot"])
def test_a_server_others_can_reach_needs_a_token_and_says_how_to_make_one(host: str) -> None:
    [problem] = problems({"ONEBOT_ACCESS_TOKEN": "", "ONEBOT_HOST": host})
    assert problem.startswith("ONEBOT_ACCESS_TOKEN: is not set, but other machines can reach")
    assert "openssl rand -hex 16" in problem


@each_case("host", ["127.0.0.1", "::1", "localhost"])
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


def test_a_shadow_everywhere_needs_an_owner_who_reads_its_drafts() -> None:
    shadow = {"BOT_NEW_GROUP": "shadow"}
    [problem] = problems(shadow)
    assert problem.startswith("BOT_OWNERS: is empty, but with BOT_NEW_GROUP=shadow")
    [problem] = problems({**shadow, "BOT_OWNERS": "me"})
    assert "is not a QQ number" in problem
    assert load({**GOOD, **shadow, "BOT_OWNERS": "999"})
    assert load({**GOOD, **shadow}, service=False)


def test_links_that_are_summed_up_need_sites_and_pages_that_can_be_read() -> None:
    reading = {"SEARCH_KIND": "none"}
    [problem] = problems({**reading, "BOT_LINKS": "auto"})
    assert problem.startswith("BOT_LINKS_SITES: is empty, but BOT_LINKS=auto sums up only links to its sites. List")
    [problem] = problems({"BOT_LINKS": "ask"})
    assert problem.startswith("BOT_LINKS: is ask, but reading pages is off. Set SEARCH_KEY")
    [problem] = problems({**reading, "BOT_LINKS": "auto", "BOT_LINKS_SITES": "https://a.example/"})
    assert "is not a host" in problem
    [problem] = problems({**reading, "BOT_LINKS": "auto", "BOT_LINKS_SITES": "com"})
    assert "is not a host" in problem
    [problem] = problems({**reading, "BOT_LINKS": "yes"})
    assert "Write one of: off, ask, auto" in problem
    auto = {"BOT_LINKS": "auto", "BOT_LINKS_SITES": "a.example"}
    assert load({**GOOD, **reading, **auto})
    assert load({**GOOD, "SEARCH_KEY": "tvly-1", **auto})
    assert load({**GOOD, "SEARCH_URL": "http://searxng:8080", "BOT_LINKS": "ask"})
    assert load({**GOOD, **auto}, service=False)  # the chat has a web of its own


def test_persona_and_prompt_together_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "fox.md"
    file.write_text("You are a fox.")
    [problem] = problems({"BOT_PERSONA": str(file), "SYSTEM_PROMPT": "You are a cat."})
    assert problem == "SYSTEM_PROMPT: and BOT_PERSONA both say who the bot is. Keep one of them"


def test_the_media_folder_may_be_missing_but_not_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "media"
    load(GOOD | {"MEDIA_DIR": str(file / "deep" / "down")})
    assert not file.exists()
    file.touch()
    for path in (file, file / "deep"):
        [problem] = problems({"MEDIA_DIR": str(path)})
        assert problem.startswith(f"MEDIA_DIR: {file} is a file")


def test_a_weak_token_is_a_warning_where_others_can_try_it() -> None:
    _, warnings = load(GOOD | {"ONEBOT_ACCESS_TOKEN": "12345678"})
    assert [warning.name for warning in warnings] == ["ONEBOT_ACCESS_TOKEN"]
    assert load(GOOD | {"ONEBOT_ACCESS_TOKEN": "1", "ONEBOT_HOST": "127.0.0.1"})[1] == ()


def test_a_token_that_is_guessed_in_an_hour_is_refused_where_others_can_try_it() -> None:
    forward = {"ONEBOT_MODE": "forward", "ONEBOT_URL": "ws://napcat:3001"}
    for given in ({"ONEBOT_HOST": "0.0.0.0"}, forward):
        for token in ("abc", "1234567", "10001:abcdefghijklmnop1,10002:short" if given != forward else "10001:short"):
            [problem] = problems({**given, "ONEBOT_ACCESS_TOKEN": token})
            assert problem.startswith("ONEBOT_ACCESS_TOKEN: has fewer than 8 characters")
            assert "openssl rand -hex 16" in problem
    load(GOOD | {"ONEBOT_ACCESS_TOKEN": "abc", "ONEBOT_HOST": "127.0.0.1"})
    load(GOOD | {**forward, "ONEBOT_URL": "ws://127.0.0.1:3001", "ONEBOT_ACCESS_TOKEN": "abc"})
    assert load(GOOD | {"ONEBOT_ACCESS_TOKEN": "abc"}, service=False)


def test_an_address_that_is_not_used_is_a_warning() -> None:
    _, [warning] = load(GOOD | {"ONEBOT_URL": "ws://napcat:3001"})
    assert warning.name == "ONEBOT_URL"
    assert "ONEBOT_MODE=forward" in warning.fix


@each_case(
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


# --- what others could do -------------------------------------------------------------------------

LONG, SHORT = "sixteen-letters!", "fifteen-letters"


@pytest.mark.parametrize(
    ("set_to", "warned"),
    [
        ({"ONEBOT_HOST": "0.0.0.0", "ONEBOT_ACCESS_TOKEN": SHORT}, {"ONEBOT_ACCESS_TOKEN"}),
        ({"ONEBOT_HOST": "0.0.0.0", "ONEBOT_ACCESS_TOKEN": LONG}, set()),
        ({"ONEBOT_HOST": "127.0.0.1", "ONEBOT_ACCESS_TOKEN": SHORT}, set()),
        (
            {"ONEBOT_MODE": "forward", "ONEBOT_URL": "ws://napcat:3001", "ONEBOT_ACCESS_TOKEN": SHORT},
            {"ONEBOT_ACCESS_TOKEN"},
        ),
        ({"ONEBOT_MODE": "forward", "ONEBOT_URL": "ws://127.0.0.1:3001", "ONEBOT_ACCESS_TOKEN": SHORT}, set()),
        ({"WEB_HOST": "0.0.0.0"}, {"WEB_HOST"}),
        ({"WEB_HOST": "::1"}, set()),
        ({"WEB_HOST": "0.0.0.0", "WEB_PORT": "0"}, set()),
        ({"CONSOLE_HOST": "0.0.0.0"}, set()),
        ({"CONSOLE_HOST": "0.0.0.0", "CONSOLE_PORT": "8090"}, {"CONSOLE_HOST"}),
        ({"CONSOLE_HOST": "0.0.0.0", "CONSOLE_PORT": "8090", "CONSOLE_ORIGIN": "https://b.test"}, set()),
    ],
)
def test_what_others_can_reach_is_doubted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, set_to: dict[str, str], warned: set[str]
) -> None:
    monkeypatch.setattr(checks, "CONTAINERS", (tmp_path / "none",))
    _, warnings = load(GOOD | set_to)
    assert {problem.name for problem in warnings} == warned


def test_in_a_container_who_reaches_the_web_server_is_said_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(checks, "CONTAINERS", (tmp_path / "none", tmp_path))
    assert load(GOOD | {"WEB_HOST": "0.0.0.0"})[1] == ()


@pytest.mark.parametrize(
    ("place", "mode", "who"),
    [
        (".", 0o777, "everyone"),
        (".", 0o1777, "everyone"),
        pytest.param(".", 0o775, "the group 4711", marks=pytest.mark.system),
        ("tool.py", 0o646, "everyone"),
        ("deep/part.py", 0o666, "everyone"),
    ],
)
def test_a_folder_of_tools_that_others_can_write_is_refused(tmp_path: Path, place: str, mode: int, who: str) -> None:
    folder = tmp_path / "tools"
    (folder / "deep").mkdir(parents=True)
    for name in ("tool.py", "deep/part.py"):
        (folder / name).touch()
        (folder / name).chmod(0o644)
    for path in (folder, folder / "deep"):
        path.chmod(0o755)
    assert load(GOOD | {"TOOLS_DIR": str(folder)})[0].tools_dir == folder
    if "group" in who:
        if os.geteuid():
            pytest.skip("only root gives a folder to another group")
        os.chown(folder, -1, 4711)
    (folder / place).chmod(mode)
    (said,) = problems({"TOOLS_DIR": str(folder)})
    assert (
        f"TOOLS_DIR: {folder / place} can be written by {who}, and anyone who can write there controls the bot" in said
    )


def test_a_folder_of_tools_that_is_mounted_read_only_may_be_anybodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my-tools"
    folder.mkdir()
    folder.chmod(0o777)
    (said,) = problems({"TOOLS_DIR": str(folder)})
    assert "can be written by everyone" in said
    here = os.statvfs(folder)
    read_only = os.statvfs_result((*here[:8], here.f_flag | os.ST_RDONLY, *here[9:]))
    monkeypatch.setattr(os, "statvfs", lambda _path: read_only)
    assert load(GOOD | {"TOOLS_DIR": str(folder)})[0].tools_dir == folder


@pytest.mark.system
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_tool_of_another_account_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "tool.py").touch()
    for path in (folder, folder / "tool.py"):
        path.chmod(0o755)
    os.chown(folder / "tool.py", 4711, 4711)
    (said,) = problems({"TOOLS_DIR": str(folder)})
    assert f"{folder}/tool.py can be written by the account 4711" in said


def test_what_cannot_be_looked_at_has_no_writers(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert writers_of(tmp_path / "link") == ""
