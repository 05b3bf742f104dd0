"""Whether an answer says no more than that something was sent: small models say back what they were
told of their call, to people who have read what it sent. Pure.
"""

from __future__ import annotations

import re

from bot.domain.actions import SENT
from bot.policy.already_said import bare

WORDS = frozenset(
    map(
        bare,
        (
            SENT,
            "已发送",
            "已发出",
            "消息已发出",
            "发送成功",
            "消息发送成功",
            "已回复",
            "已回答",
            "sent",
            "message sent",
            "messages sent",
            "message delivered",
            "the message was sent",
            "the message has been sent",
        ),
    )
)
ID = re.compile(r"message_id: ?[\w-]+")
LONGEST = 60  # characters


def is_receipt(text: str) -> bool:
    """Whether it only tells of a message that was sent, maybe with its id, in whatever brackets."""
    return len(text) <= LONGEST and bare(ID.sub("", text)) in WORDS
