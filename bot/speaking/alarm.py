"""The observer that tells the owner of runs that failed; how often, `bot/speaking/owner.py`
decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bot.domain.masking import Quoting
from bot.domain.run import RunEvent, RunFinished, Stop
from bot.speaking.owner import Owner

LINE: Final = ("运行 {run} 失败（{kind}）：{reason}", "Run {run} failed ({kind}): {reason}")
NO_REASON: Final = ("原因不明，请查看日志", "nobody knows why, look into the log")
LONG: Final = 30.0  # seconds; a busy machine stands still for some, too
STALLED: Final = (
    "程序卡住了 {seconds:.0f} 秒，期间谁也听不见；卡在哪里，日志里有。",
    "The bot stood still for {seconds:.0f} s and heard nobody; where, the log says.",
)
MAX_REASON: Final = 300  # characters of an error that somebody reads on a phone

# What only the owner can mend, by the class of the error; the others say it themselves or pass by.
ADVICE: Final = {
    "auth": (
        "请检查密钥（LLM_API_KEY）是否正确、是否有权限。",
        "Check the key (LLM_API_KEY): is it right, and allowed to use the model?",
    ),
    "billing": (
        "请检查模型服务的余额或额度。",
        "Check the balance or the quota of the model's vendor.",
    ),
    "bug": ("这是程序的错误，详情在日志里。", "That is a fault of the program; the log has it."),
    "context_overflow": (
        "对话超出了模型的上下文长度，可换用上下文更长的模型。",
        "The conversation is longer than the model's context: one with more would do.",
    ),
    "model_not_found": (
        "请检查模型名称（LLM_MODEL）与接口地址（LLM_BASE_URL）。",
        "Check the model's name (LLM_MODEL) and its address (LLM_BASE_URL).",
    ),
    "rate_limit": (
        "模型服务限流，请稍后再试或提高限额。",
        "The vendor limits the rate: try later, or have the limit raised.",
    ),
    "stalled": (
        "模型太久没有开始回答；本地模型处理得慢时可调大 LLM_FIRST_TOKEN。",
        "The model did not begin its answer in time; a slow local one needs more LLM_FIRST_TOKEN.",
    ),
    "tools_unsupported": (
        "该模型不支持工具调用，请换一个模型。",
        "This model takes no tools: choose another.",
    ),
    "transport": (
        "连不上模型服务，请检查网络与接口地址（LLM_BASE_URL）。",
        "The model's server cannot be reached: check the network and LLM_BASE_URL.",
    ),
}


def of_stalls(owner: Owner, count: Callable[[float], None]) -> Callable[[float], None]:
    """Who hears how long the event loop stood still, in seconds: `count` of each, the owner of a
    long one.
    """

    def stalled(seconds: float) -> None:
        count(seconds)
        if seconds >= LONG:
            owner.tell("stall", STALLED[owner.tongue].format(seconds=seconds))

    return stalled


class Alarm:
    """Fits `Observer`. `mask` takes secrets out of what a vendor said."""

    def __init__(self, owner: Owner, *, mask: Callable[[str], str]) -> None:
        self._owner = owner
        self._mask = mask

    def notice(self, event: RunEvent) -> None:
        """Tell the owner of a failure, at most once in ten minutes for each class of errors."""
        match event:
            case RunFinished(outcome=outcome) if outcome.stop is Stop.FAILED and not event.parent:
                kind, _, reason = outcome.error.partition(":")
                self._owner.tell(
                    f"run failed: {kind}", self._line(event.run_id, kind, reason.strip())
                )
            case _:
                pass

    def _line(self, run: str, kind: str, reason: str) -> Quoting:
        # Masked before it is cut: half a secret would not be found.
        said = " ".join(self._mask(reason).split())  # it may repeat what people said
        short = said if len(said) <= MAX_REASON else said[:MAX_REASON] + "…"
        tongue = self._owner.tongue
        reason = short or NO_REASON[tongue]
        line = LINE[tongue].format(run=run, kind=kind or "unknown", reason=reason)
        return Quoting(f"{line}\n{ADVICE[kind][tongue]}" if kind in ADVICE else line)
