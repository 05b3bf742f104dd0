"""The messages to owners about the journal. Pure.

Brackets enclose what varies between messages of one kind (`bot/outbox/owner_alerts.py`).
"""

from __future__ import annotations

from typing import Final

from bot.core.language import CATALOGUE, Phrase

CANNOT: Final = Phrase(
    "数据库写不进去 ({place}: {reason})。{meanwhile}",
    "The journal cannot be written ({place}: {reason}). {meanwhile}",
)
FROM_MEMORY: Final = Phrase(
    "机器人先靠内存运行，能写了马上补上；如果在那之前退出，内存里的就丢了。",
    "The bot goes on from memory, and writes what it keeps there as soon as it can; if it ended"
    " before that, what it keeps there would be lost.",
)
SILENCE: Final = Phrase(
    "恢复之前什么都不说：别的 worker 可能已经接手。",
    "Nothing is said until it can be: another worker may take over meanwhile.",
)
AGAIN: Final = Phrase(
    "数据库恢复写入 ({place})：补写了 {caught_up} 条记录，丢了 {lost} 条。",
    "The journal is written again ({place}): {caught_up} entries caught up, {lost} lost.",
)
LOST: Final = Phrase(
    "到退出时数据库还是写不进去 ({place})：丢了 {lost} 条记录。",
    "The journal could not be written before the end ({place}): {lost} entries are lost.",
)
NOT_WHOLE: Final = Phrase(
    "数据库不完整 ({file}: {what})：机器人上次是被强行终止的。{fix}",
    "The journal is not whole ({file}: {what}), after the bot was killed. {fix}",
)
DAMAGED: Final = Phrase(
    "数据库损坏 ({file}: {what})。{fix}", "The journal is damaged ({file}: {what}). {fix}"
)
MEND: Final = Phrase(
    "请停下机器人；如果有备份，而且比缺失的部分新，就恢复备份（docs/zh/upgrade.md）；否则没有办法补救。",
    "Stop the bot and go back to a backup if you have one that is younger than what is missing"
    " (docs/upgrade.md); else there is nothing to be done.",
)
LOG_GONE: Final = Phrase("预写日志（-wal）不见了", "its write-ahead log is gone")
LOG_EMPTIED: Final = Phrase("预写日志（-wal）被清空了", "its write-ahead log was emptied")
LOG_CUT: Final = Phrase(
    "预写日志（-wal）损坏或被截断：{pages} 页里只有 {good} 页能读",
    "its write-ahead log is damaged or was cut off: {good} of {pages} pages can be read",
)

NO_JOURNAL: Final = Phrase("这里没有数据库：{file}。", "There is no journal at {file}.")
BACKUP_EXISTS: Final = Phrase(
    "{file} 已经存在：换个名字，或者加 --force 覆盖。",
    "{file} exists already: choose another name, or overwrite it with --force.",
)
BACKUP_OWN: Final = Phrase(
    "{file} 是机器人自己的文件，换个名字。",
    "{file} is a file of the bot's own: choose another name.",
)
BACKUP_FAILED: Final = Phrase(
    "做不到（{file}：{why}）。什么都没有改动。",
    "It cannot be done ({file}: {why}). Nothing has changed.",
)
BACKUP_NEWER: Final = Phrase(
    "{file} 是更新版本的机器人的数据库（结构 {schema}，这个版本到 {ours}）：请用那个版本来备份。",
    "{file} is a database of a newer version of the bot (its schema is {schema}, ours {ours}):"
    " make the backup with that version.",
)
BACKUP_NOT_OURS: Final = Phrase(
    "{file} 不是 FrostAgent 的数据库。", "{file} is not a database of FrostAgent."
)
BACKUP_DAMAGED: Final = Phrase(
    "{file} 里的数据库已经损坏（{what}）：这样的备份恢复不了，所以没有做。",
    "The journal in {file} is damaged ({what}): it could not be restored, so nothing was done.",
)
BACKUP_SPOILT: Final = Phrase(
    "{file} 里的数据库读不出来（{what}）。什么都没有改动。",
    "The journal in {file} cannot be read ({what}). Nothing has changed.",
)
BACKUP_NOT_ONE: Final = Phrase(
    "{file} 不是完整的备份：不是由 `frostagent backup` 生成的，或者被截断、改动过。"
    "什么都没有改动。",
    "{file} is not a whole backup: `frostagent backup` did not make it, or it was cut off or"
    " changed since. Nothing has changed here.",
)
BACKUP_UNKNOWN_FORMAT: Final = Phrase(
    "这份备份来自 FrostAgent {theirs}，这个版本（{ours}）读不了它的格式："
    "请用 {theirs} 或更新的版本恢复。",
    "The backup was made by FrostAgent {theirs}, in a format that this version ({ours}) cannot"
    " read: restore it with {theirs} or a later version.",
)
BACKUP_TOO_NEW: Final = Phrase(
    "这份备份来自 FrostAgent {theirs}（数据库结构 {schema}），这个版本是 {ours}（结构 {own}）："
    "请用 {theirs} 或更新的版本恢复。",
    "The backup was made by FrostAgent {theirs} (schema {schema}), and this is {ours} (schema"
    " {own}): restore it with {theirs} or a later version.",
)
BACKUP_BUSY: Final = Phrase(
    "机器人正在使用 {file}{who}：先停下它（`docker compose stop bot`，"
    "或者在它的目录里运行 `frostagent stop`）。什么都没有改动。",
    "A bot is using {file}{who}: stop it first (`docker compose stop bot`, or"
    " `frostagent stop` in its folder). Nothing has changed.",
)
BACKUP_UNFINISHED: Final = Phrase(
    "{file} 的恢复中断了，还没有完成{why}：启动机器人，或者再运行一次 restore，就会接着完成。",
    "A restore of {file} was cut off before its end{why}: start the bot or run restore again,"
    " which completes it.",
)

# --- journals before the baseline; they follow a setting's or file's name, without a full stop

OLDER_SCHEMA: Final = Phrase(
    "是更早版本的机器人的数据库（结构 {schema}，这个版本从 {ours} 开始能读），什么都没有改动",
    "is a journal of an earlier version of the bot (its schema is {schema}, this version reads"
    " {ours} and later); nothing has changed",
)
OLDER_LINES: Final = Phrase(
    "里有更早版本没写完的 {count} 条记录（{file}），什么都没有改动",
    "has {count} entries of an earlier version that are not in its tables yet ({file}); nothing"
    " has changed",
)
OLDER_ROUNDS: Final = Phrase(
    "里有 {count} 个会话的记忆还是很早的版本的写法（{places}），什么都没有改动",
    "remembers {count} conversations in a form of early versions ({places}); nothing has changed",
)
BRING_UP: Final = Phrase(
    "先用提交 {commit} 启动一次再停下，然后换回这个版本：`git checkout {commit}`，"
    "`docker compose up -d --build bot`，启动好了再 `docker compose stop bot`，`git checkout -`"
    "（docs/zh/upgrade.md）",
    "Start commit {commit} on it once and stop it, then start this version again: `git checkout"
    " {commit}`, `docker compose up -d --build bot`, once it runs `docker compose stop bot`,"
    " `git checkout -` (docs/upgrade.md)",
)
RESET_FIRST: Final = Phrase(
    "先用提交 {commit} 启动（`git checkout {commit}`，`docker compose up -d --build bot`），"
    "在这些会话里对机器人说 /reset，`docker compose stop bot`，`git checkout -`，"
    "再启动这个版本（docs/zh/upgrade.md）",
    "Start commit {commit} on it (`git checkout {commit}`, `docker compose up -d --build bot`),"
    " say /reset to the bot in each of them, `docker compose stop bot`, `git checkout -`, then"
    " start this version (docs/upgrade.md)",
)
RESTORE_FIRST: Final = Phrase(
    "请用做这个备份的版本恢复，再像 docs/zh/upgrade.md 说的那样用提交 {commit} 把数据库升级好，"
    "然后换回这个版本",
    "Restore it with the version that made it, bring the database up to date with commit"
    " {commit} as docs/upgrade.md says, then start this version again",
)
BACKUP_OLDER: Final = Phrase("{file} {what}。{fix}。", "{file} {what}. {fix}.")
STANDARD_OUTPUT: Final = Phrase("标准输出", "standard output")
CATALOGUE.register(__name__, globals())
