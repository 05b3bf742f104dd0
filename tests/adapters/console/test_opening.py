from __future__ import annotations

import re

from msgspec.structs import replace

from adapters.console.trying import MAX_PERSONA
from bot.core.console_views import PersonaState
from bot.core.query_results import UsageSum
from bot.core.trial_group import Source, TrialLine, TrialOptions
from tests.adapters.console.samples import HOSTILE, trace
from tests.adapters.console.test_trying import ENGLISH, post, typed
from tests.adapters.console.trials import CEILING
from tests.adapters.console.visiting import visiting


async def test_a_real_model_is_offered_with_its_limit_or_not_at_all_and_what_went_wrong_is_said() -> None:
    async with visiting() as place:
        await place.log_in()
        place.trying.ceiling = replace(CEILING, unpriced=("mine", "<yours>"))
        text = (await place.ask("GET", "/try", headers=ENGLISH))[1]
        assert "the price of mine, &lt;yours&gt; is not known" in text
        assert "$0.2500 of what has a price" in text
        place.trying.ceiling = None
        text = (await place.ask("GET", "/try", headers=ENGLISH))[1]
        assert 'value="real"' not in text
        assert "LLM_BASE_URL is not set" in text
        for trouble, words in (
            ("spent", "money is spent"),
            ("failed", "could not be opened"),
            ("persona", "could not be taken over"),
        ):
            place.trying.trouble = trouble
            status, text, _ = await post(place, "/try/open", model="demo", question="伞？")
            assert (status, words in text, "伞？" in text) == (503, True, True)
        place.trying.trouble, place.trying.last = "", UsageSum(3, 900, 0, 100, 0.0123)
        assert "3 requests, 1.0k tokens, $0.0123" in (await place.ask("GET", "/try", headers=ENGLISH))[1]


async def test_the_question_of_somebody_who_was_forgotten_while_a_group_opened_is_on_no_page() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.traces.append(trace())
        place.trying.trouble = "forgotten"
        row = place.journal.traces[0].row
        status, text, _ = await post(place, "/try/open", model="demo", persona="my fox", turn="t1")
        assert place.trying.wanted[-1].question == row.text
        assert (status, "was forgotten meanwhile" in text, "my fox" in text) == (503, True, True)
        assert (row.text in text, 'name="turn" value="t1"' in text) == (False, False)


async def test_no_group_opens_without_its_question_where_the_journal_is_away() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.traces.append(trace())
        place.journal.lines = None
        status, text, _ = await post(place, "/try/open", model="demo", question="伞？", turn="t1")
        assert (status, "could not be opened" in text, 'name="turn" value="t1"' in text) == (503, True, True)
        assert place.trying.wanted == []


async def test_an_unsaved_text_of_a_persona_is_brought_along_and_kept_nowhere() -> None:
    async with visiting() as place:
        await place.log_in()
        place.personas = [PersonaState(key=key, name=f"N{key}", text="old") for key in ("", "k")]
        _, text, _ = await place.ask("GET", "/persona/text?key=k")
        assert 'formaction="/try/persona"' in text
        status, text, _ = await post(place, "/try/persona", key="k", text=f"{HOSTILE}\n  二")
        assert (status, 'name="key" value="k"' in text, "An unsaved text of Nk" in text) == (200, True, True)
        kept = re.search(r'<textarea name="persona" hidden>\n(.*?)</textarea>', text, re.DOTALL)
        assert kept
        assert kept[1].endswith("\n  二")
        assert "<script>" not in text
        for wrong in ("", " \n ", "x" * (MAX_PERSONA + 1)):
            assert (await post(place, "/try/persona", key="k", text=wrong))[0] == 400
        assert [one.text for one in place.personas] == ["old", "old"]
        assert place.trying.wanted == []


async def test_a_question_is_brought_along_from_its_turn_or_stands_ready_in_what_is_open() -> None:
    async with visiting() as place:
        await place.log_in()
        assert (await post(place, "/try/turn", turn="t1"))[0] == 404
        place.journal.traces.append(trace())
        status, text, _ = await post(place, "/try/turn", turn="t1")
        row = place.journal.traces[0].row
        assert (status, f'name="asker" value="{row.name}"' in text, row.text in text) == (200, True, True)
        assert 'name="turn" value="t1"' in text
        source = Source(row.asker, row.where.session_id)
        for turn, wanted in (
            ("t1", TrialOptions(asker=row.name, question=row.text, source=source)),
            ("forgotten", TrialOptions()),
            ("", TrialOptions(asker="x", question="typed")),
        ):
            assert (await post(place, "/try/open", turn=turn, asker="x", question="typed"))[0] == 303
            assert place.trying.wanted[-1] == wanted
        trial = place.tries()
        assert await post(place, "/try/turn", turn="t1") == (303, "", "/try#say")
        assert (trial.draft, trial.sources) == (TrialLine(row.name, row.text), [source])
        trial.people = (*trial.people, row.name)
        _, text, _ = await place.ask("GET", "/try", headers=ENGLISH)
        assert f"<option selected>{row.name}</option>" in text
        assert typed(text) == row.text
        assert not trial.said
        place.journal.lines = None
        assert (await post(place, "/try/turn", turn="t1"))[0] == 503
