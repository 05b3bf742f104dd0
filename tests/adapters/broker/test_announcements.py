from __future__ import annotations

from adapters.broker.payloads import VERSION, pack, unpack
from bot.core.erasure import SubjectErased
from bot.core.other_bots import Announcement, PlaceChanged, RowChanged, UsageTaken
from tests.cases import each_case
from tests.fakes import GROUP


@each_case(
    "note",
    [
        UsageTaken(GROUP, 777, 12.5, 0.25, 1_700_000_000.0, 1_700_000_001.5),
        UsageTaken(None, 0, -3.0, 0.0, 1.0, 2.0),
        RowChanged("limits", '{"777": {}}'),
        PlaceChanged(GROUP, "hush", "mute"),
        SubjectErased(user=777),
        SubjectErased(group=4242, said=5.0),
        SubjectErased(user=777, since=5.0),
    ],
)
def test_a_note_is_read_as_it_was_told(note: Announcement) -> None:
    assert unpack(Announcement, pack(note), VERSION) == note
