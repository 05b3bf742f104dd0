"""Bodies in the sources' documented shapes, with made-up figures of ours."""

from __future__ import annotations

from typing import Any

PLACES = "/geocoding-api.open-meteo.com/v1/search"
FORECAST = "/api.open-meteo.com/v1/forecast"
MET = "/api.met.no/weatherapi/locationforecast/2.0/compact"
AMAP = "/restapi.amap.com/v3/weather/weatherInfo"
QWEATHER_HOST = "abc1234xyz.def.qweatherapi.com"

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
        "hourly": {
            "time": [f"2026-11-{day}T{hour:02}:00" for day in (21, 22) for hour in range(24)],
            "temperature_2m": [hour / 2 for hour in range(48)],
            "precipitation_probability": [5] * 47 + [None],
            "weather_code": [2] * 24 + [71] * 24,
        },
        "daily": {
            "time": ["2026-11-21", "2026-11-22", "2026-11-23"],
            "weather_code": [2, 71, 0],
            "temperature_2m_max": [9.6, 2.0, 6.1],
            "temperature_2m_min": [-1.5, -4.2, -6],
            "precipitation_probability_max": [3, 80, None],
        },
    } | changes


# --- wttr.in ------------------------------------------------------------------------------------


def wttr_path(latitude: float = 39.904, longitude: float = 116.407) -> str:
    return f"/wttr.in/{latitude:.2f},{longitude:.2f}"


def wttr(**changes: Any) -> dict[str, Any]:
    """Two days; like the real one it writes every figure as a text."""
    hourly = [
        {"time": str(hour), "tempC": str(hour // 100 - 5), "chanceofrain": "10", "chanceofsnow": "0"}
        | {"weatherDesc": [{"value": "Light rain shower " if hour == 1200 else "Clear "}]}
        for hour in range(0, 2400, 300)
    ]
    return {
        "current_condition": [
            {
                "temp_C": "4",
                "FeelsLikeC": "-0",
                "humidity": "58",
                "windspeedKmph": "36",
                "winddirDegree": "235",
                "weatherCode": "122",
                "weatherDesc": [{"value": "Overcast"}],
                "localObsDateTime": "2026-11-21 10:37 PM",
            }
        ],
        "weather": [
            {"date": "2026-11-21", "maxtempC": "11", "mintempC": "1", "hourly": hourly},
            {"date": "2026-11-22", "maxtempC": "9", "mintempC": "-6", "hourly": []},
        ],
    } | changes


# --- MET Norway ---------------------------------------------------------------------------------


def met_step(time: str, celsius: float, *, one: str = "", six: str = "", rain: float = 0.0) -> dict[str, Any]:
    """A row of `timeseries`."""
    data: dict[str, Any] = {
        "instant": {"details": {"air_temperature": celsius, "wind_speed": 5.8, "wind_from_direction": 90.0}}
    }
    for name, symbol in (("next_1_hours", one), ("next_6_hours", six)):
        if symbol:
            data[name] = {"summary": {"symbol_code": symbol}, "details": {"precipitation_amount": rain}}
    return {"time": time, "data": data}


def met(*steps: dict[str, Any]) -> dict[str, Any]:
    """Without steps: two days around the stopped clock's 1970-01-12T13:46:40Z."""
    default = (
        met_step("1970-01-12T13:00:00Z", 3.1, one="clearsky_day"),
        met_step("1970-01-12T14:00:00Z", 2.5, one="heavyrainshowersandthunder_day", rain=3.1),
        met_step("1970-01-12T15:00:00Z", 1.5, one="lightsnow", rain=0.4),
        met_step("1970-01-13T04:00:00Z", -4.0, six="cloudy", rain=1.0),
        met_step("1970-01-13T10:00:00Z", -6.5, six="lightssleetshowersandthunder_day"),
    )
    return {"type": "Feature", "properties": {"meta": {}, "timeseries": list(steps or default)}}


# --- AMap ---------------------------------------------------------------------------------------


def amap_live(**changes: Any) -> dict[str, Any]:
    live = {
        "province": "北京",
        "city": "朝阳区",
        "adcode": "110105",
        "weather": "阴",
        "temperature": "4",
        "winddirection": "东北",
        "windpower": "≤3",
        "humidity": "52",
        "reporttime": "2026-11-21 22:03:12",
    }
    return {"status": "1", "count": "1", "info": "OK", "infocode": "10000", "lives": [live | changes]}


def amap_casts() -> dict[str, Any]:
    casts: list[dict[str, Any]] = [
        {"date": f"2026-11-{day}", "week": "6", "dayweather": by_day, "nightweather": by_night, "daytemp": "9"}
        | {"nighttemp": "-2", "daywind": "北", "nightwind": "北", "daypower": "1-3", "nightpower": "1-3"}
        for day, by_day, by_night in ((21, "晴", "晴"), (22, "小雪", "多云"), (23, "阴", []), (24, "晴", "晴"))
    ]
    forecast = {"city": "朝阳区", "adcode": "110105", "reporttime": "2026-11-21 18:00:00", "casts": casts}
    return {"status": "1", "count": "1", "info": "OK", "infocode": "10000", "forecasts": [forecast]}


AMAP_BAD_KEY = {"status": "0", "info": "INVALID_USER_KEY", "infocode": "10001"}


# --- QWeather -----------------------------------------------------------------------------------


def qweather_path(what: str, latitude: float = 39.904, longitude: float = 116.407) -> str:
    """`what` is current, daily, hourly or alert."""
    kind = "weatheralert/v1/current" if what == "alert" else f"weather/v1/{what}"
    return f"/{QWEATHER_HOST}/{kind}/{latitude:.2f}/{longitude:.2f}"


def qweather_now(text: str = "少云") -> dict[str, Any]:
    return {
        "metadata": {"tag": "t"},
        "condition": {"text": text, "code": "102"},
        "temperature": {"value": 31.71, "unit": "°C"},
        "feelsLike": {"value": 33.64, "unit": "°C"},
        "humidity": 0.69,
        "wind": {"direction": {"degree": 226, "compass": "sw"}, "speed": {"value": 4.74, "unit": "m/s"}, "scale": 3},
    }


def qweather_days(zone: str = "+08:00") -> dict[str, Any]:
    def half(text: str, chance: float | None) -> dict[str, Any]:
        rain = {"amount": {"value": 0.7, "unit": "mm"}, "probability": chance, "type": "rain"}
        return {"condition": {"text": text, "code": "305"}, "precipitation": rain}

    return {
        "days": [
            {
                "forecastStartTime": f"1970-01-{day}T00:00{zone}",
                "forecastEndTime": f"1970-01-{day + 1}T00:00{zone}",
                "temperatureMax": {"value": 30.0 + day, "unit": "°C"},
                "temperatureMin": {"value": 20.5, "unit": "°C"},
                "daytime": half(by_day, 0.64),
                "nighttime": half(by_night, None),
            }
            for day, by_day, by_night in ((12, "暴雨", "小雨"), (13, "晴", "晴"))
        ]
    }


def qweather_hours() -> dict[str, Any]:
    return {
        "hours": [
            {
                "forecastTime": f"1970-01-12T{hour}:00Z",
                "condition": {"text": "Overcast", "code": "104"},
                "temperature": {"value": 31.0, "unit": "°C"},
                "precipitation": {"probability": 0.31},
            }
            for hour in (14, 15, 16)
        ]
    }


def qweather_alerts(*headlines: str) -> dict[str, Any]:
    return {
        "metadata": {"zeroResult": not headlines},
        "alerts": [
            {"headline": line, "description": f"{line}，请注意防范。\n", "expireTime": "1970-01-13T11:19+08:00"}
            for line in headlines
        ],
    }


QWEATHER_REFUSED = {"error": {"status": 401, "type": "x#unauthorized", "title": "Unauthorized", "detail": "No."}}
