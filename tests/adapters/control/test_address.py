"""A socket can lie at any path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapters.control.address import LONGEST, address_of, new_socket


@pytest.mark.parametrize("length", [20, LONGEST - 1, LONGEST, LONGEST + 1, 200])
def test_a_path_of_any_length_can_be_bound_and_dialled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    folder = tmp_path / ("f" * max(1, length - len(str(tmp_path)) - len("//sock")))
    folder.mkdir()
    path = folder / "sock"
    with new_socket() as listening, new_socket() as dialling:
        with address_of(path) as address:
            listening.bind(address)
        assert path.is_socket()
        listening.listen()
        with address_of(path) as address:
            dialling.connect(address)
            assert len(os.fsencode(address)) <= LONGEST
