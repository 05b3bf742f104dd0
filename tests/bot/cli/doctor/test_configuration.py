"""The settings and the token."""

from __future__ import annotations

from pathlib import Path

from bot.cli.checks import Outcome
from bot.cli.doctor.configuration import check_settings, check_token
from tests.bot.cli.doctor.surroundings import TOKEN, problems, settings_of
from tests.cases import each_case

GOOD = {"LLM_BASE_URL": "http://127.0.0.1:9/v1", "LLM_MODEL": "m", "ONEBOT_ACCESS_TOKEN": TOKEN}


def test_good_settings_are_told_to_be_good() -> None:
    settings, told = check_settings(environ=GOOD, env_file=None)
    assert settings is not None
    assert [(check.name, check.outcome) for check in told] == [("settings", Outcome.OK), ("token", Outcome.OK)]


def test_every_problem_is_told_at_once_under_the_name_that_was_typed() -> None:
    settings, told = check_settings(environ=GOOD | {"LLM_MODEL": "", "ONEBOT_PORT": "many"}, env_file=None)
    assert settings is None
    assert [check.said.split()[0] for check in problems(told)] == ["LLM_MODEL", "ONEBOT_PORT"]
    assert all(check.fix for check in told)


def test_what_is_set_in_vain_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("ONEBOT_URL=ws://napcat:3001\n")
    _, told = check_settings(environ=GOOD, env_file=file)
    (doubt,) = [check for check in told if check.outcome is Outcome.WARNING]
    assert doubt.said == "ONEBOT_URL is set but not used"


def test_a_socks_proxy_is_a_warning_that_names_what_to_set() -> None:
    _, told = check_settings(environ=GOOD | {"all_proxy": "socks5://127.0.0.1:1080"}, env_file=None)
    (doubt,) = [check for check in told if check.outcome is Outcome.WARNING]
    assert doubt.said.startswith("all_proxy names a SOCKS proxy")
    assert "HTTPS_PROXY" in doubt.fix


def test_of_several_tokens_the_shortest_is_told_and_each_must_be_good() -> None:
    check = check_token(settings_of(GOOD | {"ONEBOT_ACCESS_TOKEN": "10001:abcdefghijklmnop,mnopqrstuvwxyzabc"}))
    assert (check.outcome, check.said) == (Outcome.OK, "has 16 characters; accounts with their own token: 10001")
    check = check_token(settings_of(GOOD | {"ONEBOT_ACCESS_TOKEN": "10001:abcdefghijklmnop,aaaaaaaaaaaaaaaaa"}))
    assert check.outcome is Outcome.WARNING


@each_case("token", ["abc12345", "aaaaaaaaaaaaaaaa", "1212121212"])
def test_a_token_that_is_easy_to_guess_is_told_once(token: str) -> None:
    _, told = check_settings(environ=GOOD | {"ONEBOT_ACCESS_TOKEN": token}, env_file=None)
    (doubt,) = [check for check in told if check.outcome is not Outcome.OK]
    assert (doubt.name, doubt.outcome) == ("token", Outcome.WARNING)
    assert token not in doubt.said
    assert "openssl rand" in doubt.fix


def test_no_token_on_loopback_is_a_warning() -> None:
    check = check_token(settings_of(GOOD | {"ONEBOT_ACCESS_TOKEN": "", "ONEBOT_HOST": "127.0.0.1"}))
    assert check.outcome is Outcome.WARNING


@each_case(("proxy", "is_near"), [("127.0.0.1", True), ("::1", True), ("172.18.0.2", False)])
def test_the_proxy_that_is_believed_is_told_in_one_line_with_what_it_must_do(proxy: str, is_near: bool) -> None:
    _, told = check_settings(environ=GOOD | {"CONSOLE_PROXY": proxy}, env_file=None)
    _, _, check = told
    assert (check.name, check.outcome) == ("console proxy", Outcome.OK)
    assert check.said.startswith(
        f"{proxy} is trusted to name the visitor: it must set X-Forwarded-For itself, or anyone"
    )
    assert ("process on this machine or tunnel" in check.said) == is_near
    assert ("本机" in check.said.zh) == is_near
    assert check.said.zh.startswith(f"采信 {proxy} 说的来访地址")


def test_a_proxy_of_this_machine_is_known_as_one_where_ipv6_carries_its_address() -> None:
    _, told = check_settings(environ=GOOD | {"CONSOLE_PROXY": "::ffff:127.0.0.1"}, env_file=None)
    assert told[-1].said.startswith("127.0.0.1 is trusted")
    assert "process on this machine or tunnel" in told[-1].said


def test_what_is_wrong_with_a_setting_is_told_in_both_languages(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("LLM_KEY=x\nLLM_BASE_URL=http:///v1\n")
    settings, told = check_settings(environ={"LLM_MODEL": "m", "ONEBOT_ACCESS_TOKEN": TOKEN}, env_file=env_file)
    assert settings is None
    assert [(check.said.zh, check.fix.zh) for check in told] == [
        ("LLM_BASE_URL 没有域名", "写成 https://api.example.com/v1"),
        ("LLM_KEY .env 第 1 行设置了它，但没有这个配置项", "是不是想写 LLM_API_KEY？"),
    ]
