"""Reads the files of personas and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from bot.budget.limits import AS_USUAL, LimitOverride
from bot.core.language import CATALOGUE, Phrase
from bot.memory.personas import Cast, House, Persona, Personas
from bot.policy.join_rules import JoinRule, Pattern
from bot.quiet.rule import read_change
from bot.runtime import reloading
from bot.runtime.reloading import Reload
from config.persona_files import PersonaFile, by_group, read_personas
from config.settings import Settings, read_persona
from config.tables import GROUPS_MEND, GROUPS_SETTING, GroupRow, read_groups
from frostagent.types.errors import ConfigError, Problem
from frostagent.types.messages import AssistantMessage, Message, UserMessage
from frostagent.types.ports import ChatModel
from frostagent.types.traits import Audience

BAD_PATTERN = Phrase(
    "群 {group} 的第 {number} 条 join：match 写法不对（{why}）",
    "join {number} of the group {group}: match {why}",
)
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class PersonaFiles:
    """Reads the files in the settings. `model_of` makes a model by name, at their base URL;
    `compile_pattern` a matcher of a word or a /regular expression/, or raises ValueError.
    """

    settings: Settings
    model_of: Callable[[str], ChatModel]
    compile_pattern: Callable[[str], Pattern]

    def cast(self) -> Cast:
        """Read all files. Raises ConfigError for a file that cannot be used."""
        files, problems = read_personas(self.settings.personas_dir)
        rows, more = self._groups(files)
        if problems := (*problems, *more):
            raise ConfigError(*problems)
        usual = self.persona(read_persona(self.settings))
        houses, audiences = self._houses(rows), self._audiences()
        return Cast(usual, self._others(files), by_group(files), houses, audiences)

    def persona(self, file: PersonaFile) -> Persona:
        """Combine the file with the settings; the file wins."""
        settings, head = self.settings, file.head
        aliases = settings.bot_aliases if not head.name else ()
        return Persona(
            file.prompt,
            head.name or settings.bot_name,
            (*aliases, *head.aliases),
            settings.bot_language,
            examples=tuple(_examples(file)),
            model=self.model_of(head.model) if head.model else None,
            temperature=head.temperature,
            denied=frozenset(head.tools_deny),
        )

    def reloads(self, personas: Personas) -> dict[str, Reload]:
        """For each file or folder that is set, a function that reads it again."""
        kept, _ = read_personas(self.settings.personas_dir)

        def usual() -> tuple[Problem, ...]:
            try:
                who = self.persona(read_persona(self.settings))
            except ConfigError as error:
                return error.problems
            personas.become(replace(personas.cast, usual=who))
            return ()

        def others() -> tuple[Problem, ...]:
            nonlocal kept
            kept, problems = read_personas(self.settings.personas_dir, before=kept)
            personas.become(
                replace(personas.cast, others=self._others(kept), claimed=by_group(kept))
            )
            return problems

        def groups() -> tuple[Problem, ...]:
            rows, problems = self._groups(personas.cast.others)
            if not problems:
                personas.become(replace(personas.cast, houses=self._houses(rows)))
            return problems

        every = {
            reloading.PERSONA.fill(): (self.settings.bot_persona, usual),
            reloading.PERSONAS.fill(): (self.settings.personas_dir, others),
            reloading.GROUPS.fill(): (self.settings.groups_file, groups),
        }
        return {name: reload for name, (file, reload) in every.items() if file is not None}

    def _groups(
        self, personas: Mapping[str, object]
    ) -> tuple[Mapping[int, GroupRow], tuple[Problem, ...]]:
        rows, problems = read_groups(self.settings.groups_file, personas)
        more = []
        for group, row in rows.items():
            for number, rule in enumerate(row.join, 1):
                try:
                    self.compile_pattern(rule.match)
                except ValueError as error:
                    what = BAD_PATTERN.fill(group=group, number=number, why=str(error))
                    more.append(Problem(GROUPS_SETTING, what, GROUPS_MEND))
        return rows, (*problems, *more)

    def _houses(self, rows: Mapping[int, GroupRow]) -> dict[int, House]:
        return {group: self._house(row) for group, row in rows.items()}

    def _house(self, row: GroupRow) -> House:
        return House(
            persona=row.persona,
            rules=row.rules,
            chance=row.chance,
            chime_in=row.chime_in,
            audiences=self._audiences(row.tools_audience),
            quiet=read_change(row.quiet, row.quiet_mode),
            join=tuple(
                JoinRule(
                    self.compile_pattern(one.match), one.then == "accept", one.reason, one.match
                )
                for one in row.join
            ),
            welcome=row.welcome,
            farewell=row.farewell,
            recap=row.recap,
            day=None if (day := LimitOverride(row.day_cost, row.day_tokens)) == AS_USUAL else day,
        )

    def _audiences(self, own: Mapping[str, str] | None = None) -> dict[str, Audience]:
        told = {**self.settings.tools_audience, **(own or {})}
        return {name: Audience(audience) for name, audience in told.items()}

    def _others(self, files: Mapping[str, PersonaFile]) -> dict[str, Persona]:
        return {key: self.persona(file) for key, file in files.items()}


def _examples(file: PersonaFile) -> Iterator[Message]:
    for example in file.head.examples:
        yield UserMessage(example.user)
        yield AssistantMessage(example.bot)
