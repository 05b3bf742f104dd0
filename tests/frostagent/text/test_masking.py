from __future__ import annotations

import json
from urllib.parse import quote, quote_plus, urlencode

import markupsafe
import orjson
from hypothesis import given
from hypothesis import strategies as st

from frostagent.text.masking import MASK, Mask, Quoting, one_line, text_for_log
from tests.cases import each_case

KEY = "sk-1234567890abcdef"

secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40)


def test_a_secret_is_masked_wherever_it_stands() -> None:
    assert Mask([KEY])(f"Bearer {KEY}, again:{KEY}x {KEY}") == f"Bearer {MASK}, again:{MASK}x {MASK}"


def test_nothing_to_hide_leaves_the_text_as_it_is() -> None:
    assert Mask()("as it is") == Mask([""])("as it is") == Mask([KEY])("as it is") == "as it is"


@given(secrets)
def test_no_way_to_write_a_secret_down_shows_it(secret: str) -> None:
    mask = Mask([secret])
    for text in (
        secret,
        json.dumps({"key": secret}),
        orjson.dumps({"key": secret}).decode(),
        repr(secret),
        repr(secret.encode()),
        repr({"key": [secret]}),
        f"ws://bot/?{urlencode({'access_token': secret})}",
        f"https://bot/{quote(secret)}?{quote_plus(secret)}",
        f"<p title='{markupsafe.escape(secret)}'>",
    ):
        shown = mask(text)
        assert MASK in shown
        assert secret not in shown


def test_of_two_secrets_the_longer_one_goes_whole() -> None:
    assert Mask(["abcdefgh", "abcdefgh-2024"])("abcdefgh-2024 abcdefgh") == f"{MASK} {MASK}"


@each_case(
    ("text", "shown"),
    [
        ("token=fox1 is wrong", f"token={MASK} is wrong"),
        ('"fox1"', f'"{MASK}"'),
        ("fox12 and afox1 stay", "fox12 and afox1 stay"),
    ],
)
def test_a_short_secret_is_masked_as_a_word_of_its_own(text: str, shown: str) -> None:
    assert Mask(["fox1"])(text) == shown


def test_what_is_no_secret_at_all_does_not_blacken_the_log() -> None:
    assert Mask(["1", "abc"])("step 1 of abc") == "step 1 of abc"


def test_of_a_text_that_quotes_a_vendor_the_log_gets_what_is_our_own() -> None:
    assert text_for_log(Quoting("the key is refused (auth: what somebody said)")) == "the key is refused"
    assert text_for_log("the journal cannot be written (disk full)") == "the journal cannot be written (disk full)"


@each_case(
    ("text", "told"),
    [
        ("count must be 1-10, got 11", "count must be 1-10, got 11"),
        ("user_name must be set, see a.py", "user_name must be set, see a.py"),
        ("no\n such\t city\n", "no such city"),
        ("https://bob:pw@h.test/x?key=abc&token=zz9&q=1", "https://***@h.test/x?key=***&token=***&q=1"),
        ("Authorization: Bearer abcdef", "Authorization: Bearer ***"),
        ("sk-proj-abcdefgh1234 is wrong", "*** is wrong"),
        ("PASSWORD=hunter2; secret=x, api_key=y", "PASSWORD=***; secret=***, api_key=***"),
        ("x" * 60, "x" * 49 + "…"),
        ("x" * 50, "x" * 50),
    ],
)
def test_somebody_elses_words_are_one_short_line_without_what_looks_like_a_secret(text: str, told: str) -> None:
    assert one_line(text, 50) == told
