"""One token, or a list of them, as people write it."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from config.secrets import secrets_of
from config.settings import Settings
from config.tokens import AccessTokens, console_totp, parts_of, read_tokens, tokens
from config.values import Wrong
from frostagent.text.masking import Mask
from tests.cases import each_case
from tests.config.reading import GOOD, load, problems

OWNED = {10001: "abcdefgh", 10002: "ijklmnop"}


@each_case(
    ("typed", "read"),
    [
        ("", AccessTokens()),
        ("abcdefgh", AccessTokens("abcdefgh")),
        ("a,b:c;d", AccessTokens("a,b:c;d")),
        ("x1:abc", AccessTokens("x1:abc")),
        ("10001:abcdefgh", AccessTokens("", {10001: "abcdefgh"})),
        ("10001:abcdefgh,10002:ijklmnop", AccessTokens("", OWNED)),
        ("10001:abcdefgh, 10002:ijklmnop", AccessTokens("", OWNED)),
        (" 10001：abcdefgh，10002 : ijklmnop; ", AccessTokens("", OWNED)),
        ("10001:abcdefgh,common,10002:ijklmnop", AccessTokens("common", OWNED)),
        ("10001:a:b", AccessTokens("", {10001: "a:b"})),
    ],
)
def test_a_list_is_one_where_an_account_stands_before_a_token(typed: str, read: AccessTokens) -> None:
    assert read_tokens(typed) == read
    once = tokens(SecretStr(typed))
    assert read_tokens(once.get_secret_value()) == read
    assert tokens(once) == once


@each_case(
    ("typed", "said"),
    [
        ("10001:abcdefgh,10001:ijklmnop", "has two tokens for account 10001"),
        ("10001:,10002:ijklmnop", "has no token for account 10001"),
        ("10001:abcdefgh,ijklmnop,qrstuvwx", "has two tokens without an account"),
        ("10001:abcdefgh,10002:abcdefgh", "has the same token twice"),
        ("10001:abcdefgh,abcdefgh", "has the same token twice"),
        ("10001:芝麻开门", "a character that is not ASCII"),
        ("abc def", "a space"),
        ("10001:change-me", "still has the text of an example"),
        ("10001:abcdefgh,change-me", "still has the text of an example"),
    ],
)
def test_a_bad_list_is_one_clear_problem_that_shows_no_token(typed: str, said: str) -> None:
    [problem] = problems({"ONEBOT_ACCESS_TOKEN": typed})
    assert problem.startswith("ONEBOT_ACCESS_TOKEN: ")
    assert said in problem
    assert not any(token in problem for token in ("abcdefgh", "ijklmnop", "qrstuvwx"))


def test_the_parts_of_a_text_are_told_whatever_is_wrong_with_them() -> None:
    assert parts_of("10001:a,10001:b,c") == [(10001, "a"), (10001, "b"), (0, "c")]
    assert parts_of("a b") == [(0, "a b")]
    assert parts_of("") == []


def test_a_server_that_is_dialled_has_one_token() -> None:
    assert AccessTokens("abc").only == (0, "abc")
    assert AccessTokens().only == (0, "")
    assert AccessTokens("", {10001: "abc"}).only == (10001, "abc")
    for several in (AccessTokens("abc", {10001: "def"}), AccessTokens("", OWNED)):
        with pytest.raises(Wrong, match="several"):
            _ = several.only


def test_forward_mode_takes_the_token_of_one_account_and_no_list_of_them() -> None:
    forward = {"ONEBOT_MODE": "forward", "ONEBOT_URL": "ws://napcat:3001"}
    load(GOOD | forward | {"ONEBOT_ACCESS_TOKEN": "10001:abcdefgh"})
    [problem] = problems(forward | {"ONEBOT_ACCESS_TOKEN": "10001:abcdefgh,10002:ijklmnop"})
    assert problem.startswith("ONEBOT_ACCESS_TOKEN: has several tokens, but ONEBOT_MODE=forward dials one server")


def test_an_account_comes_in_with_its_own_token_else_with_everybodys() -> None:
    mixed = AccessTokens("common", OWNED)
    assert [mixed.token_for(account) for account in (10001, 10002, 10003, 0)] == [
        "abcdefgh",
        "ijklmnop",
        "common",
        "common",
    ]
    assert [AccessTokens("", OWNED).token_for(account) for account in (10002, 0)] == ["ijklmnop", "abcdefgh"]
    assert mixed.all == ("common", "abcdefgh", "ijklmnop")
    assert AccessTokens().token_for(10001) == ""


def test_the_shortest_of_several_tokens_is_doubted() -> None:
    settings, warnings = load(GOOD | {"ONEBOT_ACCESS_TOKEN": "10001:abcdefghijklmnopqrst,10002:uvwxyz12"})
    assert settings.access_tokens.accounts == {10001: "abcdefghijklmnopqrst", 10002: "uvwxyz12"}
    [doubt] = [str(warning) for warning in warnings if warning.name == "ONEBOT_ACCESS_TOKEN"]
    assert "is shorter than" in doubt


def test_each_token_is_a_secret_and_no_account_is() -> None:
    settings = Settings.model_validate({"onebot_access_token": "10001:abcdefgh,10002:ijklmnop,qrstuvwx"})
    assert {"abcdefgh", "ijklmnop", "qrstuvwx"} <= secrets_of(settings)
    mask = Mask(secrets_of(settings))
    assert mask("account 10001 came with abcdefgh, not qrstuvwx") == "account 10001 came with ***, not ***"
    for text in (repr(settings), repr(settings.access_tokens), settings.model_dump_json()):
        assert "abcdefgh" not in text
        assert "qrstuvwx" not in text


def test_the_one_token_of_one_account_is_a_secret_too() -> None:
    assert "abcdefgh" in secrets_of(Settings.model_validate({"onebot_access_token": "10001:abcdefgh"}))


@each_case("text", ["A" * 25, "A" * 24, "ABCD1" * 6, "é" * 32])
def test_a_secret_of_an_app_that_is_none_or_short_is_wrong(text: str) -> None:
    with pytest.raises(Wrong):
        console_totp(SecretStr(text))
