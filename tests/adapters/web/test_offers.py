from __future__ import annotations

import base64
import os

import pytest

from adapters.web.file_offers import BLOCK, UNGUESSABLE, FileOffers
from tests.cases import each_case

URL = "http://bot:8080/media"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def key_of(url: str) -> str:
    return url.removeprefix(f"{URL}/")


@each_case("size", [0, 1, 2, 3, BLOCK // 4 * 3 - 1, BLOCK // 4 * 3, BLOCK // 4 * 3 + 1, 1_000_000])
def test_what_is_offered_comes_whole_and_says_its_size(size: int) -> None:
    data = os.urandom(size)
    with FileOffers(URL).offer(encoded(data)) as offered:
        assert offered.size == size
        blocks = list(offered.blocks())
    assert b"".join(blocks) == data
    assert all(len(block) <= BLOCK for block in blocks)


def test_an_address_is_of_one_file_and_nobody_can_guess_it() -> None:
    offers = FileOffers(URL)
    with offers.offer(encoded(b"one")) as one, offers.offer(encoded(b"one")) as two:
        keys = {key_of(one.url), key_of(two.url)}
        assert len(keys) == 2
        assert all(len(base64.urlsafe_b64decode(f"{key}=")) == UNGUESSABLE == 32 for key in keys)
        assert (offers.find(key_of(one.url)), offers.find(key_of(two.url))) == (one, two)


def test_an_address_ends_with_its_block_also_where_that_fails() -> None:
    offers = FileOffers(URL)
    with offers.offer(encoded(b"one")) as one:
        with pytest.raises(LookupError), offers.offer(encoded(b"two")) as two:
            raise LookupError
        assert (one.over, two.over) == (False, True)
        assert (offers.find(key_of(one.url)), offers.find(key_of(two.url))) == (one, None)
    assert (one.over, offers.find(key_of(one.url))) == (True, None)


def test_what_is_over_gives_no_more() -> None:
    with FileOffers(URL).offer(encoded(bytes(BLOCK * 3))) as offered:
        blocks = offered.blocks()
        assert len(next(blocks)) == BLOCK // 4 * 3
    assert list(blocks) == []
