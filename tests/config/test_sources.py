"""Where settings come from: the environment, the lines of a `.env`, and names nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from config import sources
from config.loading import load_settings
from frostagent.types.errors import ConfigError
from tests.cases import each_case

KNOWN = ("LLM_BASE_URL", "LLM_API_KEY", "LLM_MODEL", "BOT_NAME", "BOT_OWNERS", "SYSTEM_PROMPT")


def lines(tmp_path: Path, content: str | bytes) -> dict[str, str]:
    file = tmp_path / ".env"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return {line.name: line.value for line in sources.read_env_file(file)}


def values_of(environ: dict[str, str], *file: sources.EnvLine) -> dict[str, str]:
    return {name: given.text for name, given in sources.gather(environ, file, KNOWN).items()}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("LLM_MODEL=a", "a"),
        ("LLM_MODEL = a ", "a"),
        ("export LLM_MODEL=a", "a"),
        ("  LLM_MODEL=a   # the cheap one", "a"),
        ("LLM_MODEL='a'", "a"),
        ('LLM_MODEL="a"  # the cheap one', "a"),
        ("LLM_MODEL=a#b", "a#b"),
        ('LLM_MODEL="a #b"', "a #b"),
        ("LLM_MODEL=a$HOME${HOME}", "a$HOME${HOME}"),
        ('LLM_MODEL="a\nb"', "a\nb"),
        (r'LLM_MODEL="a\nb"', "a\nb"),
        ("# LLM_MODEL=b\r\nLLM_MODEL=a\r\n", "a"),
        ("LLM_MODEL=", ""),
        ("LLM_MODEL", ""),
    ],
)
def test_a_line_is_read_as_people_write_it(tmp_path: Path, line: str, value: str) -> None:
    assert lines(tmp_path, line) == {"LLM_MODEL": value}


def test_a_byte_order_mark_does_not_hide_the_first_name(tmp_path: Path) -> None:
    assert lines(tmp_path, b"\xef\xbb\xbfLLM_MODEL=a\r\nBOT_NAME=\xe9\x9c\x9c") == {"LLM_MODEL": "a", "BOT_NAME": "霜"}


def test_no_file_is_no_lines(tmp_path: Path) -> None:
    assert sources.read_env_file(None) == ()
    assert sources.read_env_file(tmp_path / ".env") == ()


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(ConfigError, match=r"folder: is a folder. Remove it and copy .env.example"):
        sources.read_env_file(folder)
    dangling = tmp_path / ".env"
    dangling.symlink_to(tmp_path / "gone")
    with pytest.raises(ConfigError, match=r"\.env: cannot be read \(No such file"):
        sources.read_env_file(dangling)


def test_a_file_of_windows_powershell_is_told_to_be_saved_as_utf_8(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        lines(tmp_path, "LLM_MODEL=a".encode("utf-16"))


def test_every_line_that_is_no_assignment_is_named_by_its_number_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        lines(tmp_path, "LLM_MODEL=a\nLLM_API_KEY sesame\n\n# fine\nBOT_NAME='open sesame\n")
    assert [problem.name for problem in caught.value.problems] == [".env line 2", ".env line 5"]
    assert "sesame" not in str(caught.value)


def test_the_environment_wins_over_the_file() -> None:
    assert values_of({"LLM_MODEL": "environment"}, sources.EnvLine("LLM_MODEL", "file", 1)) == {
        "LLM_MODEL": "environment"
    }


def test_an_empty_value_is_as_good_as_none() -> None:
    assert values_of({"LLM_MODEL": "", "BOT_NAME": "  "}, sources.EnvLine("LLM_MODEL", "file", 1)) == {
        "LLM_MODEL": "file"
    }


def test_the_last_of_two_lines_counts() -> None:
    assert values_of({}, sources.EnvLine("BOT_NAME", "a", 1), sources.EnvLine("BOT_NAME", "b", 2)) == {"BOT_NAME": "b"}


@each_case("line", ["BOT_NAME=“霜降”", "BOT_NAME=「霜降」  # 名字", "BOT_NAME='“霜降”'", "BOT_NAME=＂霜降＂"])
def test_full_width_quotes_around_a_value_are_no_part_of_it(tmp_path: Path, line: str) -> None:
    file = tmp_path / ".env"
    file.write_text(line, "utf-8")
    assert values_of({}, *sources.read_env_file(file)) == {"BOT_NAME": "霜降"}
    name, _, value = line.partition("  #")[0].partition("=")
    assert values_of({name: value.strip("'")}) == {"BOT_NAME": "霜降"}


def test_plain_quotes_that_the_reader_of_a_file_left_are_meant(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("BOT_NAME='\"Frost\"'", "utf-8")
    assert values_of({}, *sources.read_env_file(file)) == {"BOT_NAME": '"Frost"'}


def test_quotes_that_docker_kept_are_taken_off_whole_values_only() -> None:
    kept = {"LLM_API_KEY": '"sk-abc"', "LLM_MODEL": "'a'", "BOT_NAME": '"', "BOT_OWNERS": '"a","b"'}
    assert values_of(kept) == {"LLM_API_KEY": "sk-abc", "LLM_MODEL": "a", "BOT_NAME": '"', "BOT_OWNERS": '"a","b"'}


def test_the_names_of_the_go_frostagent_are_understood() -> None:
    environ = {"UPSTREAM_ENDPOINT": "u", "UPSTREAM_API_KEY": "k", "MODEL_NAME": "m", "SYSTEM_PROMPT": "p"}
    assert sources.gather(environ, (), KNOWN) == {
        "LLM_BASE_URL": sources.Typed("UPSTREAM_ENDPOINT", "u"),
        "LLM_API_KEY": sources.Typed("UPSTREAM_API_KEY", "k"),
        "LLM_MODEL": sources.Typed("MODEL_NAME", "m"),
        "SYSTEM_PROMPT": sources.Typed("SYSTEM_PROMPT", "p"),
    }


def test_our_name_wins_over_the_old_one_wherever_it_is_given() -> None:
    ours = sources.EnvLine("LLM_MODEL", "ours", 1)
    assert values_of({"MODEL_NAME": "theirs"}, ours) == {"LLM_MODEL": "ours"}
    assert values_of({"MODEL_NAME": "theirs", "LLM_MODEL": ""}) == {"LLM_MODEL": "theirs"}


def test_a_name_of_ours_that_is_no_variable_is_refused_in_the_file() -> None:
    file = [
        sources.EnvLine("LLM_MODLE", "a", 3),
        sources.EnvLine("llm_model", "a", 4),
        sources.EnvLine("BOT_ZZZZZZ", "a", 5),
        sources.EnvLine("ONEBOT_WS_PATH", "/ws", 6),
        sources.EnvLine("NAPCAT_UID", "0", 7),
        sources.EnvLine("MODEL_NAME", "a", 8),
    ]
    assert [str(problem) for problem in sources.strange_in_file(file, KNOWN)] == [
        "LLM_MODLE: line 3 of .env sets it, but there is no such variable. Did you mean LLM_MODEL?",
        "llm_model: line 4 of .env sets it, but there is no such variable. Did you mean LLM_MODEL?",
        "BOT_ZZZZZZ: line 5 of .env sets it, but there is no such variable. Remove it; docs/settings.md lists them all",
        "ONEBOT_WS_PATH: line 6 of .env sets it, but there is no such variable. Remove it: any path is accepted now",
    ]


def test_a_name_of_ours_that_is_no_variable_is_noticed_in_the_environment() -> None:
    environ = {"PATH": "/bin", "BOT_SERVICE_HOST": "10.0.0.7", "LLM_MODLE": "a", "BOT_NAME": "fox"}
    found = list(sources.strange_in_environment(environ, KNOWN))
    assert [problem.name for problem in found] == ["BOT_SERVICE_HOST", "LLM_MODLE"]
    assert found[1].fix == "Did you mean LLM_MODEL?"


@each_case(
    ("typed", "meant"),
    [("LLM_KEY", "LLM_API_KEY"), ("LLM_URL", "LLM_BASE_URL"), ("BOT_OWNER", "BOT_OWNERS"), ("LLM_MODELS", "LLM_MODEL")],
)
def test_a_suggestion_is_what_was_most_likely_meant(typed: str, meant: str) -> None:
    [problem] = sources.strange_in_environment([typed], KNOWN)
    assert problem.fix == f"Did you mean {meant}?"


@each_case("family", sources.FAMILIES)
def test_every_family_is_watched(family: str) -> None:
    assert list(sources.strange_in_environment({f"{family}QQQQ": ""}, KNOWN))


def test_a_variable_that_is_given_twice_is_noticed() -> None:
    file = [sources.EnvLine("BOT_NAME", "a", 1), sources.EnvLine("TZ", "x", 2), sources.EnvLine("TZ", "y", 3)]
    assert list(sources.repeated(file, KNOWN)) == []
    [problem] = sources.repeated([*file, sources.EnvLine("BOT_NAME", "b", 9)], KNOWN)
    assert str(problem) == "BOT_NAME: is in .env twice, in lines 1 and 9: the last one counts. Remove the other"


@each_case(
    ("environ", "named"),
    [
        ({"ALL_PROXY": "socks5://127.0.0.1:1080"}, ["ALL_PROXY"]),
        ({"https_proxy": "SOCKS5H://me:secret@127.0.0.1:1080"}, ["https_proxy"]),
        ({"all_proxy": "socks://127.0.0.1:1080", "HTTPS_PROXY": "http://127.0.0.1:7890"}, ["all_proxy"]),
        ({"HTTP_PROXY": "socks5://127.0.0.1:1", "HTTPS_PROXY": "socks5://127.0.0.1:1"}, ["HTTPS_PROXY", "HTTP_PROXY"]),
        ({"HTTPS_PROXY": "socks5://127.0.0.1:1", "https_proxy": "127.0.0.1:7890"}, []),
        ({"ALL_PROXY": "socks5://127.0.0.1:1", "https_proxy": "127.0.0.1:1", "http_proxy": "127.0.0.1:1"}, []),
        ({"all_proxy": " ", "NO_PROXY": "socks.example.org"}, []),
    ],
)
def test_a_socks_proxy_is_told_where_it_would_count(environ: dict[str, str], named: list[str]) -> None:
    problems = list(sources.socks(environ))
    assert [problem.name for problem in problems] == named
    assert "secret" not in str(problems)


ENVIRON = {"LLM_BASE_URL": "https://a.test/v1", "LLM_MODEL": "m"}


@pytest.mark.parametrize("given", ["", "token-of-the-file"])
def test_the_tokens_that_init_made_count_where_nobody_says_otherwise(tmp_path: Path, given: str) -> None:
    file, made = tmp_path / ".env", tmp_path / sources.MADE
    file.write_text(f"ONEBOT_ACCESS_TOKEN={given}\n")
    made.parent.mkdir()
    made.write_text("ONEBOT_ACCESS_TOKEN=token-made-by-init\n")
    settings, warnings = load_settings(environ=ENVIRON, env_file=file)
    assert (settings.onebot_access_token.get_secret_value(), warnings) == (given or "token-made-by-init", ())


def test_tokens_nobody_may_read_are_told_only_where_one_is_missing(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    (tmp_path / sources.MADE).mkdir(parents=True)
    load_settings(environ=ENVIRON | {"ONEBOT_ACCESS_TOKEN": "of-the-environment"}, env_file=file)
    with pytest.raises(ConfigError) as caught:
        load_settings(environ=ENVIRON, env_file=file)
    assert [problem.name for problem in caught.value.problems] == ["ONEBOT_ACCESS_TOKEN", "tokens.env"]
