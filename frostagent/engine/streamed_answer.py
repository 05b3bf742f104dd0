"""One answer of the model while it comes: what was told of it, and what is still to be told."""

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
    """Passes on the deltas of one answer. What was told of its text, joined, is in the end the text
    that the engine takes: of a model without deltas, or one that did not tell all, the rest is told
    then, and what was told of a text that is not taken is discarded.
    """

    def __init__(self, tell: OnDelta) -> None:
        self._tell = tell
        self._text = ""
        self._begun = False

    def hear(self, delta: Delta) -> None:
        """Take a delta of the model's; a discard only where there is something to be discarded."""
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
        """The model is asked once more."""
        if self._begun:
            self._text, self._begun = "", False
            self._tell(TextDiscarded())

    def settle(self, text: str) -> None:
        """The answer has ended: its text is this one."""
        if not text.startswith(self._text):
            self.discard()
        if rest := text[len(self._text) :]:
            self._text = text
            self._tell(TextDelta(rest))
