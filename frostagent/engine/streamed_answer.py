"""One answer of the model while it streams in."""

from __future__ import annotations

from typing import assert_never

from frostagent.types.messages import (
    Delta,
    OnDelta,
    ReasoningDelta,
    TextDelta,
    TextDiscarded,
)


class StreamedAnswer:
    """Passes on the deltas of one answer, so that the joined text equals the final one: missing
    text is sent at the end, and text that is not used is discarded.
    """

    def __init__(self, tell: OnDelta) -> None:
        self._tell = tell
        self._text = ""
        self._begun = False

    def hear(self, delta: Delta) -> None:
        """Pass on a delta; a discard only if something was sent."""
        match delta:
            case TextDelta(text=text):
                self._text += text
                self._begun = True
            case ReasoningDelta():
                self._begun = True
            case TextDiscarded():
                self.discard()
                return
            case _:
                assert_never(delta)
        self._tell(delta)

    def discard(self) -> None:
        """Discard what was sent: the request is repeated."""
        if self._begun:
            self._text, self._begun = "", False
            self._tell(TextDiscarded())

    def settle(self, text: str) -> None:
        """End the answer with this text."""
        if not text.startswith(self._text):
            self.discard()
        if rest := text[len(self._text) :]:
            self._text = text
            self._tell(TextDelta(rest))
