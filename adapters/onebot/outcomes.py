"""The meaning of a refused send: that QQ did not take it, or only that nobody confirmed it. Data,
the first row counts.

Servers answer "failed" in both cases. A message that QQ may have taken is never sent again by
anybody (onebot.md 6.1), so whatever comes after the frame went to QQ is UNKNOWN; what is known to
come before it is REFUSED.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class SendOutcome(Enum):
    """The outcome of a send that its server calls failed."""

    REFUSED = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """Answers with one of these retcodes (none: any) whose words match (none: any)."""

    outcome: SendOutcome
    retcodes: tuple[int, ...] = ()
    words: re.Pattern[str] | None = None

    def fits(self, retcode: int, words: str) -> bool:
        """Whether an answer is of this kind."""
        has_code = not self.retcodes or retcode in self.retcodes
        return has_code and (self.words is None or self.words.search(words) is not None)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


ROWS: Final = (
    # The call itself was not understood, or not allowed: it was never carried out (onebot.md 2).
    OutcomeRow(SendOutcome.REFUSED, retcodes=(400, 401, 403, 404, 413, 1400, 1401, 1403, 1404)),
    # NapCat: it waited for QQ, which had said by then that the bot is muted (onebot.md 2).
    OutcomeRow(SendOutcome.REFUSED, words=_words(r'"result"\s*:\s*120\b')),
    # NapCat: "Timeout: NTEvent ...sendMsg". LLBot: "waitForSelfEcho timeout", after QQ took it;
    # older ones "invoke timeout, ...sendMsg, [the message]" (LuckyLilliaBot
    # src/ntqqapi/api/msg.ts).
    OutcomeRow(SendOutcome.UNKNOWN, words=_words(r"time[- ]?out\b.*sendmsg|waitForSelfEcho")),
    # Files are fetched and carried to QQ before there is a message.
    OutcomeRow(
        SendOutcome.REFUSED,
        words=_words(r"SsoSendLongMsg|download|upload|highway|下载|上传|识别URL"),
    ),
    # Whoever else stopped waiting.
    OutcomeRow(SendOutcome.UNKNOWN, words=_words(r"time[ds]?[- ]?out\b|超时")),
    # Lagrange v1: no answer from QQ (Lagrange.Core OperationLogic.SendMessage: 9057, before that
    # 9000) ...
    OutcomeRow(SendOutcome.UNKNOWN, retcodes=(9000, 9057)),
    # ... and "failed" with QQ's result 0, without words: it took the message and gave it no number.
    OutcomeRow(SendOutcome.UNKNOWN, retcodes=(0,), words=_words(r"^$")),
    # "async" of the standard: it will be done, and nobody will tell.
    OutcomeRow(SendOutcome.UNKNOWN, retcodes=(1,), words=_words(r"^$")),
    # go-cqhttp: the message left, and its echo did not come: risk control, or a lost echo.
    OutcomeRow(
        SendOutcome.UNKNOWN,
        retcodes=(100,),
        words=_words(r"SEND_MSG_API_ERROR|请参考\s*go-cqhttp\s*端输出"),
    ),
)


def judge_refusal(retcode: int, words: str) -> SendOutcome:
    """The outcome of a send that was answered so; `words` is all text of the answer."""
    return next((row.outcome for row in ROWS if row.fits(retcode, words)), SendOutcome.REFUSED)
