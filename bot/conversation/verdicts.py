"""Whether a message wakes the bot: by the rules, by what is remembered, and by where the bot may
speak.
"""

from __future__ import annotations

from collections.abc import Collection

from bot.conversation.mutes import Mutes
from bot.domain.events import MessageReceived
from bot.memory.history import History
from bot.policy.wake import NeedsQuoted, Observe, Rules, Verdict, Wake, judge


class Verdicts:
    """Judges messages; `accounts` are all the bot has, as they become known."""

    def __init__(
        self, *, rules: Rules, history: History, mutes: Mutes, accounts: Collection[int]
    ) -> None:
        self._rules = rules
        self._history = history
        self._mutes = mutes
        self._accounts = accounts

    def on(self, message: MessageReceived, *, answer: bool = True) -> Verdict:
        """The verdict. Where the bot is muted, or it is not to `answer`, nothing wakes it."""
        verdict = self.whoever_may_speak(message)
        is_silent = not answer or self._mutes.holds_in(message.conversation)
        return Observe() if is_silent and isinstance(verdict, Wake | NeedsQuoted) else verdict

    def whoever_may_speak(self, message: MessageReceived) -> Verdict:
        """The same without a look at mutes.

        A quote of a message in memory is decided at once, so that talk among people fills no lane.
        """
        verdict = judge(message, self._rules, accounts=self._accounts)
        if isinstance(verdict, NeedsQuoted):
            quoted = self._history.known(message.conversation, verdict.message_id)
            if quoted is not None:
                return Wake("quote") if quoted.is_own else verdict.otherwise
        return verdict
