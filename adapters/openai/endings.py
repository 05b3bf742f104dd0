"""How a server ends its streams, as learned (2.2): whether it says why, or never does."""

from __future__ import annotations

import logging

from adapters.openai.stream import AnswerReader

logger = logging.getLogger(__name__)

UNEXPLAINED = (
    "it never says why its answers end: they are taken as whole, and one that was cut cannot be "
    "told"
)


class Endings:
    """Good for one server and model. It is believed to be one that never says why after two streams
    in a row.

    From the first on that does, it is one that does as a rule: what comes without was cut, and is
    not believed again.
    """

    def __init__(self, name: str) -> None:
        """`name` is for the log."""
        self._name = name
        self._explains: bool | None = None

    @property
    def go_unexplained(self) -> bool:
        """Whether a stream that does not say why it ended is taken as whole."""
        return self._explains is False

    def doubts(self, reader: AnswerReader) -> bool:
        """Whether this stream should be asked for once more, because nothing is known of others."""
        return self._explains is None and reader.is_unexplained

    def learn(self, reader: AnswerReader) -> None:
        """Take note of how a stream ended, one that was asked for once more where it was in
        doubt.
        """
        if self._explains:
            return
        if reader.is_explained:
            self._explains = True
        elif self.doubts(reader):
            self._explains = False
            logger.warning("%s: %s", self._name, UNEXPLAINED)
