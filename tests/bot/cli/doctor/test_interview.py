"""What a connected server is asked, over real sockets to the simulator; the rest is in test_forward.py."""

from __future__ import annotations

from adapters.simulator.faults import Fault
from adapters.simulator.server import Simulator
from adapters.simulator.world import Person, World
from bot.cli.checks import Check, Outcome
from bot.cli.doctor.onebot import check_forward
from config.settings import Settings
from frostagent.clock import RandomIds, SystemClock
from tests.bot.cli.doctor.surroundings import BOT, TOKEN, told

OWNER = 20001


def world() -> World:
    world = World(self_id=BOT)
    world.add_friend(Person(OWNER, "owner"))
    return world


async def look(simulator: Simulator, *, send_image: bool = True, owners: str = str(OWNER)) -> list[Check]:
    given = {"onebot_mode": "forward", "onebot_url": await simulator.serve(), "onebot_access_token": TOKEN}
    model = {"llm_base_url": "https://api.deepseek.com/v1", "llm_model": "deepseek-chat"}
    settings = Settings.model_validate(given | model | {"bot_owners": owners})
    return await check_forward(settings, clock=SystemClock(), ids=RandomIds(), send_image=send_image)


async def test_nothing_is_sent_unless_it_is_asked_for() -> None:
    async with Simulator(world(), token=TOKEN) as simulator:
        checks = await look(simulator, send_image=False)
        assert simulator.sent == []
    assert [check.name for check in checks] == ["onebot host", "onebot", "account"]


async def test_a_group_of_many_is_told_of_where_nothing_is_limited() -> None:
    many = world()
    many.add_group(4242, members=[Person(number, "") for number in range(20000, 20200)])
    async with Simulator(many, token=TOKEN) as simulator:
        checks = await look(simulator, send_image=False)
    assert checks[-1].said.startswith("group 4242 has 201 members")


async def test_a_picture_asked_for_reaches_the_owner() -> None:
    async with Simulator(world(), token=TOKEN) as simulator:
        checks = await look(simulator)
        (sent,) = simulator.sent
    assert (sent.user_id, [segment["type"] for segment in sent.segments]) == (OWNER, ["text", "image"])
    assert {check.outcome for check in checks} == {Outcome.OK}
    assert checks[-1].name == "picture"


async def test_without_an_owner_the_picture_goes_to_the_account_itself() -> None:
    async with Simulator(world(), token=TOKEN) as simulator:
        await look(simulator, owners="")
        (sent,) = simulator.sent
    assert sent.user_id == BOT


async def test_an_account_offline_is_one_problem_and_sends_no_picture() -> None:
    async with Simulator(world(), token=TOKEN) as simulator:
        simulator.world.online = False
        checks = await look(simulator)
        assert simulator.sent == []
    assert told(checks).startswith("account: ")
    assert (checks[-1].name, checks[-1].outcome) == ("picture", Outcome.WARNING)


async def test_a_picture_that_qq_does_not_confirm_is_a_warning() -> None:
    async with Simulator(world(), token=TOKEN) as simulator:
        simulator.faults.arm(Fault.TIMEOUT)
        checks = await look(simulator)
    assert (checks[-1].name, checks[-1].outcome) == ("picture", Outcome.WARNING)


async def test_a_socket_that_closes_while_the_picture_is_sent_leaves_what_was_told_before() -> None:
    async with Simulator(world(), token=TOKEN) as simulator:
        simulator.faults.arm(Fault.NEXT_CONNECTION)
        checks = await look(simulator)
    assert [check.name for check in checks][:3] == ["onebot host", "onebot", "account"]
