"""The operator's word list, held against what somebody says to the bot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from bot.domain.events import Conversation, MessageReceived
from bot.domain.words import Words
from bot.policy.approval import quote_in
from bot.policy.word_lists import said_in


class Listed:
    """Looks through all that somebody says, his own lines that he quotes too: `known` finds those
    that are remembered. Without `words` nothing is listed.
    """

    def __init__(
        self,
        words: Words | None,
        known: Callable[[Conversation, str], MessageReceived | None],
    ) -> None:
        self._words = words
        self._known = known

    def stops(self, said: Iterable[MessageReceived]) -> bool:
        """Whether these lines have words of it together, so that they are not answered."""
        if self._words is None:
            return False
        lines = (one for line in said for one in self._with_its_quote(line))
        return bool(self._words.stops(said_in(lines)))

    def _with_its_quote(self, line: MessageReceived) -> Iterator[MessageReceived]:
        if quote := quote_in(line):
            quoted = self._known(line.conversation, quote)
            if quoted is not None and quoted.sender.user_id == line.sender.user_id:
                yield quoted
        yield line
