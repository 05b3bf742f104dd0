"""Names of tools and ids of calls in the alphabets that vendors take, and the way back (rules 4.6,
6.6, 6.8).

What fits goes as it is; what does not becomes a name made of it, always the same one, so that a
prompt stays the same from request to request. Only names have to come back: an answer's ids are the
vendor's own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from frostagent.models.openai.dialects import Dialect
from frostagent.types.messages import ToolSpec

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
STRANGE = re.compile(r"[^A-Za-z0-9]+")
MAX_WORDS = 48  # characters of the name that stay readable; with the mark the whole is at most 62

# What models put around a name that they were given: the namespace of their training, a token of
# their template.
AROUND = re.compile(r"^(?:functions|tools|default_api)[.:]|(?:<\||:\d+$).*$", re.DOTALL)


def write_name(name: str) -> str:
    """The name as every vendor takes it; names of another alphabet, MCP's for example, keep what
    they can of theirs.
    """
    if NAME.fullmatch(name):
        return name
    words = STRANGE.sub("_", name).strip("_")[:MAX_WORDS]
    return f"{words if words[:1].isalpha() else f'tool_{words}'.rstrip('_')}_{_digest(name)[:8]}"


def names_back(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """Written name -> ours, for the tools of a request."""
    return {write_name(tool.name): tool.name for tool in tools}


def read_name(name: str, back: Mapping[str, str]) -> str:
    """The tool that an answer's name means: exactly, or without what models are known to put around
    it; else itself.
    """
    if name in back:
        return back[name]
    return back.get(AROUND.sub("", name), name)


def write_id(identity: str, name: str, index: int, taken: Iterable[str], dialect: Dialect) -> str:
    """The id as this vendor takes it, and none of those that the same step has taken.

    `name` is the call's written name, `index` its place among all calls of the transcript, from 0.
    """
    fits = re.compile(dialect.ids)
    seed, written = identity, identity
    while not fits.fullmatch(written) or written in taken:
        digest = _digest(f"{seed}/{name}")
        written = dialect.new_id.format(digest=digest, name=name, index=index)
        seed, index = digest, index + 1
    return written


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:40]
