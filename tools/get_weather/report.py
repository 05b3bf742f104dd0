"""Reports places and weather in Chinese or English. Pure."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from frostagent.types.errors import InvalidArguments
from tools.get_weather.places import Ambiguous, Chosen, Language, NotFound, Query, WeatherPlace
from tools.get_weather.weather import WINDS, Alert, Day, Hour, Now, Weather, say_code

DAYS_AHEAD = 7  # days that can be requested, including today
DAYS_AWAY = {
    "today": 0, "tonight": 0, "now": 0, "今天": 0, "今日": 0, "今晚": 0, "现在": 0,
    "tomorrow": 1, "明天": 1, "明日": 1, "明晚": 1,
    "后天": 2, "day after tomorrow": 2, "大后天": 3,
}  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
CHINESE_WEEKDAY = re.compile(r"(?:这|本|下)?(?:周|星期|礼拜)([一二三四五六日天])")
NAMED_DAYS = {
    "zh": ("今天", "明天", "后天"),
    "en": ("today", "tomorrow", "in 2 days"),
}
SHORT_WEEKDAYS = {
    "zh": ("周一", "周二", "周三", "周四", "周五", "周六", "周日"),
    "en": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
}


def read_day(text: str, today: dt.date) -> dt.date:
    """The requested day, within seven; a weekday is the next one. Raises InvalidArguments."""
    word = " ".join(text.casefold().split())
    if word in DAYS_AWAY:
        return today + dt.timedelta(days=DAYS_AWAY[word])
    if (weekday := _weekday(word)) is not None:
        return today + dt.timedelta(days=(weekday - today.weekday()) % 7)
    try:
        date = dt.date.fromisoformat(word)
    except ValueError:
        raise _wrong(
            f"{text[:40]!r} is no day; write a date as 2026-11-24, or today, tomorrow, a weekday"
        ) from None
    if not 0 <= (date - today).days < DAYS_AHEAD:
        last = today + dt.timedelta(days=DAYS_AHEAD - 1)
        raise _wrong(f"there is a forecast only from {today} to {last}; tell the user so")
    return date


def _weekday(word: str) -> int | None:
    if found := CHINESE_WEEKDAY.fullmatch(word):
        return "一二三四五六日".index("日" if found[1] == "天" else found[1])
    return WEEKDAYS.index(word) if word in WEEKDAYS else None


def _wrong(problem: str) -> InvalidArguments:
    return InvalidArguments(f"day: {problem}", fields=(f"day: {problem}",))


Units: TypeAlias = Literal["metric", "imperial"]

ALERTS = 5  # warnings that are reported
EVERY = 3  # hours between two that are reported
MILES = 2.2369  # mph per m/s


def report_weather(
    chosen: Chosen,
    weather: Weather,
    *,
    units: Units,
    language: Language,
    now_there: dt.datetime,
    days: int = 3,
    day: dt.date | None = None,
    age: float = 0.0,
    is_stale: bool = False,
) -> str:
    """The whole answer: place, warnings, current weather, hours, days, observation time, credit.

    `now_there` is the local time at the place. `day` limits the answer to that day. `age` in
    seconds is reported if `is_stale`.
    """
    zh = language == "zh"
    today = now_there.date()
    place = (
        f"{say_path(chosen.place, language)} ({chosen.place.latitude:.2f}, "
        f"{chosen.place.longitude:.2f})"
    )
    lines = [f"地点：{place}" if zh else f"Place: {place}", *_say_alerts(weather.alerts, language)]
    if day is None or day == today:
        lines.append(("现在：" if zh else "Now: ") + _say_now(weather.now, units, language))
    lines += _say_hours(weather.hours, now_there, day or today, units, language)
    wanted = [one for one in weather.days if one.date >= today][:days]
    if day is not None:
        wanted = [one for one in weather.days if one.date == day]
    lines += [_say_day(one, today, units, language) for one in wanted]
    if not wanted:
        lines.append(
            "这一天没有预报，请如实告诉用户。"
            if zh
            else "There is no forecast for that day; say so."
        )
    elif day is None and len(wanted) < days:
        count = len(wanted)
        lines.append(
            f"只查到 {count} 天的预报，请如实告诉用户。"
            if zh
            else f"There is a forecast for only {count} days; say so."
        )
    return "\n".join(
        (
            *lines,
            *_say_source(chosen, weather, language, age=age, is_stale=is_stale),
            weather.credit,
        )
    )


def report_ambiguous(query: Query, choice: Ambiguous) -> str:
    """The paths to choose from, each a valid question."""
    paths = _list_paths(choice.places, query.language)
    if query.language == "zh":
        paths += f"\n……还有 {choice.more} 处" if choice.more else ""
        what = "范围太大，里面有这些城市" if choice.within else "可能指下面这些地方，不知道是哪一个"
        return (
            f"“{query.name}”{what}，没有查天气：\n{paths}\n请按对话判断或问用户，再用上面的完整写法查一次；"
            "要找的地方不在其中时，写明它在哪个省市或国家，或换它的英文名再查。"
        )
    paths += f"\n... and {choice.more} more" if choice.more else ""
    what = (
        "is too large; in it are"
        if choice.within
        else "may be any of these places, so no weather was fetched"
    )
    return (
        f'"{query.name}" {what}:\n{paths}\n'
        "Tell from the conversation or ask the user which is meant, then ask again as "
        '"Springfield, Illinois".'
    )


def report_not_found(query: Query, choice: NotFound) -> str:
    """The advice on what to try instead."""
    asked = ", ".join((query.name, *query.within))
    paths = _list_paths(choice.near, query.language)
    if query.language == "zh":
        near = f"名字相近的地方（未必是用户要的）：\n{paths}\n" if paths else ""
        return (
            f"没有找到“{asked}”。{near}请换一个更大的地名，或换英文名再查；"
            "仍查不到就如实告诉用户，不要编造天气。"
        )
    near = f"Places with a similar name:\n{paths}\n" if paths else ""
    return (
        f'There is no place "{asked}". {near}Try a bigger place near it, another spelling, or its '
        "name in Chinese; "
        "if that fails too, tell the user so and do not make up any weather."
    )


def say_path(place: WeatherPlace, language: Language) -> str:
    """A place with all it lies in, as a valid question."""
    return place.title or ("，" if language == "zh" else ", ").join(place.path)


def say_degrees(celsius: float, units: Units, *, sign: bool = True) -> str:
    """18.8°C, or the same in Fahrenheit."""
    degrees = celsius * 9 / 5 + 32 if units == "imperial" else celsius
    unit = "" if not sign else "F" if units == "imperial" else "C"
    return f"{round(degrees, 1 if sign else None) + 0.0:g}°{unit}"  # + 0.0 turns -0 into 0


def say_condition(code: int | None, text: str, language: Language) -> str:
    """The source's own Chinese word, which is finer, or else the code's."""
    return text if text and language == "zh" else say_code(code, language)


def say_age(seconds: float, language: Language) -> str:
    """2 小时 5 分钟."""
    hours, minutes = divmod(max(1, round(seconds / 60)), 60)
    if language == "zh":
        return (
            (f"{hours} 小时" if hours else "")
            + (" " if hours and minutes else "")
            + (f"{minutes} 分钟" if minutes else "")
        )
    return " ".join(
        filter(None, (f"{hours} h" if hours else "", f"{minutes} min" if minutes else ""))
    )


def _say_now(now: Now, units: Units, language: Language) -> str:
    zh = language == "zh"
    parts = [say_condition(now.code, now.text, language), say_degrees(now.temperature, units)]
    if now.feels_like is not None:
        parts.append(("体感 " if zh else "feels like ") + say_degrees(now.feels_like, units))
    if now.humidity is not None:
        parts.append(("湿度 " if zh else "humidity ") + f"{now.humidity:.0f}%")
    if wind := _say_wind(now, units, language):
        parts.append(wind)
    return ("，" if zh else ", ").join(parts)


def _say_wind(now: Now, units: Units, language: Language) -> str:
    zh = language == "zh"
    origin = "" if now.wind_from is None else WINDS[language][round(now.wind_from / 45) % 8]
    if now.wind_speed is not None:
        speed = (
            f"{now.wind_speed * MILES:.0f} mph"
            if units == "imperial"
            else f"{now.wind_speed:.1f} m/s"
        )
    elif now.force:
        speed = f"{now.force} 级" if zh else f"force {now.force}"
    else:
        return ""
    return f"{origin or '风速'} {speed}" if zh else " ".join(filter(None, ("wind", origin, speed)))


def _say_alerts(alerts: Sequence[Alert] | None, language: Language) -> Iterable[str]:
    zh = language == "zh"
    if alerts is None:
        return
    if not alerts:
        yield "预警：目前没有" if zh else "Warnings: none at present"
    for alert in alerts[:ALERTS]:
        until = (
            ""
            if alert.until is None
            else f"（至 {alert.until:%m-%d %H:%M}）"
            if zh
            else f" (until {alert.until:%m-%d %H:%M})"
        )
        yield (
            ("预警：" if zh else "Warning: ")
            + alert.title
            + until
            + (f" {alert.detail}" if alert.detail else "")
        )


def _say_hours(
    hours: Iterable[Hour], now_there: dt.datetime, date: dt.date, units: Units, language: Language
) -> Iterable[str]:
    """Every third hour of that day that is still to come."""
    ahead = [
        hour
        for hour in hours
        if hour.time.date() == date and hour.time > now_there and hour.time.hour % EVERY == 0
    ]
    if ahead:
        zh = language == "zh"
        said = ("；" if zh else "; ").join(_say_hour(hour, units, language) for hour in ahead)
        yield ("逐时：" if zh else "Hours: ") + said


def _say_hour(hour: Hour, units: Units, language: Language) -> str:
    zh = language == "zh"
    time = f"{hour.time:%H} 时" if zh else f"{hour.time:%H:%M}"
    rain = _say_rain(hour.rain_chance, hour.rain, language)
    parts = (
        time,
        say_condition(hour.code, hour.text, language),
        say_degrees(hour.temperature, units),
        rain,
    )
    return " ".join(filter(None, parts))


def _say_day(day: Day, today: dt.date, units: Units, language: Language) -> str:
    zh = language == "zh"
    away = (day.date - today).days
    name = f"{NAMED_DAYS[language][away]} " if 0 <= away < len(NAMED_DAYS[language]) else ""
    parts = [say_condition(day.code, day.text, language)]
    if day.low is not None and day.high is not None:
        parts.append(f"{say_degrees(day.low, units)} ~ {say_degrees(day.high, units)}")
    if rain := _say_rain(day.rain_chance, day.rain, language):
        parts.append(rain)
    return f"{name}{day.date:%m-%d}" + ("：" if zh else ": ") + ("，" if zh else ", ").join(parts)


def _say_rain(chance: float | None, amount: float | None, language: Language) -> str:
    if chance is not None:
        return ("降水概率 " if language == "zh" else "chance of rain ") + f"{chance:.0f}%"
    if amount is not None:
        return ("降水 " if language == "zh" else "rain ") + f"{round(amount, 1):g} mm"
    return ""


def _say_source(
    chosen: Chosen, weather: Weather, language: Language, *, age: float, is_stale: bool
) -> Iterable[str]:
    when = f"{weather.now.time:%Y-%m-%d %H:%M}"
    others = "; ".join(say_path(other, language) for other in chosen.others)
    if language == "zh":
        yield f"观测时间：{when}（{f'当地时间 {weather.zone}'.strip()}）"
        if weather.source:
            yield f"来源：{weather.source}"
        if is_stale:
            yield (
                "注意：数据源现在都没有回应，以上是 "
                f"{say_age(age, language)}前取得的数据，请告诉用户。"
            )
        if others:
            yield f"另有同名地点：{others}"
    else:
        yield f"Observed: {when} ({f'local time {weather.zone}'.strip()})"
        if weather.source:
            yield f"Source: {weather.source}"
        if is_stale:
            yield (
                f"Note: no source answers at the moment; this is {say_age(age, language)} old. "
                "Tell the user."
            )
        if others:
            yield f"Other places of this name: {others}"


def _list_paths(places: Sequence[WeatherPlace], language: Language) -> str:
    return "\n".join(
        f"{number}. {say_path(place, language)}" for number, place in enumerate(places, 1)
    )
