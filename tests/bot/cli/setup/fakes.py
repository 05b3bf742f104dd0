"""A person at a terminal who has thought of their answers beforehand."""

from __future__ import annotations

import typer

from bot.core.language import Language, text_in

LEAVE = "\x03"


class ScriptedTerminal:
    """Gives the answers in order, "" for the default, LEAVE for Ctrl-C; fails when it is asked more than that."""

    def __init__(self, *answers: str) -> None:
        self.left = list(answers)
        self.told: list[str] = []
        self.questions: list[str] = []

    def tell(self, text: str) -> None:
        self.told.append(text)

    def ask(self, question: str, *, default: str = "") -> str:
        return self._answer(f"{question} [{default}]") or default

    def ask_secret(self, question: str) -> str:
        return self._answer(question)

    def confirm(self, question: str) -> bool:
        return self._answer(question) == "y"

    def _answer(self, question: str) -> str:
        assert self.left, f"nobody thought of: {question}"
        self.questions.append(question)
        answer = self.left.pop(0)
        if answer == LEAVE:
            raise typer.Abort
        return answer

    def said(self, words: str) -> bool:
        """Whether these words were told in one of the languages."""
        return any(words in text_in(language, text) for text in self.told for language in Language)
