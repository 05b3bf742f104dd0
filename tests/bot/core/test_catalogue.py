from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from bot.core import language
from bot.core.language import CATALOGUE, Catalogue, Phrase

ROOT = Path(language.__file__).parents[2]
YES = Phrase("是", "yes")


def test_a_phrase_is_found_by_its_slice_and_name_and_registered_once() -> None:
    catalogue = Catalogue()
    catalogue.register("quiet", {"YES": YES, "LIMIT": 3})
    catalogue.register("budget", {"YES": YES})  # imported from the other
    assert dict(catalogue) == {"quiet.YES": YES}
    with pytest.raises(ValueError, match=r"two phrases have the key quiet\.YES"):
        catalogue.register("quiet", {"YES": Phrase("好", "yes")})


def test_every_phrase_of_the_service_is_in_the_catalogue_under_the_name_of_its_module() -> None:
    files = [file for folder in ("adapters", "bot", "config") for file in (ROOT / folder).rglob("*.py")]
    registering = [file for file in files if "CATALOGUE.register(__name__" in file.read_text("utf-8")]
    assert len(registering) > 30
    registered = {id(phrase) for phrase in CATALOGUE.values()}
    for file in registering:
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        module = import_module(name)
        registered |= {id(phrase) for phrase in CATALOGUE.values()}
        assert [key for key in CATALOGUE if key.startswith(f"{name}.")], name
        phrases = {key: value for key, value in vars(module).items() if isinstance(value, Phrase)}
        assert [key for key, phrase in phrases.items() if id(phrase) not in registered] == [], name
