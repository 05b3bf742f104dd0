"""The list of model services."""

from __future__ import annotations

from bot.cli.setup.answers import VENDORS, Vendor, find_vendor, vendor_of
from config import values
from tests.cases import each_case


@each_case("vendor", VENDORS)
def test_every_vendor_has_a_usable_base_url_and_a_page_for_keys_unless_it_is_on_this_machine(vendor: Vendor) -> None:
    assert values.base_url(vendor.base_url) == vendor.base_url
    assert vendor.needs_key is not vendor.base_url.startswith("http://127.0.0.1:")
    assert not vendor.page or vendor.page.startswith("https://")


def test_a_vendor_is_found_by_name_and_by_its_number_in_the_list() -> None:
    assert find_vendor(" DeepSeek ") is VENDORS[0]
    assert find_vendor("2") is VENDORS[1]
    assert find_vendor("0") is find_vendor("99") is find_vendor("") is find_vendor("nobody") is None


def test_a_vendor_is_known_by_its_base_url() -> None:
    assert vendor_of("http://127.0.0.1:11434/v1") is find_vendor("ollama")
    assert vendor_of("https://llm.invalid/v1") is None


def test_no_two_vendors_share_a_name_or_a_place() -> None:
    assert len({vendor.name for vendor in VENDORS}) == len({vendor.base_url for vendor in VENDORS}) == len(VENDORS)
