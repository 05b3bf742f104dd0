"""What people type, and what they are told when it cannot be used."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from config import values
from config.endpoints import fallbacks
from config.values import Wrong, hours, owners, time_of_day, zone
from tests.cases import each_case

NO_HOSTS = ("a..b", ".a", "a..", "x" * 64, "x" * 64 + ".example.com", ".".join(["x" * 60] * 5), "-a", "a-", "a%2eb")
HOSTS = ("napcat", "frost_napcat_1", "a.b-c.example.com", "x" * 63, "napcat.", "127.0.0.1", "[::1]", "[fe80::1%25eth0]")


@each_case(
    "text",
    ["a,b,c", "a b c", "a, b ,c,", "a，b、c", "a；b;c", "a\nb\tc", '["a", "b", "c"]', ' ["a","b","c"]', "a,b,a,c"],
)
def test_a_list_is_read_however_it_is_separated(text: str) -> None:
    assert values.names(text) == ("a", "b", "c")


def test_a_json_list_keeps_the_spaces_inside_its_items() -> None:
    assert values.names('["Frost Fox", "霜降狐"]') == ("Frost Fox", "霜降狐")


def test_a_list_may_be_given_as_one() -> None:
    assert values.names(["a", " b ", ""]) == ("a", "b")
    assert values.qq_numbers((10001, "10002")) == {10001, 10002}
    assert values.qq_numbers(10001) == {10001}


@given(st.lists(st.integers(min_value=1, max_value=10**11)), st.sampled_from([",", " ", "，", "、", ", ", "\n"]))
def test_any_list_of_qq_numbers_comes_back(numbers: list[int], separator: str) -> None:
    assert values.qq_numbers(separator.join(map(str, numbers))) == frozenset(numbers)
    assert values.qq_numbers(str(numbers)) == frozenset(numbers)


@each_case(
    ("text", "what"),
    [
        ("10001,abc", "“abc” is not a QQ number"),
        ("0", "“0” is not a QQ number"),
        ("-5", "“-5” is not a QQ number"),
        ("1.5", "“1.5” is not a QQ number"),
        ("١٢٣", "“١٢٣” is not a QQ number"),
        ("9" * 5000, "is not a QQ number"),
        (str(2**63), "is not a QQ number"),
        ("[10001", "is not good JSON"),
        ("[true]", "neither text nor a number"),
        ("[[1]]", "neither text nor a number"),
        ('[{"a": 1}]', "neither text nor a number"),
    ],
)
def test_what_is_no_qq_number_is_named(text: str, what: str) -> None:
    with pytest.raises(Wrong, match=what):
        values.qq_numbers(text)


@each_case(
    ("text", "url"),
    [
        ("", ""),
        ("https://api.example.com/v1", "https://api.example.com/v1"),
        ("https://api.example.com/v1/", "https://api.example.com/v1"),
        ("https://api.example.com/v1/chat/completions", "https://api.example.com/v1"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("HTTP://localhost:11434/v1", "HTTP://localhost:11434/v1"),
    ],
)
def test_a_base_url_ends_where_the_client_goes_on(text: str, url: str) -> None:
    assert values.base_url(text) == url


@each_case(
    ("text", "what"),
    [
        ("api.example.com/v1", "does not begin with https:// or http://"),
        ("ftp://api.example.com", "does not begin with"),
        ("https:///v1", "has no host"),
        ("https://接口.example.com", "a character that is not allowed in a URL"),
        ("https://api.example.com /v1", "has a space"),
        ("https://api.example.com:80a", "address or port"),
        ("https://api.example.com:70000", "address or port"),
        ("https://[::1", "address or port"),
        ("https://api.example.com/v1?key=1", r"\? or #"),
        ("https://api.example.com/v1#", r"\? or #"),
        ("https://me:sesame@api.example.com", "name or password"),
        *((f"https://{host}:8080/v1", "has an impossible host name") for host in NO_HOSTS),
    ],
)
def test_a_bad_base_url_is_told_without_repeating_it(text: str, what: str) -> None:
    with pytest.raises(Wrong, match=what) as caught:
        values.base_url(text)
    assert "sesame" not in str(caught.value)


def test_a_socket_url_is_one_of_a_websocket() -> None:
    assert values.socket_url("") == ""
    assert values.socket_url("wss://napcat:3001/onebot?x=1") == "wss://napcat:3001/onebot?x=1"
    with pytest.raises(Wrong, match="does not begin with ws:// or wss://"):
        values.socket_url("http://napcat:3001")


@each_case("host", HOSTS)
def test_a_socket_url_has_a_host_that_can_be_looked_up(host: str) -> None:
    """Python itself raises a UnicodeError for the others, in the middle of a connection."""
    url = f"ws://{host}:3001/event"
    assert values.socket_url(url) == url


@each_case("host", NO_HOSTS)
def test_a_socket_url_of_no_host_is_refused(host: str) -> None:
    with pytest.raises(Wrong, match="has an impossible host name"):
        values.socket_url(f"ws://{host}:3001")


def test_a_token_in_a_socket_url_is_sent_to_its_own_variable() -> None:
    with pytest.raises(Wrong, match="ONEBOT_ACCESS_TOKEN") as caught:
        values.socket_url("ws://napcat:3001/?access_token=sesame")
    assert "sesame" not in str(caught.value)


@each_case(
    ("text", "what"),
    [
        ('["look"]', "is not a JSON object"),
        ('{"look": "friends"}', "“look” is for “friends”"),
        ("look", "is not good JSON"),
    ],
)
def test_a_tool_is_for_people_there_are(text: str, what: str) -> None:
    with pytest.raises(Wrong, match=what):
        values.audiences(text)


def test_mirrors_are_hosts_and_base_urls() -> None:
    assert values.mirrors('{"API.example.com": "http://127.0.0.1:8000/x/"}') == {
        "api.example.com": "http://127.0.0.1:8000/x"
    }
    assert values.mirrors({}) == {}


@each_case(
    ("text", "what"),
    [
        ("{", "is not good JSON"),
        ("[]", "is not a JSON object"),
        ('{"https://a.example.com": "https://b.example.com"}', "is not a host"),
        ('{"a.example.com": 5}', "no URL as text"),
        ('{"a.example.com": "b.example.com"}', "does not begin with"),
    ],
)
def test_a_bad_mirror_is_told(text: str, what: str) -> None:
    with pytest.raises(Wrong, match=what):
        values.mirrors(text)


def test_a_host_is_an_address_or_a_name() -> None:
    for text in ("0.0.0.0", "::", "127.0.0.1", "bot", "my-bot.local"):
        assert values.host(text) == text
    assert values.host("[::1]") == "::1"
    for text in (
        "http://bot",
        "127.0.0.1:6199",
        "a b",
        "机器人",
        "-x",
        "a..b",
        "x" * 64,
        "bot.",
        "[::1",
        "::1]",
        "[bot]",
    ):
        with pytest.raises(Wrong, match="not an address to listen on"):
            values.host(text)


def test_loopback_is_what_only_this_machine_reaches() -> None:
    assert all(map(values.is_loopback, ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost"]))
    assert not any(map(values.is_loopback, ["0.0.0.0", "::", "192.168.1.2", "bot"]))


def test_a_secret_is_one_word_of_ascii_and_never_repeated() -> None:
    assert values.secret(SecretStr("sk-abc")).get_secret_value() == "sk-abc"
    for text in ("Bearer sesame", "sesame\nsesame", "sesame\x7f", "芝麻sesame"):
        with pytest.raises(Wrong, match="Copy it again") as caught:
            values.secret(SecretStr(text))
        assert "sesame" not in str(caught.value)


def test_a_whole_number_stays_within_its_range() -> None:
    read = values.Whole(1, 64)
    assert [read("1"), read("64"), read(12)] == [1, 64, 12]
    for text in ("0", "65", "-1"):
        with pytest.raises(Wrong, match="out of range"):
            read(text)
    for text in ("", "12.0", "1e3", "twelve", "9" * 5000, "١٢"):
        with pytest.raises(Wrong, match="not a whole number"):
            read(text)


def test_a_port_that_kubernetes_set_is_explained() -> None:
    with pytest.raises(Wrong, match="enableServiceLinks"):
        values.Whole(0, 65535)("tcp://10.0.0.7:6199")


def test_a_choice_is_read_in_any_case_and_its_choices_are_listed() -> None:
    read = values.OneOf("DEBUG", "WARNING", warn="WARNING")
    assert [read("debug"), read("Warning"), read("WARN")] == ["DEBUG", "WARNING", "WARNING"]
    with pytest.raises(Wrong, match="Write one of: DEBUG, WARNING"):
        read("loud")


def test_a_path_may_begin_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert values.path("~/media") == tmp_path / "media"
    assert values.path(Path("data")) == Path("data")
    with pytest.raises(Wrong, match="no home folder"):
        values.path("~nobody-of-that-name/media")


def test_a_long_value_is_quoted_in_part() -> None:
    assert len(values.shown("x y " * 100)) == 42


@each_case("key", ["sk-secret", "sk-5E5AME-secret", "0123456789abcdef", "eyJhbGciOiJFZERTQSJ9.e30", "AIza" * 9])
def test_what_may_be_a_key_in_the_wrong_line_is_not_repeated(key: str) -> None:
    assert key[:12] not in values.shown(key) + values.shown_path(Path(key))
    with pytest.raises(Wrong) as caught:
        values.OneOf("reverse", "forward")(f"reverse {key}")
    assert "“reverse ***" in str(caught.value)


@each_case("text", ["revers", "10001x", "0.0.0.0:6199", "bot.example.com", "task-force", "an answer, please"])
def test_what_is_short_or_in_words_is_repeated_so_that_it_can_be_found(text: str) -> None:
    assert values.shown(text) == f"“{text}”"


@each_case("path", ["data/0123456789abcdef", "my-own-long-persona.md", "persona"])
def test_a_path_is_named_whole(path: str) -> None:
    assert values.shown_path(Path(path)) == path


# --- as a Chinese keyboard types it ---------------------------------------------------------------


@each_case(
    ("typed", "meant"),
    [
        ("“霜降”", "霜降"),
        ("”霜降“", "霜降"),
        ("”霜降”", "霜降"),
        ("＂霜降＂", "霜降"),
        ("‘霜降’", "霜降"),
        ("「霜降」", "霜降"),
        (" 『 霜降 』 ", "霜降"),
        ('"霜降"', "霜降"),
        ("'霜降'", "霜降"),
        ("“”", ""),
        ("“甲”和“乙”", "“甲”和“乙”"),
        ("“甲”说", "“甲”说"),
        ("O’Brien", "O’Brien"),
        ("“", "“"),
    ],
)
def test_one_pair_of_quotes_around_a_value_is_no_part_of_it(typed: str, meant: str) -> None:
    assert values.without_quotes(typed) == meant


@each_case(("text", "mark"), [("“霜降", "“"), ("霜降”", "”"), ("「霜降", "「"), ("霜降＂", "＂"), ("“", "“")])
def test_half_a_pair_of_quotes_is_refused(text: str, mark: str) -> None:
    with pytest.raises(Wrong, match=f"has a {mark} at one end only. Write it without"):
        values.check_quotes(text)


@each_case("text", ["", "霜降", "O’Brien", "Boys’", "她说“你好”", "“甲”说", "一“半", '12"'])
def test_quotes_that_may_be_meant_are_left_alone(text: str) -> None:
    assert values.check_quotes(text) == text


@each_case(
    ("typed", "items"),
    [
        ("“霜降”，“Frost Fox”", ("霜降", "Frost Fox")),
        ("「霜降」、狐狸", ("霜降", "狐狸")),
        ("“霜降”“狐狸”", ("霜降", "狐狸")),
        ("‘霜降’,‘狐狸’", ("霜降", "狐狸")),
        ('霜降,"Frost Fox"', ("霜降", "Frost Fox")),
        ('["“霜降”"]', ("“霜降”",)),
    ],
)
def test_quotes_around_an_item_of_a_list_are_no_part_of_it(typed: str, items: tuple[str, ...]) -> None:
    assert values.names(typed) == items


def test_half_a_pair_of_quotes_in_a_list_is_refused() -> None:
    with pytest.raises(Wrong, match="has a “ at one end only"):
        values.names("“霜降，狐狸")


@each_case(
    ("read", "typed", "plain"),
    [
        (values.qq_numbers, "１０００１，“10002”", "10001,10002"),
        (values.Whole(0, 99), "１２", "12"),
        (values.Number(0, 9), "０．５", "0.5"),
        (values.Number(0, 9), "0。5", "0.5"),
        (values.rate, "６／６０", "6/60"),
        (values.rate, "０", "0"),
        (values.switch, "１", "1"),
        (values.OneOf("weak", "all"), "ａｌｌ", "all"),
        (values.base_url, "https：／／api。example．com／v1／", "https://api.example.com/v1"),
        (values.socket_url, "ws：//127.0.0.1：3001", "ws://127.0.0.1:3001"),
        (values.origin, "https：//bot.example.com", "https://bot.example.com"),
        (values.host, "１２７．０．０．１", "127.0.0.1"),
        (values.api_host, "ab。qweatherapi。com", "ab.qweatherapi.com"),
        (hours, "２３：３０－０７：３０，12：00至13：30", "23:30-07:30,12:00-13:30"),
        (time_of_day, "０９：００", "09:00"),
        (zone, "Asia／Shanghai", "Asia/Shanghai"),
        (owners, "１０００１，10002：ｑｕｉｅｔ", "10001,10002:quiet"),
        (values.proxy_address, "127。0。0。1", "127.0.0.1"),
        (values.media_url, "http：//bot：8080／media", "http://bot:8080/media"),
    ],
)
def test_full_width_digits_and_marks_mean_their_plain_twins(
    read: Callable[[Any], object], typed: str, plain: str
) -> None:
    assert read(typed) == read(plain)


@each_case("read", [values.names, values.mirrors, values.audiences, fallbacks])
def test_json_with_full_width_marks_is_refused_with_the_reason(read: Callable[[str], object]) -> None:
    with pytest.raises(Wrong, match="full-width quotes, commas or colons"):
        read("[{“a”：1}]")


# --- databases ------------------------------------------------------------------------------------


@each_case(
    "url",
    [
        "sqlite+aiosqlite:///data/frostagent.db",
        "sqlite:////var/lib/霜 降/frost.db",
        "postgres://u:p@db/frost",
        "postgresql://db/frost",
        "postgresql+asyncpg://db/frost",
    ],
)
def test_the_url_of_a_database_may_name_a_driver(url: str) -> None:
    assert values.database(SecretStr(url)).get_secret_value() == url


@each_case("url", ["data/frostagent.db", "mysql://u:sesame@db/frost", "sqlite://", "postgresql:db"])
def test_another_database_is_refused_without_repeating_its_url(url: str) -> None:
    with pytest.raises(Wrong, match="SQLite or PostgreSQL") as caught:
        values.database(SecretStr(url))
    assert "sesame" not in str(caught.value)


# --- switches -------------------------------------------------------------------------------------


@each_case(("text", "on"), [("1", True), ("Yes", True), ("ON", True), ("0", False), ("False", False)])
def test_a_switch_is_on_or_off(text: str, on: bool) -> None:
    assert values.switch(text) is on
    assert values.switch(on) is on


def test_half_a_switch_is_refused() -> None:
    with pytest.raises(Wrong, match="Write 1 for on or 0 for off"):
        values.switch("2")


def test_an_api_host_is_a_name_however_it_was_pasted() -> None:
    for text in ("abc.def.qweatherapi.com", "https://ABC.def.qweatherapi.com/"):
        assert values.api_host(text) == "abc.def.qweatherapi.com"
    assert values.api_host("") == ""
    for text in ("localhost", "http://a.b", "a.b/c", "a..b"):
        with pytest.raises(Wrong, match="not the name of a host"):
            values.api_host(text)


def test_a_contact_fits_into_a_header() -> None:
    assert values.contact("bot@example.com") == "bot@example.com"
    for text in ("me (really)", "主人", "a\nb", "x" * 101):
        with pytest.raises(Wrong, match="ASCII"):
            values.contact(text)


def test_a_signing_key_is_taken_as_its_file_has_it_and_never_repeated() -> None:
    key = base64.b64encode(values.ED25519 + bytes(range(32))).decode()
    pem = f"-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n"
    for text in (key, pem, pem.replace("\n", r"\n"), f" {key} "):
        assert values.ed25519_key(SecretStr(text)).get_secret_value() == key
    assert values.ed25519_key(SecretStr("")).get_secret_value() == ""
    for text in ("sesame", key[:-8], base64.b64encode(bytes(48)).decode(), "ed25519-private.pem"):
        with pytest.raises(Wrong, match="not an Ed25519 private key") as caught:
            values.ed25519_key(SecretStr(text))
        assert "sesame" not in str(caught.value)


# --- models ---------------------------------------------------------------------------------------


@each_case("text", ["a,b", " a , b ,", "a，b", '["a", "b"]', "a,b,a"])
def test_keys_are_read_however_they_are_listed(text: str) -> None:
    assert values.keys(SecretStr(text)).get_secret_value() == "a,b"


@each_case("text", ["sk-1 sk-2", "sk-秘密", '["sk-1', "a,b c"])
def test_what_is_no_key_is_told_without_a_letter_of_it(text: str) -> None:
    with pytest.raises(Wrong) as caught:
        values.keys(SecretStr(text))
    assert "sk-" not in str(caught.value)
