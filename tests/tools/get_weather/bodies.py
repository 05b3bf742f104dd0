"""Bodies in Open-Meteo's shapes, with made-up figures."""

from __future__ import annotations

from typing import Any

PLACES = "/geocoding-api.open-meteo.com/v1/search"
FORECAST = "/api.open-meteo.com/v1/forecast"

QUOTA = {"reason": "Minutely API request limit exceeded. Please try again in one minute.", "error": True}


def row(number: int, name: str, feature: str, population: int = 0, **more: Any) -> dict[str, Any]:
    """A row of the geocoder; like the real one it leaves out what is empty or zero."""
    fields = {"id": number, "name": name, "feature_code": feature, "population": population} | more
    fields = {"latitude": 39.9075, "longitude": 116.39723, "timezone": "Asia/Shanghai"} | fields
    return {key: value for key, value in fields.items() if value}


def rows(*results: dict[str, Any]) -> dict[str, Any]:
    return {"results": list(results), "generationtime_ms": 0.4}


BEIJING = row(
    1816670, "北京", "PPLC", 18960744, country="中国", country_code="CN", admin1="北京市", admin2="北京市"
)  # fmt: skip
HAMLETS = (
    row(8404324, "北京", "PPL", country="中国", country_code="CN", admin1="重庆市", admin2="重庆市"),
    row(10196578, "北京", "PPL", country="中国", country_code="CN", admin1="四川", admin2="成都"),
)
SPRINGFIELDS = tuple(
    row(number, "Springfield", feature, people, country="United States", country_code="US", admin1=state)
    for number, feature, people, state in (
        (1, "PPLA2", 169176, "Missouri"),
        (2, "PPLA2", 155929, "Massachusetts"),
        (3, "PPLA", 114394, "Illinois"),
        (4, "PPL", 59403, "Oregon"),
        (5, "PPLA2", 58662, "Ohio"),
        (6, "PPL", 30000, "Pennsylvania"),
        (7, "PPL", 9000, "Pennsylvania"),
    )
)


def forecast(**changes: Any) -> dict[str, Any]:
    """Three days of Beijing."""
    return {
        "latitude": 39.875,
        "longitude": 116.375,
        "utc_offset_seconds": 28800,
        "timezone": "Asia/Shanghai",
        "current_units": {"time": "iso8601", "temperature_2m": "°C", "wind_speed_10m": "m/s"},
        "current": {
            "time": "2026-11-21T22:15",
            "interval": 900,
            "temperature_2m": 3.4,
            "apparent_temperature": -0.04,
            "relative_humidity_2m": 45,
            "weather_code": 2,
            "wind_speed_10m": 2.5,
            "wind_direction_10m": 318,
        },
        "daily": {
            "time": ["2026-11-21", "2026-11-22", "2026-11-23"],
            "weather_code": [2, 71, 0],
            "temperature_2m_max": [9.6, 2.0, 6.1],
            "temperature_2m_min": [-1.5, -4.2, -6],
            "precipitation_probability_max": [3, 80, None],
        },
    } | changes
