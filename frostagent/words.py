"""The library's texts in one table: those for people, and those that models read about calls and
about the end of a run. English by default; to replace them:

    use_words(Words(no_conclusion="Ich komme zu keinem Ergebnis."))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from string import Formatter


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Words:
    """Every text by name, with placeholders in braces.

        use_words(Words(empty="Your answer was empty. Say something."))

    A text may be a subclass of `str` whose `format` returns several languages; the result is passed
    on unchanged, and edited only through its `each(change)`. Raises ValueError for a text with
    other placeholders than the default.
    """

    # --- for people, in place of an answer or while they wait
    no_conclusion: str = (
        "I looked into it in several steps and came to no conclusion, so I stop here. Could you "
        "ask for something more specific?"
    )
    still_working: str = "{name} is still at it, please wait a little longer."
    fallbacks: tuple[str, ...] = ()
    """Texts that the program sends in place of an answer. Repeating one is not an answer."""
    run_marks: tuple[str, ...] = ()
    """Endings of fallbacks that name their run, as in ` (run {run})`."""

    # --- for a model, in place of its next question
    last_step: str = (
        "You have no tool calls left. Do not call any tool: answer now, in words, from what you "
        "have found so far, and say what is still missing."
    )
    empty: str = "Your last answer was empty. Answer now, in words."
    empty_json: str = "Your last answer was empty. Answer now, with the JSON alone."
    receipts: tuple[str, ...] = (
        "sent",
        "message sent",
        "messages sent",
        "message delivered",
        "the message was sent",
        "the message has been sent",
    )
    """What a model says after it has sent its answer with a tool. Not an answer."""

    # --- for a model, about calls
    picture: str = "[picture {number}]"
    known: str = (
        "(You had called this before, with the same arguments: this is what it gave. "
        "Do not call it again.)"
    )
    too_often: str = (
        "{name} was called with the same arguments {times} times. "
        "Use what it gave, and do not call it again."
    )
    denied: str = "{name} may not be run. Do without it."
    not_allowed: str = "the tool call was denied: {reason}"
    only_for: str = "{name} is only for {who}s, in their own words alone. Tell the asker so."
    held_back: str = (
        "({name} was not run: in this chat the bot's owner is only told what would be done. He may "
        "do it; do not say that it is done, and do not call it again.)"
    )
    closed: str = (
        "{name} was called with wrong arguments three times in a row: it is not run any more. "
        "Do without it."
    )
    stopped: str = "the run was stopped here: the call was not done."
    too_many: str = (
        "only {most} calls are run in one step, this one was not. "
        "Call again only what is really needed."
    )
    barred: str = (
        "it was not run: {first} before it waits to be allowed. Call it again once that is decided."
    )
    not_done: str = "the call was cancelled while it waited to be allowed: it was not done."
    maybe_done: str = "It may have been done all the same: do not repeat it."
    cancelled: str = "the call was cancelled."
    tool_changed: str = (
        "{name} is not what it was when it was allowed: its server describes it differently now. "
        "It was not run. Call it again only if it is still needed: it must be allowed anew."
    )
    asks_twice: str = (
        "the tool asked to be allowed what it had been allowed. "
        "Do not repeat the call; say that it did not work."
    )
    nobody_answered: str = "nobody allowed it in time"
    not_alone: str = "{name} was not run: it is called alone, or not at all."
    nothing_left: str = (
        "{name} was not asked: the budget of this question is used up. "
        "Ask no subagent again; answer from what you have."
    )
    nobody_to_ask: str = "a subagent cannot wait for somebody's word. Do without it"

    # --- for people, why a tool cannot be used
    needs: str = "needs {needs}"
    requires: str = "requires {requires} (not configured)"
    needs_and_requires: str = "needs {needs} and requires {requires} (not configured)"
    no_body: str = "has no body"
    not_available: str = "is not available"
    cannot_say: str = "cannot say whether it is available ({error})"

    # --- for the operator, about models
    key_refused: str = (
        "Key {number} of the model {name} is refused; another key, or a model that stands in, is "
        "asked instead. Please look after the key and its balance ({kind}: {reason})"
    )
    model_not_found: str = (
        "There is no model {name}, or not for this account; one that stands in is asked instead. "
        "Please look after its name and address ({kind}: {reason})"
    )
    broken: str = "{name}: {reason}"
    in_its_words: str = "{reason} ({words})"
    too_long: str = "the answer was not finished after {seconds} s"
    not_begun: str = "no answer began within {seconds} s: the model may still be loading"
    answer_stopped: str = "the answer stopped for {seconds} s"
    connection_failed: str = "the connection failed"
    name_not_found: str = "its name was not found, check the base URL and the DNS"
    proxy_unreachable: str = "the proxy is unreachable, check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
    proxy_refused: str = "the proxy refused, check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
    certificate: str = "its certificate is not trusted, check the base URL and the clock"
    no_tls: str = "no TLS with it, check whether the base URL should begin with http or https"
    not_in_time: str = "it cannot be reached in time, check the base URL, the network and the proxy"
    unreachable: str = "it cannot be reached, check the base URL and that the server runs"
    hung_up: str = "it hung up before it answered"
    cut_off: str = "the answer was cut off"

    def __post_init__(self) -> None:
        for each in fields(self):
            text = getattr(self, each.name)
            if isinstance(text, str) and _values(text) != _values(str(each.default)):
                wanted = ", ".join(sorted(_values(str(each.default)))) or "no values"
                raise ValueError(f"{each.name} has {wanted} in braces, not {text!r}")


def _values(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


ENGLISH = Words()
_in_force = [ENGLISH]  # one per process: some errors are made without access to an agent


def use_words(words: Words) -> None:
    """Use this table in the whole process, from the next run on."""
    _in_force[0] = words


def words_in_force() -> Words:
    return _in_force[0]


def changed(text: str, change: Callable[[str], str]) -> str:
    """The text after a change, in each of its languages."""
    each: Callable[[Callable[[str], str]], str] | None = getattr(text, "each", None)
    return change(text) if each is None else each(change)
