"""Questions to a person: a port, and the terminal that fits it."""

from __future__ import annotations

from typing import Protocol

import typer


class Terminal(Protocol):
    """Somebody who can be asked. Every method raises typer.Abort where they leave (Ctrl-C, end of
    input).
    """

    def tell(self, text: str) -> None:
        """Say something."""
        ...

    def ask(self, question: str, *, default: str = "") -> str:
        """The line they type, without blanks around it; the default for nothing."""
        ...

    def ask_secret(self, question: str) -> str:
        """The same, never shown."""
        ...

    def confirm(self, question: str, *, default: bool) -> bool:
        """Yes or no."""
        ...


class TyperTerminal:
    """The terminal the process runs in; everything is said on standard error."""

    def tell(self, text: str) -> None:
        """Say something."""
        typer.echo(text, err=True)

    def ask(self, question: str, *, default: str = "") -> str:
        """The line they type, without blanks around it; for none the default, which is shown."""
        answer: str = typer.prompt(question, default=default, show_default=bool(default), err=True)
        return answer.strip()

    def ask_secret(self, question: str) -> str:
        """The same, without echo."""
        answer: str = typer.prompt(
            question, default="", show_default=False, hide_input=True, err=True
        )
        return answer.strip()

    def confirm(self, question: str, *, default: bool) -> bool:
        """Yes or no."""
        return typer.confirm(question, default=default, err=True)
