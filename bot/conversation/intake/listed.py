"""The operator's word list, held against what somebody says to the bot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from bot.domain.blocked_words import BlockedWords
from bot.domain.events import Conversation, MessageReceived
from bot.domain.segments import Mention, Segment
from bot.policy.approval import quote_in
from bot.policy.blocked_words import words_said, words_shown


class Listed:
    """Looks through all that somebody says as a prompt shows it, and through their own lines that
    they quote: `known` finds those that are remembered, `name_of` the name by which a person was
    last seen. Without `words` nothing is listed.
    """

    def __init__(
        self,
        words: BlockedWords | None,
        known: Callable[[Conversation, str], MessageReceived | None],
        name_of: Callable[[Conversation, int], str],
    ) -> None:
        self._words = words
        self._known = known
        self._name_of = name_of

    def stops(self, said: Iterable[MessageReceived]) -> bool:
        """Whether these lines have words of it together, so that they are not answered."""
        if self._words is None:
            return False
        lines = [self._with_names(one) for line in said for one in self._with_its_quote(line)]
        written, shown = words_said(lines), words_shown(lines)
        # Written words may go on behind a picture: its caption must not keep them apart.
        return bool(self._words.stops(written)) or (
            shown != written and bool(self._words.stops(shown))
        )

    def _with_its_quote(self, line: MessageReceived) -> Iterator[MessageReceived]:
        if quote := quote_in(line):
            quoted = self._known(line.conversation, quote)
            if quoted is not None and quoted.sender.user_id == line.sender.user_id:
                yield quoted
        yield line

    def _with_names(self, line: MessageReceived) -> MessageReceived:
        def named(segment: Segment) -> Segment:
            if not isinstance(segment, Mention) or segment.user_id == line.self_id:
                return segment
            seen = self._name_of(line.conversation, segment.user_id)
            return replace(segment, name=seen) if seen else segment

        return replace(line, segments=tuple(map(named, line.segments)))
