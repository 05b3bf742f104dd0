from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.core.codec import read, write
from bot.core.journal import Entry, Recovery, Remembered
from frostagent.types.runs import ToolFinished

st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))


# Details and arguments of calls may be anything; `Recorder` keeps neither.
st.register_type_strategy(
    ToolFinished,
    st.builds(ToolFinished, details=st.just({}), arguments=st.none()),
)


@given(st.from_type(Entry))  # type: ignore[arg-type]  # hypothesis takes a union, its stubs say a class
def test_every_entry_is_read_back_as_it_was_written(entry: Entry) -> None:
    assert read(Entry, write(entry)) == entry


def test_a_store_that_is_empty_has_nothing_to_say() -> None:
    assert Recovery() == Recovery((), (), (), (), ())
    assert Remembered() == Remembered((), ())
