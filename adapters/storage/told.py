"""The lines for owners about the journal. Pure.

The brackets hold what differs from one time to the next (`bot/wiring/troubles.py`).
"""

from __future__ import annotations

from typing import Final

CANNOT: Final = (
    "数据库写不进去 ({place}: {reason})。{meanwhile}",
    "The journal cannot be written ({place}: {reason}). {meanwhile}",
)
FROM_MEMORY: Final = (
    "机器人先靠内存运行，能写了马上补上；如果在那之前退出，内存里的就丢了。",
    (
        "The bot goes on from memory, and writes what it keeps there as soon as it can; if it ended"
        " before that, what it keeps there would be lost."
    ),
)
SILENCE: Final = (
    "恢复之前什么都不说：别的 worker 可能已经接手。",
    "Nothing is said until it can be: another worker may take over meanwhile.",
)
AGAIN: Final = (
    "数据库恢复写入 ({place})：补写了 {caught_up} 条记录，丢了 {lost} 条。",
    "The journal is written again ({place}): {caught_up} entries caught up, {lost} lost.",
)
LOST: Final = (
    "到退出时数据库还是写不进去 ({place})：丢了 {lost} 条记录。",
    "The journal could not be written before the end ({place}): {lost} entries are lost.",
)
NOT_WHOLE: Final = (
    "数据库不完整 ({file}: {what})：机器人上次是被强行终止的。{mend}",
    "The journal is not whole ({file}: {what}), after the bot was killed. {mend}",
)
DAMAGED: Final = (
    "数据库损坏 ({file}: {what})。{mend}",
    "The journal is damaged ({file}: {what}). {mend}",
)
MEND: Final = (
    "请停下机器人；如果有备份，而且比缺失的部分新，就恢复备份（docs/zh/upgrade.md）；否则没有办法补救。",
    (
        "Stop the bot and go back to a backup if you have one that is younger than what is missing"
        " (docs/upgrade.md); else there is nothing to be done."
    ),
)
LOG_GONE: Final = ("预写日志（-wal）不见了", "its write-ahead log is gone")
LOG_EMPTIED: Final = ("预写日志（-wal）被清空了", "its write-ahead log was emptied")
LOG_CUT: Final = (
    "预写日志（-wal）损坏或被截断：{pages} 页里只有 {good} 页能读",
    "its write-ahead log is damaged or was cut off: {good} of {pages} pages can be read",
)
