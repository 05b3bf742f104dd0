"""New groups: whether the bot speaks there, what the owners are asked about one, and how their word
is read. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Mode(StrEnum):
    """How the bot is in a group. ASKING: no owner has decided, nor may have heard of it; ASKED: one
    has heard. It only observes in both, and where it is OFF. In a SHADOW what it would say is a
    draft for the owners.
    """

    LIVE = "live"
    SHADOW = "shadow"
    OFF = "off"
    ASKING = "asking"
    ASKED = "asked"


def mode_of_new_groups(setting: str, *, has_owners: bool, has_listed_groups: bool) -> Mode:
    """How the bot is in groups that it does not know, by BOT_NEW_GROUP. If only some groups are
    listed they are live, and without owners nobody can be asked.
    """
    if has_listed_groups or (setting == "ask" and not has_owners):
        return Mode.LIVE
    return Mode.ASKING if setting == "ask" else Mode(setting)


NAMES: Final = {
    Mode.LIVE: ("上线", "live"),
    Mode.SHADOW: ("影子", "shadow"),
    Mode.OFF: ("忽略", "off"),
    Mode.ASKING: ("等主人的话，还没问到", "waits for an owner, none was reached"),
    Mode.ASKED: ("等主人的话", "waits for an owner"),
}
WORDS: Final = {
    "上线": Mode.LIVE,
    "live": Mode.LIVE,
    "影子": Mode.SHADOW,
    "shadow": Mode.SHADOW,
    "忽略": Mode.OFF,
    "ignore": Mode.OFF,
}

QUESTION = (
    (
        "新群 {group}：有人说话了。我先只看不说。\n"
        "要我在那里回答吗？请引用这条回复，或带上群号（如“上线 {group}”）：\n"
        "上线（live）/ 影子（shadow，回答先给你看）/ 忽略（ignore）"
    ),
    (
        "New group {group}: somebody spoke there. I only read along for now.\n"
        'Shall I answer there? Quote this, or name the group (as in "live {group}"):\n'
        "live / shadow (you see my answers first) / ignore"
    ),
)
LEFT_ALONE = (
    (
        "新群 {group}：有人说话了。按设置（BOT_NEW_GROUP=off）我只看不说；"
        "要我在那里回答，就发 /live {group}。"
    ),
    (
        "New group {group}: somebody spoke there. By the settings (BOT_NEW_GROUP=off) I only read "
        "along; /live {group} has me answer there."
    ),
)
MET = (
    (
        "第一次在这些群里看到有人说话：{groups}。按设置（BOT_NEW_GROUP=live），谁叫我我都回答；"
        "不要我在哪个群里说话，就发 /off 加上群号。"
    ),
    (
        "New groups in which somebody spoke: {groups}. By the settings (BOT_NEW_GROUP=live) "
        "whoever calls me there is answered; /off with the number of a group has me only read "
        "along."
    ),
)
BEGINS = re.compile(r"(?:新群 ([0-9]{1,19})：|New group ([0-9]{1,19}): )")
ANSWER = re.compile(
    r"\s*(?P<word>上线|影子|忽略|live|shadow|ignore)(?:\s*(?P<group>[0-9]{1,19}))?[\s。.!！]*",
    re.IGNORECASE | re.ASCII,
)
DONE = {
    Mode.LIVE: (
        "好，群 {group} 上线了：有人叫我，我就回答。",
        "Fine, group {group} is live: whoever calls me there is answered.",
    ),
    Mode.SHADOW: (
        "好，群 {group} 先当影子：我的回答作为草稿给你看，你说发才发。",
        "Fine, group {group} is a shadow: you see my answers, and say which are published.",
    ),
    Mode.OFF: (
        "好，群 {group} 忽略：我只看不说。",
        "Fine, group {group} is ignored: I only read along.",
    ),
}
VOID = (
    "这条回复是断线时发的，没有算数；群 {group} 还在等，请再回复一次。",
    "That answer came while I was away and is void; group {group} still waits: answer again.",
)
DECIDED = (
    "群 {group} 已经定了：{mode}。要改就发 /live、/shadow 或 /off {group}。",
    "Group {group} is decided already: {mode}. To change it: /live, /shadow or /off {group}.",
)


@dataclass(frozen=True, slots=True)
class GroupWord:
    """An owner's word about a new group; `group` is its number, None if the word names none."""

    mode: Mode
    group: int | None = None


def read_word(text: str) -> GroupWord | None:
    """`上线`, `忽略 4242`, `shadow 4242`; None for anything else."""
    match = ANSWER.fullmatch(text)
    if match is None:
        return None
    named = match["group"]
    return GroupWord(WORDS[match["word"].lower()], None if named is None else int(named))


def group_in(text: str) -> int:
    """The group that a question of ours is about; 0 for any other text."""
    match = BEGINS.match(text)
    return int(match[1] or match[2]) if match else 0
