"""The tool calls of one answer while they grow, delta by delta (numbers of vendors.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from adapters.openai.texts import mend, to_json, word

SPREAD = 8  # times as long as it need be: what is longer is no other spelling of the same object
CALL_FIELDS = frozenset({"id", "index", "type", "function", "custom"})


@dataclass(frozen=True, slots=True)
class RawCall:
    """A tool call as it came: `id` and `name` may be empty, `arguments` is None where the vendor
    sent none.

    `extras` are the vendor's own fields beside the call, which it may want back (Gemini's
    signatures).
    """

    id: str
    name: str
    arguments: str | None
    extras: Mapping[str, Any] = field(default_factory=dict)


class CallDraft:
    """A call that is still growing. Id and name are set once and never added to (2.8, 2.11)."""

    __slots__ = ("_pieces", "_size", "extras", "id", "index", "name")

    def __init__(self, index: int | None) -> None:
        """`index` is the one it came under."""
        self.index = index
        self.id = ""
        self.name = ""
        self.extras: dict[str, Any] = {}
        self._pieces: list[str] = []
        self._size = 0

    @property
    def arguments(self) -> str | None:
        """The arguments so far, None where none came."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else None

    def add(self, call: Mapping[str, Any], identity: str, name: str, arguments: object) -> None:
        self.id = self.id or identity
        self.name = self.name or name
        if isinstance(arguments, str):
            if not self.says(arguments):
                self._pieces.append(arguments)
                self._size += len(arguments)
        elif isinstance(arguments, dict | list):  # 3.4
            self._pieces = [to_json(arguments)]
            self._size = len(self._pieces[0])
        if not CALL_FIELDS.issuperset(call):
            self.extras.update(
                {key: value for key, value in call.items() if key not in CALL_FIELDS and value}
            )

    def is_whole(self) -> bool:
        return _canonical(self.arguments) is not None

    def says(self, arguments: object) -> bool:
        """Whether these are its own arguments once more, all of them, however they are spelt."""
        again = _canonical(arguments) if self._size else None
        return (
            again is not None
            and self._size < SPREAD * len(again)
            and again == _canonical(self.arguments)
        )

    @property
    def key(self) -> tuple[object, ...] | None:
        """The same for the same call, sent once more: under its id, or without any under its
        index.
        """
        said = _canonical(self.arguments)
        known = self.id or self.index is not None
        return (
            (self.id, None if self.id else self.index, self.name, said)
            if known and said is not None
            else None
        )

    def freeze(self) -> RawCall:
        arguments = self.arguments
        return RawCall(
            self.id, self.name, None if arguments is None else mend(arguments), self.extras
        )


class CallDrafts:
    """Which call a delta belongs to: by id first, then by index, then by order (2.9-2.14).

    Neither is to be trusted alone: ids come empty or twice, indexes come missing, with gaps, or all
    zero.
    """

    def __init__(self) -> None:
        self._calls: list[CallDraft] = []
        self._by_id: dict[str, CallDraft] = {}
        self._by_index: dict[int, CallDraft] = {}
        self._are_whole = False

    def add(self, call: Mapping[str, Any], *, whole: bool) -> None:
        """Take one delta of a call, or (`whole`) one call of a whole message, which is nobody
        else's.
        """
        function = call.get("function")
        if not isinstance(function, dict):
            function = {}
        identity, name, index = (
            word(call.get("id")),
            word(function.get("name")),
            call.get("index"),
        )
        if not isinstance(index, int):
            index = None
        arguments = function.get("arguments")
        draft = None if whole else self._find(identity, index, name, arguments)
        if draft is None:
            draft = CallDraft(index)
            self._calls.append(draft)
            self._are_whole |= whole
        draft.add(call, identity, name, arguments)
        if draft.id:
            self._by_id[draft.id] = draft
        if index is not None:
            self._by_index[index] = draft

    def freeze(self) -> tuple[RawCall, ...]:
        """The calls; one that a stream sent twice is one, as what it does must be done once."""
        if self._are_whole or len(self._calls) < 2:
            return tuple(draft.freeze() for draft in self._calls)
        kept: dict[object, CallDraft] = {}
        for draft in self._calls:
            kept.setdefault(draft.key or draft, draft)
        return tuple(draft.freeze() for draft in kept.values())

    def _find(
        self, identity: str, index: int | None, name: str, arguments: object
    ) -> CallDraft | None:
        at_index = None if index is None else self._by_index.get(index)
        if draft := self._by_id.get(identity):
            return (
                None
                if _is_another(draft, name, arguments, elsewhere=at_index is not draft)
                else draft
            )
        if identity:
            return (
                at_index if at_index and not (at_index.id and name) else None
            )  # an id alone begins nothing
        if index is not None:
            return (
                at_index
                if at_index and not _is_another(at_index, name, arguments, elsewhere=False)
                else None
            )
        if not self._calls or (name and self._calls[-1].name):
            return None
        return self._calls[-1]


def _is_another(draft: CallDraft, name: str, arguments: object, *, elsewhere: bool) -> bool:
    """Whether a delta under a known id or index begins a call of its own all the same.

    It does when it names another function, or names the same one again when that call is already
    whole: parallel calls that all have one id or all have index 0 (2.13, 2.14). A whole call said
    twice stays one.
    """
    if not name or not draft.name:
        return False
    if name != draft.name:
        return True
    if not (arguments or elsewhere) or arguments == draft.arguments:
        return False
    return draft.is_whole()


def _canonical(arguments: object) -> bytes | None:
    """One spelling for all of the same object; None for anything else."""
    if isinstance(arguments, str) and (bare := arguments.strip())[:1] + bare[-1:] != "{}":
        # As every piece of them is: to read it would take longer than all the rest.
        return None
    try:
        value = orjson.loads(arguments) if isinstance(arguments, str) else arguments
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if isinstance(value, dict) else None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
