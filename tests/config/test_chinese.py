"""Each problem of the settings is said wholly in Chinese too: no sentence of it is left in English."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.core.language import Bilingual, Language, text_in
from config import tokens, values
from config.checks import writers_of
from config.endpoints import fallbacks
from config.loading import load_settings
from config.persona_files import MAX_PROMPT, read_personas
from config.tables import read_groups, read_subagents
from frostagent.types.errors import ConfigError, Problem
from tests.cases import each_case
from tests.config.reading import GOOD

ASIDE = re.compile(r"`[^`]*`|\S+://\S+|[A-Z][A-Z0-9]*_[A-Z0-9_]*|\S*/\S*|\.venv/\S+ install -r \S+|pip install \S+")
"""Commands, urls, paths and names of settings, which are the same in both."""
FOUR_WORDS = re.compile(r"[A-Za-z][A-Za-z'-]*(?: +[A-Za-z][A-Za-z'-]*){3}")
HAN = re.compile(r"[\u4e00-\u9fff]")


def check(*lines: str) -> None:
    """Each line is bilingual, and its Chinese is Chinese."""
    for line in lines:
        assert isinstance(line, Bilingual), line
        assert line.zh != str(line)
        assert HAN.search(line.zh), line.zh
        assert not FOUR_WORDS.search(ASIDE.sub("", line.zh)), line.zh


def check_problems(problems: tuple[Problem, ...]) -> None:
    assert problems
    for problem in problems:
        check(problem.what, problem.fix)


@each_case(
    ("read", "bad"),
    [
        (values.check_quotes, ["“霜降"]),
        (values.names, ["[1", "[true]", "[“甲”]", "[" + "9" * 5000 + "]"]),
        (values.qq_numbers, ["abc", "0"]),
        (
            values.base_url,
            [
                *("api.test", "https://", "https://a b", "https://a.test:80a", "https://a.test/?k=1", "https://a..b"),
                "https://me:pass@a.test",
            ],
        ),
        (values.socket_url, ["http://napcat:3001", "ws://napcat/?access_token=x"]),
        (values.origin, ["bot.test", "https://a@bot.test", "https://bot.test/?x", "https://bot.test/a//b"]),
        (values.mirrors, ["{", "[]", '{"a b": "https://b.test"}', '{"a.test": 5}', '{"a.test": "b"}']),
        (values.audiences, ["look", "[]", '{"look": "friends"}']),
        (values.host, ["http://bot"]),
        (values.api_host, ["localhost"]),
        (values.contact, ["主人"]),
        (values.Whole(1, 64), ["x", "65", "tcp://10.0.0.7:6199"]),
        (values.Number(0, 1), ["x", "2"]),
        (values.rate, ["6"]),
        (values.OneOf("", "zh", "en"), ["fr"]),
        (values.switch, ["2"]),
        (values.path, ["~nobody-of-that-name/media"]),
        (values.media_url, ["bot", "http://bot:8080/files"]),
        (values.proxy_address, ["proxy", "fe80::1%eth0", "0.0.0.0"]),
        (values.hours, [5, "22:00", "25:00-26:00"]),
        (values.time_of_day, ["9"]),
        (values.zone, ["Mars"]),
        (values.owners, ["10001:quite", "me"]),
        (
            fallbacks,
            [
                *("x", "{“a”", "{}", "[1]", '[{"modle": "b"}]', '[{"zzz": "b"}]', '[{"model": 1}]', '[{"model": "b"}]'),
                *(
                    '[{"base_url": "b", "model": "b"}]',
                    '[{"base_url": "https://b.test", "model": "b", "context": "x"}]',
                ),
            ],
        ),
    ],
)
def test_a_bad_value_is_told_in_chinese(read: Callable[[Any], object], bad: list[object]) -> None:
    for value in bad:
        with pytest.raises(values.Wrong) as caught:
            read(value)
        check(caught.value.what, caught.value.fix)


@each_case(
    ("read", "bad"),
    [
        (values.database, ["mysql://db"]),
        (values.secret, ["Bearer x"]),
        (values.ed25519_key, ["k.pem"]),
        (values.keys, ["a b", '["a']),
        (values.broker_url, ["http://rabbit"]),
        (tokens.tokens, ["芝麻", "1:a,1:b", "1:,2:a", "1:a,b,c", "1:a,2:a"]),
        (tokens.console_token, ["芝麻", "short"]),
        (tokens.console_totp, ["1", "AAAA"]),
    ],
)
def test_a_bad_secret_is_told_in_chinese(read: Callable[[SecretStr], object], bad: list[str]) -> None:
    for value in bad:
        with pytest.raises(values.Wrong) as caught:
            read(SecretStr(value))
        check(caught.value.what, caught.value.fix)


@each_case(
    "environ",
    [
        {"LLM_BASE_URL": "", "LLM_MODEL": ""},
        {"LLM_BASE_URL": "https://api.example.com/v1", "LLM_API_KEY": "sk-xxxx"},
        {"LLM_FALLBACKS": '[{"base_url": "https://b.test", "model": "your-model", "dialect": "klingon"}]'},
        {"BOT_ROLE": "worker"},
        {"BROKER_URL": "amqp://rabbit/"},
        {"ONEBOT_MODE": "forward"},
        {"ONEBOT_MODE": "forward", "ONEBOT_ACCESS_TOKEN": "1:sesame-sesame,2:open-open-open"},
        {"ONEBOT_ACCESS_TOKEN": ""},
        {"ONEBOT_ACCESS_TOKEN": "abc"},
        {"BOT_NEW_GROUP": "shadow"},
        {"SYSTEM_PROMPT": "x", "BOT_PERSONA": "y"},
        {"BOT_PERSONA": "no/such/file.md"},
        {"BOT_PERSONA": "."},
        {"MEDIA_URL": "http://bot:8080/media", "WEB_PORT": "0", "MEDIA_DIR": __file__},
        {"TOOLS_DIR": __file__, "LOG_RUNS": str(Path(__file__).parent)},
        {"TOOLS_DIR": "no/such", "GAMES_FILE": "no/such.toml", "WORDS_FILE": str(Path(__file__).parent)},
        {"GROUPS_FILE": "no/such.toml", "SUBAGENTS_FILE": "no/such.toml", "PERSONAS_DIR": "no/such"},
        {"QWEATHER_JWT_PROJECT": "p", "QWEATHER_KEY": "k"},
    ],
)
def test_what_is_wrong_only_together_is_told_in_chinese(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(environ=GOOD | environ, env_file=None)
    check_problems(caught.value.problems)


def test_a_doubt_is_told_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("config.checks.is_contained", lambda: False)
    for environ in (
        {"ONEBOT_ACCESS_TOKEN": "short-one", "QWEATHER_HOST": "a.qweatherapi.com", "ONEBOT_URL": "ws://napcat:3001"},
        {"LLM_KEY": "x", "BOT_ZZZ": "x", "ONEBOT_WS_PATH": "/"},
        {"HTTPS_PROXY": "socks5://127.0.0.1:1080"},
        {"WEB_HOST": "0.0.0.0", "CONSOLE_HOST": "0.0.0.0", "CONSOLE_PORT": "8081"},
    ):
        _, doubts = load_settings(environ=GOOD | environ, env_file=None)
        check_problems(doubts)


def test_what_is_wrong_with_an_env_file_is_told_in_chinese(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    for content in (b"not a line\n", b"\xff\xfe", b"BOT_NAEM=x\nBOT_NAME=a\n", None):
        if content is None:
            file.unlink()
            file.mkdir()
        else:
            file.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load_settings(environ=GOOD, env_file=file)
        check_problems(caught.value.problems)


def test_a_line_of_an_env_file_is_named_in_chinese(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("not a line\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(environ=GOOD, env_file=file)
    assert [text_in(Language.CHINESE, problem.name) for problem in caught.value.problems] == [".env 第 1 行"]


def test_what_is_wrong_with_a_group_is_told_in_chinese(tmp_path: Path) -> None:
    file = tmp_path / "groups.toml"
    for text in (
        *("x = 1", "[group]", "group = [1]", "[[group]", "group = '''", "[[group]]\nnumbr = 1"),
        "[[group]]\nnumber = 'a'\nrules = 1\nchance = 2\nday_cost = inf\nquiet = '22:00'\nquiet_mode = 'some'",
        f"[[group]]\nnumber = 0\nchance = -1.0\nrules = '{'r' * 501}'\ntools_audience = 1\nday_cost = 'x'",
        "[[group]]\nnumber = 1\n[[group]]\nnumber = 1\n[[group]]\nnumber = 2\npersona = 'owl'",
    ):
        file.write_text(text, "utf-8")
        check_problems(read_groups(file, {"fox": None})[1])


def test_what_is_wrong_with_a_subagent_is_told_in_chinese(tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    good = '[[subagent]]\nname = "A"\ndescription = "d"\nprompt = "p"\n'
    for text in (
        '[[subagent]]\nname = "A"\n[[subagent]]\nname = "a b"\n',
        good + 'max_steps = 0\ndeadline = 300\nbase_url = "models"\ntools = ["use_subagent"]\napi_key = "a-b"\n',
        good + 'tools = "look"\n',
        good + 'api_key = "NOWHERE"\n' + good + 'api_key = "BAD"\n',
    ):
        file.write_text(text, "utf-8")
        check_problems(read_subagents(file, {"BAD": SecretStr("密钥")})[1])


def test_what_is_wrong_with_a_persona_is_told_in_chinese(tmp_path: Path) -> None:
    for key, text in {
        "empty": "",
        "open": "+++\n",
        "yaml": "---\nname: x\n---\nhi\n",
        "broken": "+++\nname = \n+++\nhi",
        "unclosed": "+++\nname = '''x\n+++\nhi",
        "long": "x" * (MAX_PROMPT + 1),
        "fields": "+++\ntemperature = 3.0\nnmae = 'x'\ngroups = [0]\naliases = ['']\n[[examples]]\nuser = 'a'\n+++\nhi",
        "many": "+++\naliases = [" + "'a', " * 21 + f"]\nname = '{'n' * 25}'\n+++\nhi",
        "fox": "+++\ngroups = [1]\n+++\nhi",
        "owl": "+++\ngroups = [1]\n+++\nhi",
    }.items():
        (tmp_path / f"{key}.md").write_text(text, "utf-8")
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe")
    _, problems = read_personas(tmp_path)
    check_problems(problems)
    assert len(problems) >= 10


def test_who_can_write_a_tool_is_told_in_chinese(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    check(writers_of(tmp_path))
    with pytest.raises(ConfigError) as caught:
        load_settings(environ=GOOD | {"TOOLS_DIR": str(tmp_path)}, env_file=None)
    check_problems(caught.value.problems)


def test_a_bare_line_reads_as_an_operator_would_write_it() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(environ=GOOD | {"BOT_OWNERS": "abc"}, env_file=None)
    (problem,) = caught.value.problems
    assert text_in(Language.CHINESE, problem.what) == "“abc” 不是 QQ 号"
    assert text_in(Language.CHINESE, problem.fix) == "只写号码，比如 10001,10002"
