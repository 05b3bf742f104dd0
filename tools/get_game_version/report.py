"""Reports versions in Chinese or English. Pure."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from tools.get_game_version.games import Missed
from tools.get_game_version.names import Language
from tools.get_game_version.releases import Release
from tools.get_game_version.resolver import FoundGame
from tools.get_game_version.rows import Game

ENGLISH = {
    "正式版": "release", "快照": "snapshot", "预览版": "preview", "测试版": "beta",
    "实验版": "experimental", "国服": "China", "国际服": "global", "美服": "Americas",
    "欧服": "Europe", "日服": "Japan", "韩服": "Korea", "B服": "bilibili server",
    "iOS 国区": "iOS, China", "预下载": "pre-download", "安卓": "Android", "经典版": "classic",
    "稳定版": "stable", "最新版": "latest", "国服预下载": "China, pre-download",
    "国际服预下载": "global, pre-download", "国服资源": "China, resources", "客户端": "client",
}  # fmt: skip
"""English names of the table's channels; unknown ones stay as they are."""


@dataclass(frozen=True, slots=True)
class ChannelAnswer:
    """One channel's versions. `trouble` says why it failed; `age` is then in seconds."""

    channel: str
    releases: tuple[Release, ...] = ()
    age: float = 0.0
    trouble: str = ""


def report_versions(
    found: FoundGame, answers: tuple[ChannelAnswer, ...], language: Language
) -> str:
    """The game, a line for each channel that answered, and the channels that did not."""
    lines = [say_title(found.game, language) + _say_store(found.store, language)]
    lines += [
        say_release(release, answer, language) for answer in answers for release in answer.releases
    ]
    failures = [
        f"{say_channel(answer.channel, language)} ({answer.trouble})"
        for answer in answers
        if _failed(answer)
    ]
    if failures:
        lines.append(("没有查到：" if language == "zh" else "No answer: ") + "; ".join(failures))
    return "\n".join(lines)


def report_silence(
    found: FoundGame, answers: tuple[ChannelAnswer, ...], hosts: tuple[str, ...], language: Language
) -> str:
    """That no channel answered, which hosts were asked, and what the model should do."""
    title = say_title(found.game, language)
    failures = "; ".join(
        f"{say_channel(answer.channel, language)} ({answer.trouble})"
        for answer in answers
        if _failed(answer)
    )
    if language == "zh":
        return (
            f"{title} 现在查不到版本，问过 {'、'.join(hosts)}：{failures or '没有任何版本'}。"
            "请如实告诉用户暂时查不到，不要编造版本号。"
        )
    return (
        f"The version of {title} cannot be had right now. Asked: {', '.join(hosts)}: "
        f"{failures or 'no version'}. "
        "Tell the user so; do not make up a version."
    )


def report_missed(name: str, missed: Missed, language: Language) -> str:
    """That no game was clearly found, and what the model should do."""
    troubles = "; ".join(missed.troubles)
    if language == "zh":
        near = f"可能是：{'；'.join(missed.near)}。" if missed.near else ""
        why = f"有的地方没能问到（{troubles}）。" if troubles else ""
        return (
            f"不能确定“{name}”是哪个游戏，没有查版本。{near}{why}"
            "按对话判断或问用户，用完整的名字再查一次，并在 name_en 里给出英文名；"
            "仍查不到就如实告诉用户，不要编造版本号。"
        )
    near = f"Perhaps it is one of: {'; '.join(missed.near)}. " if missed.near else ""
    why = f"Some could not be asked ({troubles}). " if troubles else ""
    return (
        f'It is not certain which game "{name}" is, so no version was looked up. {near}{why}Tell '
        "from the conversation "
        "or ask the user, then ask again with its full name; if that fails too, tell the user so "
        "and do not make up a "
        "version."
    )


def say_title(game: Game, language: Language) -> str:
    """Both names of a game, the question's language first."""
    names = (game.zh, game.en) if language == "zh" else (game.en, game.zh)
    return " / ".join(dict.fromkeys(names))


def say_channel(channel: str, language: Language) -> str:
    return channel if language == "zh" else ENGLISH.get(channel, channel)


def say_release(release: Release, answer: ChannelAnswer, language: Language) -> str:
    """One line: channel, version, date, notes, source, and age if it is old."""
    zh = language == "zh"
    channel = say_channel(release.channel, language)
    if release.coming:
        channel += "预下载" if zh else ", pre-download"
    parts = [_say_version(release, language)]
    if release.raw:
        parts.append(f"数据版本 {release.raw}" if zh else f"{release.raw} in the data")
    if release.build:
        parts.append(
            f"build {release.build}" + (_say_day(release.built, language) if release.built else "")
        )
    if release.title:
        parts.append(("最新公告《{}》" if zh else 'latest announcement "{}"').format(release.title))
        parts[-1] += _say_day(release.titled, language)
    parts += [note for note in (release.note if zh else release.note_en,) if note]
    parts.append(f"来源 {release.source}" if zh else f"source {release.source}")
    line = f"{channel}：" + "，".join(parts) if zh else f"{channel}: " + ", ".join(parts)
    return line + _say_age(answer, language)


def _say_version(release: Release, language: Language) -> str:
    if release.version:
        return release.version + _say_day(release.released, language)
    return "没有公布版本号" if language == "zh" else "no version number published"


def _say_day(day: dt.date | None, language: Language) -> str:
    if language == "zh":
        return f"（{day:%Y-%m-%d}）" if day else "（日期未知）"
    return f" ({day:%Y-%m-%d})" if day else " (date unknown)"


def _say_age(answer: ChannelAnswer, language: Language) -> str:
    if not answer.trouble:
        return ""
    hours, minutes = divmod(round(answer.age / 60), 60)
    if language == "zh":
        age = (f"{hours} 小时" if hours else "") + (
            f"{minutes} 分钟" if minutes or not hours else ""
        )
        return f"（这是 {age}前查到的，现在查不到：{answer.trouble}）"
    age = " ".join(
        part
        for part in (f"{hours} h" * bool(hours), f"{minutes} min" * bool(minutes or not hours))
        if part
    )
    return f" (found {age} ago, cannot be had now: {answer.trouble})"


def _say_store(store: str, language: Language) -> str:
    if not store:
        return ""
    return f"（按名字在 {store} 找到的）" if language == "zh" else f" (found by name on {store})"


def _failed(answer: ChannelAnswer) -> bool:
    return bool(answer.trouble) and not answer.releases
