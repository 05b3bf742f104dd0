from __future__ import annotations

import pytest

from bot.core.language import Catalogue
from frostagent.text.language import Phrase

YES = Phrase("是", "yes")


def test_a_phrase_is_found_by_its_slice_and_name_and_registered_once() -> None:
    catalogue = Catalogue()
    catalogue.register("quiet", {"YES": YES, "LIMIT": 3})
    catalogue.register("budget", {"YES": YES})  # imported from the other
    assert dict(catalogue) == {"quiet.YES": YES}
    with pytest.raises(ValueError, match=r"two phrases have the key quiet\.YES"):
        catalogue.register("quiet", {"YES": Phrase("好", "yes")})
