from __future__ import annotations

from base64 import b32encode

from adapters.console.logins import CODE_SECONDS, EVERY, Totp, code_of
from bot.core.console_views import OwnerDecision, State, WaitingCall
from tests.adapters.console.visiting import SAME, TOKEN, Place, visiting
from tests.cases import each_case
from tests.fakes import GROUP, ManualClock

KEY = b"12345678901234567890"  # of RFC 6238
SECRET = b32encode(KEY).decode()
ENGLISH = {"Accept-Language": "en"}


def code(place: Place) -> str:
    return code_of(KEY, int(place.clock.now() // CODE_SECONDS))


def later(place: Place, seconds: float = CODE_SECONDS) -> None:
    place.clock.time += seconds


@each_case(
    ("at", "expected"),
    [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")],
)
def test_codes_are_those_of_the_standard(at: int, expected: str) -> None:
    assert code_of(KEY, at // CODE_SECONDS) == expected


def test_a_code_is_good_once_and_a_minute_around_its_time() -> None:
    clock = ManualClock()
    now = int(clock.now() // CODE_SECONDS)
    assert not Totp("", clock=clock).is_on
    for offset, good in ((-2, False), (-1, True), (0, True), (1, True), (2, False)):
        totp = Totp(SECRET, clock=clock)
        assert totp.use(f" {code_of(KEY, now + offset)} ") is good
        assert not totp.use(code_of(KEY, now + offset))
    totp = Totp(SECRET, clock=clock)
    assert totp.use(code_of(KEY, now))
    assert not totp.use(code_of(KEY, now - 1))  # one from before it
    assert not totp.use("")
    assert not totp.use("１２３４５６")


async def test_a_login_needs_the_code_too_by_token_and_by_link() -> None:
    async with visiting(totp=SECRET) as place:
        assert (await place.ask("GET", "/login"))[1].count('name="totp"') == 2
        link = place.console.logins.invite()
        for data in ({"token": TOKEN}, {"token": TOKEN, "totp": "000000"}, {"code": link}):
            status, text, _ = await place.ask("POST", "/login", data=data, headers=SAME | ENGLISH)
            assert (status, "is not right" in text) == (403, True)
        again = {"code": link, "totp": code(place)}  # it was not used up by the try without a code
        assert (await place.ask("POST", "/login", data=again, headers=SAME))[0] == 303
        used = {"token": TOKEN, "totp": again["totp"]}
        assert (await place.ask("POST", "/login", data=used, headers=SAME))[0] == 403
        later(place)
        status, _, _ = await place.ask("POST", "/login", data={"token": "x", "totp": code(place)}, headers=SAME)
        assert status == 403


async def test_what_is_allowed_needs_a_new_code_and_what_is_denied_does_not() -> None:
    async with visiting(totp=SECRET) as place:
        data = {"token": TOKEN, "totp": code(place)}
        assert (await place.ask("POST", "/login", data=data, headers=SAME))[0] == 303
        place.state = State(calls=(WaitingCall(3, GROUP, "x", place.clock.now() + 99),))
        form = {"form": await place.form(), "name": "A3", "account": "1000"}
        assert 'name="totp"' in (await place.ask("GET", "/approvals"))[1]
        word = {"allows": "1", "totp": data["totp"]}
        status, text, _ = await place.ask("POST", "/approvals", data=form | word, headers=SAME | ENGLISH)
        assert (status, "This changed nothing" in text, place.words) == (403, True, [])
        later(place)
        assert (await place.ask("POST", "/approvals", data=form | word | {"totp": code(place)}, headers=SAME))[0] == 200
        assert (await place.ask("POST", "/approvals", data=form | {"allows": "0"}, headers=SAME))[0] == 200
        assert place.words == [OwnerDecision(1000, "A", 3, allows=True), OwnerDecision(1000, "A", 3, allows=False)]
        for _ in range(9):  # whoever guesses has few tries
            status, text, _ = await place.ask("POST", "/approvals", data=form | word, headers=SAME | ENGLISH)
        assert "Too many tries" in text
        later(place, 2 * EVERY)
        lines = place.journal.lines or []
        assert [one.outcome for one in lines if one.action == "allow"] == ["no code", "ok", *["no code"] * 9]
