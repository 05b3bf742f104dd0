"""TOML files of rows, a [[table]] for each: the rows as they stand there, and complaints."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config import values


def read_rows(file: Path, table: str) -> tuple[list[Any], list[str]]:
    """The rows under [[table]], unchecked, and what is wrong with the file itself."""
    shown = values.shown_path(file)
    try:
        data = tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        return [], [f"{shown} cannot be read ({error.strerror})"]
    except UnicodeDecodeError:
        return [], [f"{shown} is not UTF-8 text"]
    except tomllib.TOMLDecodeError as error:
        return [], [f"{shown} is not TOML: {error}"]
    rows = data.pop(table, [])
    wrong = [f"{file.name} has {name}, which is no [[{table}]]" for name in data]
    if not isinstance(rows, list):
        return [], [*wrong, f"{file.name} has a [{table}]: each stands under [[{table}]]"]
    return rows, wrong


def complaints(error: ValidationError) -> Iterator[str]:
    """Each wrong field with its place; never its value."""
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(part) for part in detail["loc"])
        message = detail["msg"].removeprefix("Value error, ")
        yield f"{place}: {message}" if place else message
