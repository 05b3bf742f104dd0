from __future__ import annotations

import pickle

import pytest

from config.settings import Settings
from config.values import Owners, Wrong, owners
from tests.cases import each_case


def test_an_owner_may_be_quiet() -> None:
    read = Settings.model_validate({"bot_owners": "10001, 10002:Quiet，10003：quiet"}).bot_owners
    assert sorted(read) == [10001, 10002, 10003]
    assert read.quiet == {10002, 10003}
    assert owners(read) is read
    assert pickle.loads(pickle.dumps(read)).quiet == read.quiet
    assert owners([1, 2]).quiet == Owners().quiet == frozenset()


@each_case("text", ["10001:loud", "1:quiet:quiet", ":quiet", "x:quiet"])
def test_anything_else_is_no_owner(text: str) -> None:
    with pytest.raises(Wrong):
        owners(text)
