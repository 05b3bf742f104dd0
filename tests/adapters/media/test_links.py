"""Urls that a model names, before anything is asked for."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.media.folder import ADVICE, MAX_URL, check_url, name_in_header, name_in_url
from frostagent.types.errors import MediaError
from tests.cases import each_case


def refusal(url: str) -> str:
    with pytest.raises(MediaError) as caught:
        check_url(url)
    return str(caught.value)


@each_case(
    "url",
    [
        "https://example.com/a/cat.png", "http://example.com/cat.png?size=1#x", "https://example.com",
        "https://example.com:443/", "http://example.com:80/cat.png", "https://例子.中国/cat.png",
        "https://EXAMPLE.com./my cat.png", "https://my_host.example.com/cat.png", "https://1.1.1.1/cat.png",
        "https://[2606:4700:4700::1111]/cat.png", "https://1.1.1.1.nip.io/", "https://example.com/a@b:c",
    ],
)  # fmt: skip
def test_a_plain_public_url_is_good(url: str) -> None:
    assert check_url(url) == url


@each_case(
    "url",
    [
        "http://127.0.0.1/cat.png", "http://localhost/cat.png", "http://10.0.0.1/", "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://2130706433/",
        "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/", "http://100.64.0.1/", "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/", "http://127.0.0.1./", "http://napcat/", "http://printer.local/",
        "file:///etc/passwd", "ftp://example.com/cat.png", "base64://aaaa", "data:image/png,x", "javascript:alert(1)",
        "cat.png", "example.com/cat.png", "//example.com/cat.png", "https://", "https:///cat.png", "http://[::1/",
        "http://..",
    ],
)  # fmt: skip
def test_no_other_url_is(url: str) -> None:
    told = refusal(url)
    assert "cannot be sent (" in told
    assert told.endswith(f"; {ADVICE}")


@each_case(
    "url",
    [
        "http://127.0.0.1.nip.io/", "http://127-0-0-1.sslip.io/x", "http://www.10.0.0.1.xip.io/", "http://a-192-168-1-1.sslip.io/",
        "http://bot.frostagent_default/metrics", "http://napcat.my_network/", "http://metadata.tencentyun.com/latest/",
        "http://metadata.goog/computeMetadata/v1/", "http://metadata.google.internal/", "http://instance-data/latest/",
        "http://100.100.100.200/latest/meta-data/",
    ],
)  # fmt: skip
def test_a_name_that_can_only_be_private_is_refused_before_it_is_resolved(url: str) -> None:
    assert "is not fetched" in refusal(url)


@each_case("port", [1, 22, 81, 3000, 6099, 6379, 8080, 8443, 65535])
def test_only_the_ports_of_the_web_are_asked(port: int) -> None:
    for scheme in ("http", "https"):
        assert f"it names port {port}; only the usual ports 80 and 443" in refusal(
            f"{scheme}://example.com:{port}/a.png"
        )


@each_case("url", ["http://me@example.com/", "https://me:secret@example.com/", "http://@example.com/"])
def test_a_url_with_a_login_is_refused(url: str) -> None:
    assert "names a user or a password" in refusal(url)


@each_case(
    "url",
    [
        "http://127.0.0.1\\@example.com/cat.png", "http://example.com\\cat.png", "http://127.0.0.%31/", "http://%6cocalhost/",
        "http://127.0.0。①/", "http://127.0.0.①/", "http://①②⑦.0.0.1/", "http://nas.ｌocal/", "http://127.0.0.1\u00ad/",
        "http://１２７.0.0.1/", "http://127。0。0。1/", "http://127．0．0．1/",
        "http://nas.lo\u200bcal/", "http://[fe80::1%25eth0]/", "http://exa mple.com/", "http://\ud800.com/",
        "http://example.com:８０８０/", "http://example.com:99999/",
    ],
)  # fmt: skip
def test_what_somebody_else_may_read_otherwise_is_refused(url: str) -> None:
    assert "cannot be sent (" in refusal(url)


def test_an_endless_url_is_refused_and_not_repeated() -> None:
    url = "https://example.com/" + "x" * MAX_URL
    assert refusal(url) == "the url is longer than 2048 characters; give a shorter one"
    assert len(refusal("x" * 100_000)) < 300
    assert check_url(url[:MAX_URL])


def test_nothing_is_no_url() -> None:
    assert refusal("") == "neither path nor url is given"


@each_case(
    ("url", "name"),
    [
        ("https://example.com/a/cat.png?size=1#x", "cat.png"),
        ("https://example.com/%E7%8C%AB.png", "猫.png"),
        ("https://example.com/..%2F..%2Fetc%2Fcat.png", "cat.png"),
        ("https://example.com/a%0Ab.png", "a\nb.png"),
        ("https://example.com/", ""),
        ("https://example.com", ""),
    ],
)
def test_a_url_calls_the_file_by_its_last_part(url: str, name: str) -> None:
    assert name_in_url(url) == name


@each_case(
    ("header", "name"),
    [
        ('attachment; filename="cat.png"', "cat.png"),
        ("inline; filename=cat.png", "cat.png"),
        ("attachment; filename*=UTF-8''%E7%8C%AB.png", "猫.png"),
        ('attachment; filename="猫.png"', "猫.png"),
        ('attachment; filename="../../a\\\\b.png"', "../../a\\b.png"),
        ("attachment", ""),
        ("", ""),
        ("a\nb: c", ""),
    ],
)
def test_a_header_calls_the_file_by_its_parameter(header: str, name: str) -> None:
    assert name_in_header(header) == name


@given(st.text() | st.text().map("attachment; filename*={}".format))
@example("attachment; filename*=no-such-charset''%E7%8C%AB.png")
@example("attachment; filename*0=a; filename*2=b")
def test_whatever_a_header_holds_is_read_as_some_name(header: str) -> None:
    assert isinstance(name_in_header(header), str)
