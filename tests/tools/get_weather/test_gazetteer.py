"""The places we know ourselves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis.strategies import text

from tests.cases import each_case
from tools.get_weather.gazetteer import Gazetteer, known_places
from tools.get_weather.places import Ambiguous, Choice, Chosen, Query, WeatherPlace, read_query

ROOT = Path(__file__).parents[3]
TABLES = ROOT / "tools" / "get_weather"
RESOLUTIONS = [
    (question.strip(), expected.strip())
    for line in (Path(__file__).parent / "resolutions.txt").read_text("utf-8").splitlines()
    if "|" in line and not line.startswith("#")
    for question, expected in [line.split("|")]
]
CHANGES = [
    (code.strip(), title.strip(), before.split())
    for line in (Path(__file__).parent / "changes.txt").read_text("utf-8").splitlines()
    if "|" in line and not line.startswith("#")
    for code, title, before in [line.split("|")]
]


def find(question: str) -> Choice | None:
    return known_places().find(read_query(question))


def chinese(place: WeatherPlace) -> str:
    """The Chinese path, which an English title has in brackets."""
    return place.title.partition(" (")[2].removesuffix(")") or place.title


def told(choice: Choice | None) -> str:
    match choice:
        case Chosen():
            return chinese(choice.place)
        case Ambiguous():
            return "? " + " / ".join(chinese(place) for place in choice.places)
        case _:
            return "-"


def test_every_question_leads_where_it_should() -> None:
    assert len(RESOLUTIONS) >= 150
    wrong = []
    for question, expected in RESOLUTIONS:
        came = told(find(question))
        right = came.startswith(expected) if expected.startswith("?") else came == expected
        if not right:
            wrong.append(f"{question}: {came}, not {expected}")
    assert wrong == []


def test_counties_are_known_as_they_are_today_and_as_they_were() -> None:
    """Our own list of what changed since 2015: a district that is absent leads to a namesake elsewhere, silently."""
    assert len(CHANGES) > 80
    wrong = []
    for code, title, before in CHANGES:
        for question in (title, *before):
            choice = find(question)
            place = choice.place if isinstance(choice, Chosen) else None
            if place is None or (place.title, place.adcode) != (title, code.strip("-")):
                wrong.append(f"{question}: {told(choice)}, not {title} {code}")
    assert wrong == []


@each_case("gone", ["江干区", "下城区", "梅列区", "港闸区", "吉利区", "湾里区", "伊春区", "邢台县"])
def test_no_row_is_left_of_what_is_no_more(gone: str) -> None:
    rows = json.loads((TABLES / "china.json").read_text("utf-8"))
    assert gone not in [row[1] for row in rows]


@each_case(("question", "latitude", "longitude"), [("深圳龙华区", 22.7, 114.04), ("大兴安岭", 50.42, 124.12)])
def test_a_place_is_where_it_is(question: str, latitude: float, longitude: float) -> None:
    choice = find(question)
    assert isinstance(choice, Chosen)
    assert (choice.place.latitude, choice.place.longitude) == pytest.approx((latitude, longitude), abs=0.1)


def test_shenzhens_longhua_is_not_haikous() -> None:
    assert told(find("龙华区")).startswith("? 广东省深圳市龙华区 / 海南省海口市龙华区")


@each_case(
    ("question", "known"), [("Gulou", 4), ("Bole", 1), ("Beijing", 1), ("Paris", 0), ("鼓楼", 0), ("Gulou, Nanjing", 1)]
)
def test_what_has_a_short_latin_name_stands_beside_a_geocoders(question: str, known: int) -> None:
    assert len(known_places().namesakes(read_query(question))) == known


@each_case("question", ["朝阳", "鼓楼", "城关", "海南", "广东", "suzhou", "shanxi"])
def test_every_path_of_a_question_back_can_be_asked_for(question: str) -> None:
    choice = find(question)
    assert isinstance(choice, Ambiguous)
    for place in choice.places:
        assert told(find(chinese(place))) == chinese(place)
        assert told(find(place.title.partition(" (")[0])).removeprefix("? ").startswith(chinese(place))


def test_a_place_knows_where_it_is() -> None:
    choice = find("江苏南京鼓楼")
    assert isinstance(choice, Chosen)
    assert (choice.place.adcode, choice.place.zone, choice.place.name) == ("320106", "Asia/Shanghai", "鼓楼区")
    assert (choice.place.longitude, choice.place.latitude) == pytest.approx((118.77, 32.066), abs=0.01)
    abroad = find("悉尼")
    assert isinstance(abroad, Chosen)
    assert (abroad.place.adcode, abroad.place.zone, abroad.place.country) == ("", "Australia/Sydney", "澳大利亚")


def test_an_area_without_an_official_code_has_none() -> None:
    choice = find("横琴")
    assert isinstance(choice, Chosen)
    assert choice.place.adcode == ""


def test_namesakes_beside_a_clear_place_are_named() -> None:
    choice = find("中山")
    assert isinstance(choice, Chosen)
    assert [place.title for place in choice.others] == ["辽宁省大连市中山区"]


def test_what_is_too_large_says_so_and_how_much_is_not_listed() -> None:
    choice = find("广东")
    assert isinstance(choice, Ambiguous)
    assert choice.within
    assert len(choice.places) + choice.more == 21
    assert not getattr(find("鼓楼"), "within", True)


def test_an_english_title_says_both() -> None:
    choice = find("Hohhot")
    assert isinstance(choice, Chosen)
    assert choice.place.title == "Hohhot, Inner Mongolia, China (内蒙古自治区呼和浩特市)"


@each_case(
    ("slip", "meant"),
    [("哈尔宾", "黑龙江省哈尔滨市"), ("乌鲁木其", "新疆维吾尔自治区乌鲁木齐市"), ("shenzen", "广东省深圳市")],
)
def test_a_slip_is_suggested_and_never_taken(slip: str, meant: str) -> None:
    assert find(slip) is None
    assert chinese(known_places().suggest(read_query(slip))[0]) == meant


def test_nothing_like_it_suggests_nothing() -> None:
    assert known_places().suggest(Query("龘龘龘龘")) == ()


@given(text(max_size=20))
def test_any_name_is_looked_up(name: str) -> None:
    known_places().find(Query(name))
    known_places().find(Query("北京", (name,)))


def test_the_tables_are_not_loaded_at_start() -> None:
    """What a start imports is the tool; only a question loads the tables, and only a picture loads Pillow."""
    script = (
        "import sys, tools\n"
        "tools.discover()\n"
        "from tools.get_weather.gazetteer import known_places\n"
        "assert known_places.cache_info().currsize == 0\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('PIL', 'cryptography')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


# --- the tables -----------------------------------------------------------------------------------


def test_the_table_of_china_is_sound() -> None:
    rows = json.loads((TABLES / "china.json").read_text("utf-8"))
    codes = [row[0] for row in rows]
    assert codes == sorted(set(codes))
    assert len(rows) > 3200
    for code, name, longitude, latitude, latin, *more in rows:
        assert re.fullmatch(r"[0-9A-Z]{6}", code)
        assert name not in {"市辖区", "县"}
        assert 73 < longitude < 136, name
        assert 3 < latitude < 54, name
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*( [a-z]+)*", latin), name
        assert len(more) <= 1
        assert all(more), name


def test_the_table_of_cities_abroad_is_sound() -> None:
    rows = json.loads((TABLES / "abroad.json").read_text("utf-8"))
    assert len(rows) >= 60
    assert len({(row[0], row[1]) for row in rows}) == len(rows)
    for name, _, longitude, latitude, zone, *_ in rows:
        assert ZoneInfo(zone).key == zone
        assert -180 <= longitude <= 180, name
        assert -60 < latitude < 70, name


def test_the_licence_of_the_table_lies_beside_it() -> None:
    notice = (TABLES / "README.md").read_text("utf-8")
    assert "Copyright (c) 2018 QinYuan Du" in notice
    assert "Permission is hereby granted" in notice


def test_tables_of_ones_own_are_as_good() -> None:
    places = Gazetteer(
        china=[["110000", "甲省", 1.0, 2.0, "jia"], ["110100", "乙市", 3.0, 4.0, "yiyi", "小乙"]],
        abroad=[["丙", "丁国", 5.0, 6.0, "Europe/Paris"]],
    )
    assert told(places.find(Query("小乙"))) == "甲省乙市"
    assert told(places.find(Query("丁国丙"))) == "丁国丙"
    assert places.find(Query("戊")) is None
