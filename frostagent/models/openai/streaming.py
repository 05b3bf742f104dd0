"""Releases the text of an answer while the rest is still streaming in.

Whole answers pass the filters of `leaks` (section 4), which see the whole text. This module decides
how much of a text no filter can change any more, whatever follows. Text without signs of markup is
released at once, except for trailing whitespace and a tail that may begin a sign. From a sign on,
text is held until it is harmless (an HTML tag, a link, code), else to the end, when the filters
decide. Reasoning at the beginning is held until it closes.

Some filters look back: an end of reasoning without a beginning (`</think>`, `assistantfinal`) turns
the text before it into reasoning. So the text of a model known to do this (`InlineThoughts`) is
held until its reasoning ends. If another model does it, released text is not taken back:
`StreamedText.finish` keeps it at the beginning of the final text, and `InlineThoughts` remembers
it. The same applies to rarer cases: a channel or `</analysis>` without a beginning, and a call
whose unknown namespace has lost its bracket.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from msgspec.structs import replace

from frostagent.models.openai.answer import RawAnswer
from frostagent.models.openai.dialects import THINKS_IN_TEXT
from frostagent.models.openai.leaks import (
    BARE_CHANNEL,
    EDGE_OF_THOUGHT,
    END_OF_LINE,
    FIRST_CHANNEL,
    OTHER_TURN,
    SPECIAL_CLOSES,
    SPECIAL_OPENS,
    TAG,
    WORD_TAG,
)
from frostagent.models.openai.markup import (
    CALLING,
    CODE,
    FENCES,
    INFO,
    MAX_SPAN,
    RESULT_FENCES,
    RESULTS,
    TAGS,
    end_of_code,
    without_code,
)
from frostagent.models.openai.stream import AnswerReader
from frostagent.models.openai.tools import read_name
from frostagent.models.openai.vendor_text import repair_text
from frostagent.models.openai.written_calls import PLAIN_WORD
from frostagent.types.messages import (
    Completion,
    Delta,
    ReasoningDelta,
    TextDelta,
)

# --- signs, whole or cut off by the end of the text so far ----------------------------------------


def _cut_anywhere(*atoms: str) -> str:
    """A pattern of these atoms in a row that also matches if the text ends after any of them. The
    empty group at its end takes part only in a whole match.
    """
    pattern = "()"
    for atom in reversed(atoms):
        pattern = rf"{atom}(?:\Z|{pattern})" if pattern != "()" else f"{atom}()"
    return pattern


def _letters(word: str) -> list[str]:
    return [re.escape(letter) for letter in word]


def _any_of(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


def _words(*words: str, after: Collection[str] = ()) -> list[str]:
    """A pattern for each word, followed by these atoms."""
    return [_cut_anywhere(*_letters(word), *after) for word in words]


TURN: Final = ("t", "u", "r", "n", r"\d+", "[a-z]")
NOTES: Final = (
    *("正在调用", "正在使用", "调用工具", "调用函数", "调用了", "使用工具", "使用函数", "使用了"),
    *("工具调用", "函数调用", "tool call", "tool_call", "toolcall", "tool use", "tool_use"),
    *("calling tool", "calling_tool", "calling function", "calling_function", "called tool"),
    *("called_tool", "called function", "called_function", "call tool", "call_tool"),
    *("call function", "call_function", "use tool", "use_tool", "using tool", "using_tool"),
    *("used tool", "used_tool", "function call", "function_call", "functioncall"),
)
OPENING: Final = r"[\[【(（<「\"'“*_]"
SILENCES: Final = ("stay_silent", "no_reply")

CALL_TAGS: Final = (
    *("tool_call", "tool_calls", "function_call", "function_calls", "tool_use", "use_tool"),
    *("tool_request", "call_tool", "calls", "tools", "tool", "longcat_tool_call", "toolcall"),
    *("toolcalls", "functioncall", "functioncalls"),
)
NAMESPACES: Final = ("minimax:", "xai:", "antml:", "ns:", "mm:", "seed:", "longcat:")
"""Namespaces of tags that have appeared at the start of a line without a bracket."""

SIGNS: Final = re.compile(
    _any_of(
        r"(?<![\s\w`\"“「])"
        + _cut_anywhere(*_letters("assistant"), _any_of(*_words("final", "commentary"))),
        r"(?<![A-Za-z])"
        + _any_of(
            *_words(
                *("assistant", "commentary", "analysis", "final"),
                after=(r"\s{0,4}", *_letters("to="), "[A-Za-z_]"),
            ),
            *_words(
                "assistant",
                after=(
                    r"\s{0,4}",
                    _any_of(
                        *_words(
                            *("commentary", "analysis", "final"),
                            after=(r"\s{0,4}", *_letters("to="), "[A-Za-z_]"),
                        )
                    ),
                ),
            ),
            _cut_anywhere(*_letters("to="), "[A-Za-z_]"),
            *_words("functools["),
            *_words("image", "i", after=(r"\d*", *TURN)),
        ),
        r"(?<![A-Za-z0-9])" + _cut_anywhere(*TURN),
        *_words(
            *("cite", "filecite", "nav", "navlist", "filenav", "filenavlist"),
            after=(r"\d*", *TURN),
        ),
        *_words(":contentReference[", "contentReference["),
        *_words(*(f":{word}" for word in CALL_TAGS), after=(">",)),
        _cut_anywhere(*_letters(":invoke"), r"\s+", *_letters("name")),
        r"(?P<special>[<\[【(（{\]◁✿`\n\ue200-\ue206])",
    )
)
"""Where markup, code or a line begins, or may begin in the last characters."""

PLAIN: Final = re.compile(r"[^<\[【(（{\]◁✿`\n=:\d\ue200-\ue206\ud800-\udfff]{0,12}")
"""A piece too short to contain a sign without one of these characters."""


def _begun(*words: str) -> str:
    """A pattern of all prefixes of these words, reversed; the longest first."""
    beginnings = {word[:length][::-1] for word in words for length in range(1, len(word) + 1)}
    return "|".join(map(re.escape, sorted(beginnings, key=len, reverse=True)))


SIGN_BEGUN: Final = re.compile(
    r"(?:ot|t)?\s*(?:tnatsissa|yratnemmoc|sisylana|lanif)|"
    + _begun(
        *("assistant", "commentary", "analysis", "final", "to", "functools"),
        *("contentReference", ":contentReference"),
        *("turn", "imageturn", "iturn", "citeturn", "fileciteturn", "navturn", "navlistturn"),
        *("filenavturn", "filenavlistturn"),
    )
)
"""Matches, reversed, a possible beginning of a sign at the end of such a piece."""

BRACKETS: Final = re.compile(
    r"[\[【(（]\s{0,4}"
    + _any_of(
        r"\Z",
        *(_cut_anywhere(*_letters(word), r"[^:：\n]{0,6}", "[:：]") for word in NOTES),
        _cut_anywhere(*TURN),
    )
    + r"|[\[【]"
    + _any_of(
        r"\Z",
        *_words("citation", "ref_", "oaicite", *SILENCES),
        _cut_anywhere(r"\d{1,3}", r"(?::\d{0,3})?", "†"),
        _cut_anywhere(r"\^", r"\d{1,3}", r"\^"),
    )
    + r"|\["
    + _any_of(
        *_words("TOOL_", "TOOLCALL", "END_TOOL", "INST", "THINK"),
        *_words("/TOOL", "/INST", "/THINK"),
    )
    + r"|[(（]"
    + _any_of(*_words(*SILENCES)),
    re.IGNORECASE,
)
JSON_SIGN: Final = re.compile(
    _any_of(
        *(
            _cut_anywhere(r"\{", r"\s*", '"', *_letters(key), '"')
            for key in ("type", "function", "name", "tool", "tool_name", "action")
        )
    )
)
JSON_CALL: Final = re.compile(r'\{\s*"(?:name|tool|tool_name|action)"\s*:\s*"([\w.:-]+)"')
JSON_LIST: Final = re.compile(r"\[\s*\{")
JSON_AT_START: Final = re.compile(
    _any_of(
        *(
            _cut_anywhere(r"\{", r"\s*", '"', *_letters(key), '"')
            for key in ("arguments", "parameters", "input", "id", "name", "type")
        )
    )
)
TOKEN: Final = re.compile(_cut_anywhere("<", r"\s*", "/?", r"\s*", "[|｜‖]"))
TAG_BEGUN: Final = re.compile(r"</?(?P<name>[A-Za-z_][\w.-]*(?::[\w.-]*)?)?")
DANGEROUS_TAG: Final = re.compile(
    _any_of(
        TAGS, RESULTS, TAG, WORD_TAG, CALLING, "(?:final_)?answer", "function|param(?:eter)?",
        "arg(?:ument|_key|_value)?|longcat_\\w*|calls?|field", "co|cite|grok|render",
        "s|bos|eos|pad|escape|start_of_turn|end_of_turn", "(?:start|end)_function_\\w*", *SILENCES,
        "DSML",
    ),
    re.IGNORECASE,
)  # fmt: skip
LINE_LEAD: Final = re.compile(r"[ \t>*]*")
LINE_SIGNS: Final = re.compile(
    _any_of(
        r"[ \t*]*" + _cut_anywhere(*_letters("Action"), r"[ \t*]*", "[:：]"),
        r"[ \t*]*" + _cut_anywhere("✿"),
        *_words(*CALL_TAGS, after=(">",)),
        _cut_anywhere(*_letters("invoke"), r"\s+", *_letters("name")),
        *(
            _cut_anywhere(*_letters(word), r"[ \t]*", r"\n", r"\s{0,4}", "[<i]")
            for word in ("court", "count", "call")
        ),
        rf"[ \t]*{OPENING}{{0,3}}" + _any_of(r"\Z", *_words(*SILENCES)),
        *_words(*NAMESPACES),
    ),
    re.IGNORECASE,
)
FENCE: Final = re.compile(r"[ \t>]*(?P<run>`{1,}|~{1,})")
QUESTIONING: Final = re.compile(
    r"\**" + _any_of(*_words("Thought", "Question", after=(r"\**", r"\s*", "[:：]")))
)
ANALYSIS: Final = "analysis"
OPEN_THOUGHT: Final = re.compile(
    rf"<(?P<tag>{TAG})[ \t]?>|(?P<special>{SPECIAL_OPENS})", re.IGNORECASE
)
SPECIAL_SIGN: Final = re.compile(
    _any_of(
        *_words("[THINK]", "◁think▷", "<|begin_of_thought|>", "<|START_THINKING|>"),
    )
)
CLOSE_THOUGHT: Final = re.compile(rf"</{TAG}[ \t]?>|{SPECIAL_CLOSES}", re.IGNORECASE)
LONGEST_CLOSE: Final = 24  # characters, and so at most as many pieces
MAX_WAIT: Final = 2 * MAX_SPAN  # characters that are examined again with each piece
FINAL_CHANNEL: Final = re.compile(r"(?<![\s\w`\"“「])assistantfinal(?=[^ \t])")
LOOKS_BACK: Final = (OTHER_TURN, FIRST_CHANNEL, BARE_CHANNEL)
"""Patterns that, inside of reasoning, make the filters split the whole text differently."""

SURROGATE: Final = re.compile("[\ud800-\udfff]")
CONTEXT: Final = 1  # characters of context before the text under examination


FORGOTTEN: Final = 3  # answers in a row


class InlineThoughts:
    """Whether a server passes a model's reasoning into the text without marking its beginning.

    First assumed by the model's name, then learned from answers: an end without a beginning counts
    until three answers in a row have none (someone may have written about such tags). A model with
    such a name, but whose answer has none or whose reasoning has its own field, is not held back
    any more.
    """

    def __init__(self, model: str) -> None:
        self._seen: bool | None = None
        self._without = 0  # answers in a row, since one had it
        self._by_name = THINKS_IN_TEXT.search(model) is not None

    def may_begin(self, *, has_field: bool) -> bool:
        """Whether a text may begin within reasoning. `has_field`: some came in its own field."""
        if self._seen is not None:
            return self._seen
        return self._by_name and not has_field

    def learn(self, answer: RawAnswer) -> None:
        """Learn from a whole answer."""
        if _begins_within_thoughts(answer):
            self._seen, self._without = True, 0
        elif answer.text.strip() and (self._seen or self._by_name):
            self._without += 1
            if not self._seen or self._without == FORGOTTEN:
                self._seen = False


def _begins_within_thoughts(answer: RawAnswer) -> bool:
    text = answer.text
    if not (CLOSE_THOUGHT.search(text) or FINAL_CHANNEL.search(text)):
        return False
    bare = without_code(text)
    if FINAL_CHANNEL.search(bare) and not text.lstrip().startswith(ANALYSIS):
        return True
    edge = EDGE_OF_THOUGHT.search(bare)
    return (
        edge is not None
        and bool(edge["closes"])
        and bool(text[: edge.start()].strip())
        and bool(text[edge.end() :].strip())
        and _is_end(text, edge.start(), edge.end(), has_field=bool(answer.reasoning))
    )


def _is_end(text: str, start: int, end: int, *, has_field: bool) -> bool:
    """Whether a lone end tag ends reasoning, as `leaks` decides it."""
    is_alone = text[:start].endswith("\n") or END_OF_LINE.match(text, end) is not None
    return is_alone or not (has_field and text[:start].strip())


# --- decisions ------------------------------------------------------------------------------------


class Look(NamedTuple):
    """Harmless up to `to`, or `waits` for more text, or `held` to the answer's end."""

    to: int = 0
    waits: bool = False
    held: bool = False


WAITS: Final = Look(waits=True)
HELD: Final = Look(held=True)


class TextGate:
    """Takes the text of one answer in pieces; returns what can be shown.

    Joined, the returned text is a prefix of what `read_answer` leaves of the whole, unless a filter
    looks back (see above). `names` are all known tool names. `is_marked` searches for markup;
    `within_thoughts` means that the text begins within reasoning.
    """

    def __init__(
        self,
        *,
        names: Collection[str] = (),
        is_marked: bool = True,
        within_thoughts: bool = False,
        has_field: bool = False,
    ) -> None:
        self._known = {name: name for name in names}
        self._lower = tuple(name.lower() for name in names)
        self._is_marked = is_marked
        self._has_field = has_field
        self._text = ""  # undecided text from `_at` on, and some context before it
        self._at = 0
        self._blanks = ""  # released whitespace at the end
        self._begun = False  # whether anything but whitespace was released
        self._is_held = False
        self._is_half = False  # whether it ends with half a surrogate pair
        self._fence: re.Pattern[str] | None = None
        self._thought: re.Pattern[str] | None = None  # what closes the current reasoning
        self._searched = 0
        self._within = within_thoughts and is_marked
        self._has_thought = False
        self._skipped: list[str] | None = None  # pieces of unfinished template reasoning
        self.thoughts: list[str] = []  # found in the text

    def feed(self, piece: str) -> str:
        """Add text; returns what can be shown now."""
        if self._is_held:
            return ""
        text, at = self._text, self._at
        if self._begun and self._fence is None and text[at - 1] != "\n":
            # Most pieces are a word: searching only for what it can contain takes a third of the
            # time.
            ahead = text[at:] + piece if at < len(text) else piece
            if PLAIN.fullmatch(ahead) and ahead:
                begun = SIGN_BEGUN.match(ahead[::-1])
                if begun is None:
                    self._text, self._at = ahead[-1], 1
                else:
                    end = len(ahead) - begun.end()
                    self._text, self._at = (text[at - 1] + ahead)[end:], 1
                    ahead = ahead[:end]
                if not self._blanks and not ahead[-1:].isspace():
                    return ahead
                released = self._blanks + ahead
                shown = released.rstrip()
                self._blanks = released[len(shown) :]
                return shown
        if self._skipped is not None and not self._may_close(self._skipped, piece):
            return ""
        self._text += piece
        if self._is_half or (not piece.isascii() and SURROGATE.search(piece)):
            self._is_half = "\ud800" <= piece[-1:] <= "\udbff"
            if self._is_half:
                return ""
            self._text = repair_text(self._text)
        released = self._blanks + self._scan()
        shown = released.rstrip()
        self._blanks = released[len(shown) :]
        if not self._begun:
            shown = shown.lstrip()
            self._begun = bool(shown)
            if not self._begun:
                self._blanks = ""
        return shown

    def _skip(self) -> bool:
        self._skipped = [self._text]
        self._text, self._at = "", 0
        return False

    def _may_close(self, skipped: list[str], piece: str) -> bool:
        """Whether the piece may end a template's reasoning; else it is set aside, because appending
        each piece to a long text takes quadratic time.
        """
        skipped.append(piece)
        tail = "".join(skipped[-LONGEST_CLOSE:])
        if not (CLOSE_THOUGHT.search(tail) or FINAL_CHANNEL.search(tail)):
            return False
        self._text = "".join(skipped[:-1])
        self._skipped = None
        return True

    def _scan(self) -> str:
        begin = self._at
        if not self._begun and not self._enter():
            return ""
        begin = self._at
        if self._fence is not None:
            self._leave_fence(self._text.rfind("\n", 0, self._at) + 1)
        while self._fence is None and not self._is_held:
            look = self._next(self._at)
            self._is_held = look.held
            if look.waits or look.held or self._at == len(self._text):
                # Examining it again and again takes quadratic time.
                self._is_held |= look.waits and len(self._text) - self._at > MAX_WAIT
                break
        text, at = self._text, self._at
        released = text[begin:at]
        keep = text.rfind("\n", 0, at) if self._fence is not None else at - CONTEXT
        if keep > 0:
            self._text, self._at = text[keep:], at - keep
        return released

    def _next(self, at: int) -> Look:
        """Advance to the next sign, and decide on it."""
        text = self._text
        if at == len(text):
            return WAITS
        if self._is_line_start(at):
            look = self._look_at_line(at)
            if look.waits or look.held or self._fence is not None:
                return look
            at = max(at, look.to)
        found = SIGNS.search(text, at)
        if found is None:
            self._at = len(text)
            return Look(self._at)
        self._at = found.start()
        if found["special"] is None:
            look = self._look_at_word(found)
        else:
            look = self._look_at(found.start(), found["special"])
        if not (look.waits or look.held):
            self._at = look.to
        elif begun := SIGN_BEGUN.match(text[at : self._at][::-1]):
            self._at -= begun.end()  # if the markup is cut, the text after it may complete the sign
        return look

    def _is_line_start(self, at: int) -> bool:
        return self._text[at - 1] == "\n" if at else not self._begun

    def _look_at_word(self, found: re.Match[str]) -> Look:
        if found.end() == len(self._text):
            return WAITS
        if "to=" not in found[0]:
            return HELD
        recipient = re.compile(r"[\w.:-]*").match(self._text, found.end() - 1)
        if recipient is None or recipient.end() == len(self._text):
            return WAITS
        name = recipient[0]
        if name.startswith("functions.") or name.endswith(("json", "code")) or self._is_tool(name):
            return HELD
        return Look(found.end() - 1)

    def _look_at(self, at: int, sign: str) -> Look:
        text = self._text
        match sign:
            case "\n":
                return Look(at + 1)
            case "<":
                return self._look_at_tag(at)
            case "`":
                return self._look_at_span(at)
            case "{":
                return self._look_at_json(at)
            case "]":
                if at + 1 == len(text):
                    return WAITS
                if text[at + 1] != "<":
                    return Look(at + 1)
                return (
                    WAITS if at + 2 == len(text) else HELD if text[at + 2] == "]" else Look(at + 1)
                )
            case "[" if (inner := JSON_LIST.match(text, at)) is not None:
                look = self._look_at_json(inner.end() - 1)
                return look if look.waits or look.held else Look(at + 1)
            case "[" | "【" | "(" | "（":
                return self._look_by(BRACKETS, at)
            case _:
                return HELD

    def _look_by(self, pattern: re.Pattern[str], at: int) -> Look:
        found = pattern.match(self._text, at)
        if found is None:
            return Look(at + 1)
        return HELD if found.lastindex is not None else WAITS

    def _look_at_tag(self, at: int) -> Look:
        text = self._text
        if (token := TOKEN.match(text, at)) is not None:
            return HELD if token.lastindex is not None else WAITS
        found = TAG_BEGUN.match(text, at)
        if found is None or found["name"] is None:
            return WAITS if found is not None and found.end() == len(text) else Look(at + 1)
        name = found["name"]
        if found.end() == len(text) and len(name) < 64:
            return WAITS
        if any(DANGEROUS_TAG.fullmatch(part) for part in name.split(":")) or self._is_tool(name):
            return HELD
        return Look(at + 1)

    def _is_tool(self, name: str) -> bool:
        return any(
            read_name(part, self._known) in self._known for part in (name, name.rpartition(":")[2])
        )

    def _may_be_tool(self, begun: str) -> bool:
        begun = begun.lower()
        return any(name.startswith(begun) for name in (*self._lower, "functions.")) or (
            begun.startswith("functions.") and bool(self._lower)
        )

    def _look_at_json(self, at: int) -> Look:
        if not self._known:
            return Look(at + 1)
        pattern = JSON_AT_START if not self._begun and not self._text[:at].strip() else JSON_SIGN
        look = self._look_by(pattern, at)
        if look.held and pattern is JSON_SIGN:
            call = JSON_CALL.match(self._text, at)
            if call is not None and not self._is_tool(call[1]) and call[1] not in self._known:
                return Look(at + 1)
        return look

    def _look_at_span(self, at: int) -> Look:
        """Inline backticks: code, if they close in time."""
        text = self._text
        code = CODE.match(text, at)
        if code is None or code.end() == len(text):
            return WAITS
        if code["fence"]:
            return Look(code.end())
        end = end_of_code(text, code)
        if end > code.end():
            return WAITS if end == len(text) else Look(end)
        if "\n\n" in text[code.end() :] or len(text) > code.end() + MAX_SPAN + len(code["tick"]):
            return Look(code.end())
        return WAITS

    def _look_at_line(self, at: int) -> Look:
        """Decide on the start of a line, which may begin a call without a sign."""
        text = self._text
        lead = LINE_LEAD.match(text, at)
        start = lead.end() if lead else at
        if start == len(text):
            return WAITS
        fence = FENCE.match(text, at)
        if fence is not None:
            if fence.end() == len(text):
                return WAITS
            if len(fence["run"]) >= 3:
                return self._look_at_fence(at, fence)
            return Look(fence.start("run"))
        signs = LINE_SIGNS.match(text, at)
        if signs is not None:
            return HELD if signs.lastindex is not None else WAITS
        if self._known:
            return self._look_at_name(at)
        return Look(at)

    def _look_at_name(self, at: int) -> Look:
        """A tool's name before its arguments, at the start of a line."""
        found = re.compile(r"[ \t]*([A-Za-z_][\w.:-]*)(?P<gap>[ \t]*\(?[ \t]*)").match(
            self._text, at
        )
        if found is None:
            return Look(at)
        is_cut = found.end() == len(self._text)
        if is_cut and not found["gap"]:
            return WAITS if self._may_be_tool(found[1]) else Look(at)
        if not self._is_tool(found[1]):
            return Look(at)
        is_called = is_cut or self._text[found.end()] == "{"
        return (WAITS if is_cut else HELD) if is_called else Look(at)

    def _look_at_fence(self, at: int, fence: re.Match[str]) -> Look:
        text = self._text
        line_end = text.find("\n", fence.end())
        if line_end < 0:
            return WAITS
        info = INFO.match(text, fence.end())
        name = info[1] if info else ""
        own = read_name(name.lower(), self._known)
        is_own = own in self._known and not PLAIN_WORD.fullmatch(own)
        if name.lower() in FENCES or name.lower() in RESULT_FENCES or is_own or self._is_tool(name):
            return HELD
        if not self._begun and not text[:at].strip():
            silent = LINE_SIGNS.match(text, line_end + 1)
            if silent is not None or line_end + 1 == len(text):
                return HELD if silent is not None and silent.lastindex is not None else WAITS
        run = fence["run"]
        self._fence = re.compile(rf"^[ \t>]*{run[0]}{{{len(run)},}}[ \t]*\n", re.MULTILINE)
        self._at = line_end
        self._leave_fence(line_end + 1)
        return Look(self._at)

    def _leave_fence(self, line: int) -> None:
        """Release code as it comes, up to its end. `line` is the first that may end it."""
        text = self._text
        close = self._fence.search(text, line) if self._fence else None
        if close is None:
            self._at = len(text)
        else:
            self._fence = None
            self._at = max(self._at, close.end() - 1)

    # --- the beginning ----------------------------------------------------------------------------

    def _enter(self) -> bool:
        """Whether the text has reached what can be shown: after whitespace and reasoning, and
        without a beginning that changes the meaning of the whole.
        """
        while True:
            if self._thought is not None and not self._leave_thought():
                return False
            text = self._text[self._at :].lstrip()
            self._text, self._at, self._blanks = text, 0, ""
            if not text or self._is_held:
                return False
            look = self._look_at_start(text)
            if look.held and (opened := OPEN_THOUGHT.match(text)) and self._is_marked:
                self._within, self._has_thought = False, True
                self._at = self._searched = opened.end()
                closes = SPECIAL_CLOSES
                if opened["tag"]:
                    closes = rf"</{re.escape(opened['tag'])}[ \t]?>"
                self._thought = re.compile(closes, re.IGNORECASE)
                continue
            self._is_held = look.held
            if look.waits or look.held:
                return False
            is_end = self._is_marked and CLOSE_THOUGHT.match(text) is not None
            if self._within or (is_end and not self._has_thought):
                self._within = True
                if not self._leave_template():
                    return False
                continue
            return True

    def _look_at_start(self, text: str) -> Look:
        if text[0] == "<":
            opened = TAG_BEGUN.match(text)
            if opened and opened["name"] and re.fullmatch(TAG, opened["name"], re.IGNORECASE):
                rest = text[opened.end() :]
                return (
                    HELD if OPEN_THOUGHT.match(text) else WAITS if not rest.strip(" \t") else Look()
                )
        special = SPECIAL_SIGN.match(text)
        if special is not None:
            return HELD if special.lastindex is not None else WAITS
        if ANALYSIS.startswith(text):
            return WAITS
        if text.startswith(ANALYSIS) and self._is_marked:
            return HELD
        if self._known:
            questioning = QUESTIONING.match(text)
            if questioning is not None:
                return HELD if questioning.lastindex is not None else WAITS
            called = re.match(r"\[?\s*([A-Za-z_][\w.:-]*)", text)
            if called is not None:
                if called.end() == len(text):
                    return WAITS if self._may_be_tool(called[1]) else Look()
                if text[called.end()] == "(" and self._is_tool(called[1]):
                    return HELD
        if text[0] == "[" and text[1:].lstrip()[:1] in {"", "{"}:
            return HELD if text[1:].strip() else WAITS
        return Look()

    def _leave_thought(self) -> bool:
        """Whether the open reasoning has closed; collects it."""
        text = self._text
        pattern = self._thought
        close = (
            pattern.search(text, max(self._at, self._searched - LONGEST_CLOSE)) if pattern else None
        )
        if close is None:
            last = max(self._at, len(text) - LONGEST_CLOSE)
            self.thoughts.append(text[self._at : last])
            self._text, self._at, self._searched = text[last:], 0, 0
            if any(sign.search(text) for sign in LOOKS_BACK):
                self._is_held = True
            return False
        region = text[: close.end()]
        self.thoughts.append(text[self._at : close.start()])
        self._at, self._thought = close.end(), None
        self._is_held = any(sign.search(region) for sign in LOOKS_BACK)
        return not self._is_held

    def _leave_template(self) -> bool:
        """Whether the reasoning that a template began has ended."""
        text = self._text
        if not (CLOSE_THOUGHT.search(text) or FINAL_CHANNEL.search(text)):
            return self._skip()
        bare = without_code(text)
        edge = EDGE_OF_THOUGHT.search(bare)
        final = FINAL_CHANNEL.search(bare)
        if edge is not None and edge["closes"] and not (final and final.start() < edge.start()):
            start, end = edge.span()
            if not text[end:].strip():
                return False
            if not _is_end(text, start, end, has_field=self._has_field):
                self._is_held = True
                return False
        elif final is not None:
            start, end = final.span()
        else:
            return self._skip()
        if "`" in text[:start] and "\n\n" not in text[end:] and len(text) < end + MAX_SPAN:
            return False  # possibly inside unclosed code
        if any(sign.search(text, 0, start) for sign in LOOKS_BACK):
            self._is_held = True
            return False
        self.thoughts.append(text[:start].strip())
        self._has_thought = True
        self._text, self._at, self._within = text[end:], 0, False
        return True


# --- one answer -----------------------------------------------------------------------------------


class StreamedText:
    """Streams the answer that a reader collects, as far as it can be shown. For one attempt."""

    def __init__(
        self,
        reader: AnswerReader,
        tell: Callable[[Delta], None],
        *,
        names: Collection[str],
        is_marked: bool,
        inline: InlineThoughts,
    ) -> None:
        self._said, self._thought = reader.said
        self._tell = tell
        self._names = names
        self._is_marked = is_marked
        self._inline = inline
        self._has_field = False
        self._gate: TextGate | None = None
        self._told: list[str] = []
        self._texts = self._reasonings = 0  # pieces that were read

    def read(self) -> None:
        """Process what the reader has collected since the last call."""
        texts, thoughts = self._said, self._thought
        if len(thoughts) > self._reasonings:
            more, self._reasonings = thoughts[self._reasonings :], len(thoughts)
            self._has_field = True
            self._tell(ReasoningDelta("".join(more)))
        count = len(texts)
        if count == self._texts:
            return
        text = texts[-1] if count == self._texts + 1 else "".join(texts[self._texts :])
        self._texts = count
        gate = self._gate
        if gate is None:
            gate = self._gate = TextGate(
                names=self._names,
                is_marked=self._is_marked,
                within_thoughts=self._inline.may_begin(has_field=self._has_field),
                has_field=self._has_field,
            )
        shown = gate.feed(text)
        if gate.thoughts:
            self._tell(ReasoningDelta("".join(gate.thoughts)))
            gate.thoughts.clear()
        if shown:
            self._told.append(shown)
            self._tell(TextDelta(shown))

    def finish(self, completion: Completion, answer: RawAnswer) -> Completion:
        """Send the rest of the final answer. Its text begins with everything sent: if a filter
        would have cut some of that, it stays.
        """
        self._inline.learn(answer)
        told, text = "".join(self._told), completion.message.text.strip()
        if not text.startswith(told):
            text = f"{told}\n\n{text}" if text else told
            message = replace(completion.message, text=text)
            completion = replace(completion, message=message)
        if len(text) > len(told):
            self._tell(TextDelta(text[len(told) :]))
        return completion
