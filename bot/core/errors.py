"""The errors of the service, beside those of the library.

BotError
 +-- TransportError           the OneBot side
 |    +-- NotConnected        never reached the wire: nothing was done
 |    +-- ActionRefused       the server answered "failed": nothing was done
 |    |    +-- ActionUnsupported   it has no such action, and never will
 |    +-- ActionUnanswered    written, but no answer: maybe done; never repeat it blindly
 +-- ToolError
      +-- AlreadySaid         the run has said it before: nothing was sent
"""

from __future__ import annotations

from frostagent.types.errors import BotError, ToolError


class TransportError(BotError):
    """An action did not return "ok"."""


class NotConnected(TransportError):
    """No connection of this account could take the action; it never reached the wire."""


class ActionRefused(TransportError):
    """The OneBot server refused the action; `retcode` and `wording` are the server's."""

    def __init__(self, action: str, *, retcode: int, wording: str) -> None:
        self.action = action
        self.retcode = retcode
        self.wording = wording
        super().__init__(f"{action} refused ({retcode}): {wording or 'no reason given'}")


class ActionUnsupported(ActionRefused):
    """The OneBot server has no such action; only another server may."""


class ActionUnanswered(TransportError):
    """The action was written but its outcome is unknown: the server may have done it."""


class AlreadySaid(ToolError):
    """The run has said the same or nearly the same before; nothing was sent."""

    code = "TOOL_ALREADY_SAID"
