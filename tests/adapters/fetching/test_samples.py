"""The samples of our making have the shape of those that servers really gave."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.adapters.fetching.replay import Sample, samples, shared_samples


def paths(sample: Sample) -> set[str]:
    """Each field with the type of its value; the first line of what is no JSON."""
    try:
        content = json.loads(sample.body)
    except ValueError:
        return {sample.body.decode().partition("\n")[0][:16]}
    return set(walk("", content))


def walk(where: str, value: object) -> Iterator[str]:
    yield f"{where}: {type(value).__name__}"
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from walk(f"{where}.{key}", inner)
    for inner in value if isinstance(value, list) else ():
        yield from walk(where, inner)


def test_ours_are_answered_and_shaped_like_the_shared_ones() -> None:
    assert len(samples()) >= 57
    for name, theirs in shared_samples().items():
        if ours := samples().get(name):
            assert (ours.status, ours.content_type) == (theirs.status, theirs.content_type), name
            assert paths(ours) <= paths(theirs), name
