"""Which place is meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis.strategies import text

from frostagent.types.errors import InvalidArguments
from tests.cases import each_case
from tools.get_weather.places import Ambiguous, Chosen, NotFound, Query, WeatherPlace, choose, merge, plain, read_query


def place(name: str, feature: str, population: int = 0, *regions: str, country: str = "United States") -> WeatherPlace:
    code = {"United States": "US", "中国": "CN", "France": "FR", "United Kingdom": "GB", "Costa Rica": "CR"}[country]
    return WeatherPlace(
        id=hash((name, feature, population, regions, country)),
        name=name,
        latitude=1.0,
        longitude=2.0,
        country=country,
        country_code=code,
        regions=regions,
        feature=feature,
        population=population,
    )


BEIJING = place("北京", "PPLC", 18960744, "北京市", "北京市", country="中国")
HAMLETS = (
    place("北京", "PPL", 0, "重庆市", "重庆市", country="中国"),
    place("北京", "PPL", 0, "四川", "成都", country="中国"),
)
PARIS = place("Paris", "PPLC", 2138551, "Île-de-France", country="France")
PARIS_TEXAS = place("Paris", "PPLA2", 24171, "Texas")
ILLINOIS = place("Springfield", "PPLA", 114394, "Illinois")
MISSOURI = place("Springfield", "PPLA2", 169176, "Missouri")


@each_case(
    ("city", "name", "within"),
    [
        ("北京", "北京", ()),
        ("  北京天气 ", "北京", ()),
        ("南昌市区", "南昌", ()),
        ("上海明天", "上海", ()),
        ("上海今天天气", "上海", ()),
        ("北京天气怎么样？", "北京", ()),
        ("大连市明天，辽宁", "大连市", ("辽宁",)),
        ("未来三天", "未来三天", ()),
        ("天水", "天水", ()),
        ("Paris tomorrow weather", "Paris", ()),
        ("Today", "Today", ()),
        ("Paris weather", "Paris", ()),
        ("Springfield, Illinois", "Springfield", ("Illinois",)),
        ("北京，四川，中国", "北京", ("四川", "中国")),
        ("Ｔｏｋｙｏ", "Tokyo", ()),
        ("New \n York", "New York", ()),
        ("Paris,,", "Paris", ()),
    ],
)
def test_a_question_names_a_place_and_what_it_lies_in(city: str, name: str, within: tuple[str, ...]) -> None:
    assert read_query(city) == Query(name, within)


@each_case("city", ["", "  ", ",", "天气", "12345", "?!", "a" * 81])
def test_what_names_no_place_is_refused(city: str) -> None:
    with pytest.raises(InvalidArguments, match="must be the name of a place"):
        read_query(city)


@given(text(max_size=30))
def test_any_text_is_read_or_refused(city: str) -> None:
    try:
        query = read_query(city)
    except InvalidArguments:
        return
    choose(query, [BEIJING, *HAMLETS, PARIS])


def test_the_language_is_the_one_the_name_is_written_in() -> None:
    assert Query("北京").language == "zh"
    assert Query("Beijing").language == "en"


def test_a_chinese_name_is_looked_up_with_and_without_its_suffix() -> None:
    assert Query("北京").spellings == ("北京", "北京市")
    assert Query("北京市").spellings == ("北京市", "北京")
    assert Query("沙市").spellings == ("沙市", "沙市市")
    assert Query("Paris").spellings == ("Paris",)


@each_case(
    ("one", "other"),
    [("Xi'an", "xian"), ("Zürich", "ZURICH"), ("Tromsø", "tromso"), ("北京市", "北京"), ("St. Louis", "st louis")],
)
def test_names_compare_without_accents_case_and_suffix(one: str, other: str) -> None:
    assert plain(one) == plain(other)


def test_a_short_chinese_name_keeps_its_last_character() -> None:
    assert plain("沙市") == "沙市"


def test_the_capital_is_meant_not_a_hamlet_that_comes_first() -> None:
    assert choose(Query("北京"), [*HAMLETS, BEIJING]) == Chosen(BEIJING)


def test_a_hamlet_is_never_meant_by_a_bare_name() -> None:
    assert choose(Query("北京"), HAMLETS) == Ambiguous(HAMLETS)
    assert choose(Query("北京"), HAMLETS[:1]) == Ambiguous(HAMLETS[:1])


def test_a_hamlet_is_meant_by_who_says_where_it_lies() -> None:
    assert choose(Query("北京", ("四川",)), [*HAMLETS, BEIJING]) == Chosen(HAMLETS[1])


def test_every_path_that_is_listed_can_be_asked_for() -> None:
    for candidate in (*HAMLETS, BEIJING, ILLINOIS, PARIS_TEXAS):
        query = read_query("，".join(candidate.path))
        choice = choose(query, [*HAMLETS, BEIJING, ILLINOIS, MISSOURI, PARIS, PARIS_TEXAS])
        assert isinstance(choice, Chosen)
        assert choice.place.name == candidate.name
        if query.within[1:]:
            assert choice.place == candidate


def test_the_far_larger_namesake_is_meant_and_the_other_one_named() -> None:
    assert choose(Query("Paris"), [PARIS_TEXAS, PARIS]) == Chosen(PARIS, (PARIS_TEXAS,))


def test_equally_good_places_are_ambiguous_the_highest_office_first() -> None:
    assert choose(Query("Springfield"), [MISSOURI, ILLINOIS]) == Ambiguous((ILLINOIS, MISSOURI))


def test_a_capital_does_not_outweigh_a_larger_city() -> None:
    capital = place("San Jose", "PPLC", 335007, "San José", country="Costa Rica")
    city = place("San Jose", "PPLA2", 1026908, "California")
    assert choose(Query("San Jose"), [capital, city]) == Ambiguous((capital, city))


@each_case("within", ["Illinois", "illinois"])
def test_a_region_settles_it(within: str) -> None:
    assert choose(Query("Springfield", (within,)), [MISSOURI, ILLINOIS]) == Chosen(ILLINOIS)


@each_case("within", ["US", "USA", "United States"])
def test_a_country_settles_it_under_its_usual_names(within: str) -> None:
    assert choose(Query("Paris", (within,)), [PARIS, PARIS_TEXAS]) == Chosen(PARIS_TEXAS)


def test_namesakes_in_one_region_are_no_reason_to_ask() -> None:
    large, small = place("Springfield", "PPL", 30000, "Pennsylvania"), place("Springfield", "PPL", 9000, "Pennsylvania")
    assert choose(Query("Springfield"), [small, large]) == Chosen(large)


def test_places_of_unknown_size_are_told_apart_by_their_office() -> None:
    seat, village = place("Alba", "PPLA3", 0, "Here"), place("Alba", "PPL", 5000, "There")
    assert choose(Query("Alba"), [seat, village]) == Chosen(seat, (village,))


def test_a_longer_name_is_meant_only_by_a_place_of_standing() -> None:
    city, hamlet = place("首尔特别市", "PPLC", 10349312, country="France"), place("首尔村", "PPL", 0, country="France")
    assert choose(Query("首尔"), [hamlet, city]) == Chosen(city)
    assert choose(Query("首尔"), [hamlet]) == NotFound((hamlet,))


def test_a_similar_name_is_offered_but_not_taken() -> None:
    tabor = place("Debre Tabor", "PPL", 125300, "Amhara")
    assert choose(Query("Samara"), [tabor]) == NotFound((tabor,))


def test_a_region_nothing_lies_in_finds_nothing() -> None:
    assert choose(Query("Springfield", ("Bavaria",)), [ILLINOIS]) == NotFound((ILLINOIS,))


@each_case("feature", ["AIRP", "MT", "PPLH", "PPLQ"])
def test_only_places_where_people_live_count(feature: str) -> None:
    assert choose(Query("Paris"), [place("Paris", feature)]) == NotFound()


def test_a_path_says_nothing_twice() -> None:
    assert BEIJING.path == ("北京", "中国")
    assert HAMLETS[0].path == ("北京", "重庆市", "中国")
    assert ILLINOIS.path == ("Springfield", "Illinois", "United States")


def located(name: str, latitude: float) -> WeatherPlace:
    return WeatherPlace(id=0, name=name, latitude=latitude, longitude=100.0)


def test_what_a_geocoder_chose_and_our_table_knows_elsewhere_is_asked_about() -> None:
    found, ours, same = located("Gulou", 20.0), located("Gulou", 30.0), located("Gulou", 20.3)
    assert merge(Chosen(found), ()) == Chosen(found)
    assert merge(Chosen(found), (same,)) == Chosen(found)
    assert merge(Chosen(found), (ours, same)) == Ambiguous((found, ours))
    assert merge(Ambiguous((found,)), (ours, same)) == Ambiguous((found, ours))
    assert merge(NotFound((found,)), ()) == NotFound((found,))
    assert merge(NotFound((found,)), (ours,)) == Chosen(ours)
    assert merge(NotFound(), (ours, found)) == Ambiguous((ours, found))


def test_a_long_question_back_says_how_many_are_left() -> None:
    many = tuple(located("Gulou", float(number)) for number in range(7))
    assert merge(NotFound(), many) == Ambiguous(many[:5], more=2)
    assert merge(Chosen(located("Gulou", -9.0)), many) == Ambiguous((located("Gulou", -9.0), *many[:4]), more=3)
    choice = merge(Ambiguous(many[:5], more=1), (located("Gulou", 50.0), many[0]))
    assert choice == Ambiguous((*many[:3], located("Gulou", 50.0), many[3]), more=2)
