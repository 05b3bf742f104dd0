"""Lines of the service itself: said as soon as they can be, known again when somebody quotes them.

They belong to no turn: nobody waits for their receipts, and no model reads them.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from functools import partial

from bot.core.actions import SendMessage, as_received
from bot.core.events import MessageReceived, Sender
from bot.memory.history import History
from bot.outbox.layout import LIMIT, split_text
from bot.outbox.outbox import Outbox
from frostagent.text.language import Language
from frostagent.types.conversation import Conversation
from frostagent.types.ports import Clock
from frostagent.types.speech import Attachment, Confirmed, Quote, Receipt, Refused, Text

MAX_LINES = 5  # of the service that wait in a conversation, beyond which it makes no remark
MAX_PIECES = 10  # messages that show what a server does not take as a file
ROOM = LIMIT - 40  # characters of each, below a line on which of them it is

PIECE = (
    "{name} 完整内容（{number}/{pieces}）\n{words}",
    "{name} in full ({number}/{pieces})\n{words}",
)


class Postbox:
    """Where the service puts what it has to say of its own accord; `openly` what an owner hears
    where he asked, though the bot is in a shadow there.
    """

    def __init__(
        self, *, outbox: Outbox, history: History, clock: Clock, openly: bool = False
    ) -> None:
        self._openly = openly
        self._outbox = outbox
        self._history = history
        self._clock = clock

    def post(
        self,
        where: Conversation,
        words: str,
        *,
        quote: str = "",
        about: str = "",
        then: Callable[[Receipt], None] | None = None,
    ) -> bool:
        """Say it, and tell `then` what became of it; False if too much waits there. It is
        forgotten with the person or run that it is `about` (`bot/core/actions`).
        """
        action = SendMessage(where, (*((Quote(quote),) if quote else ()), Text(words)))
        receipt = self._outbox.post(action, openly=self._openly, name=about)
        if receipt is None:
            return False
        receipt.add_done_callback(partial(self._posted, action, then))
        return True

    def remark(self, where: Conversation, words: str, *, quote: str = "", about: str = "") -> bool:
        """Say it, unless so many lines of the service wait there already that answers would wait
        for them; whether it is said.
        """
        has_room = self._outbox.lines(where) < MAX_LINES
        return has_room and self.post(where, words, quote=quote, about=about)

    def show(
        self,
        where: Conversation,
        words: str,
        *,
        name: str,
        unshown: Callable[[], None],
        about: str = "",
        tongue: Language = Language.CHINESE,
    ) -> None:
        """Send the words as a text file of that name; in messages where the server takes no file,
        headed in that language.

        `unshown` is called where they are too long for that, or too much waits there.
        """
        encoded = base64.b64encode(words.encode("utf-8", "replace")).decode()
        receipt = self._outbox.post(
            SendMessage(where, (Attachment("file", f"base64://{encoded}", f"{name}.txt"),)),
            name=about,
        )
        in_pieces = partial(self._show_in_pieces, where, words, name, unshown, about, tongue)
        if receipt is None:
            unshown()
        else:
            receipt.add_done_callback(
                lambda done: in_pieces() if isinstance(done.result(), Refused) else None
            )

    def _show_in_pieces(
        self,
        where: Conversation,
        words: str,
        name: str,
        unshown: Callable[[], None],
        about: str,
        tongue: Language,
    ) -> None:
        pieces = split_text(words, ROOM) if len(words) <= MAX_PIECES * ROOM else ()
        told = [
            PIECE[tongue].format(name=name, number=number, pieces=len(pieces), words=piece)
            for number, piece in enumerate(pieces, 1)
        ]
        if not told or not all(self.post(where, piece, about=about) for piece in told):
            unshown()

    def _posted(
        self,
        action: SendMessage,
        then: Callable[[Receipt], None] | None,
        done: asyncio.Future[Receipt],
    ) -> None:
        receipt, where = done.result(), action.conversation
        if isinstance(receipt, Confirmed):
            own = MessageReceived(
                self_id=where.platform_id,
                time=self._clock.now(),
                conversation=where,
                message_id=receipt.message_id,
                sender=Sender(where.platform_id),
                segments=tuple(map(as_received, action.segments)),
            )
            self._history.know(own)
        if then is not None:
            then(receipt)
