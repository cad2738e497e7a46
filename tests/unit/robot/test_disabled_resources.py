from __future__ import annotations

from tests.unit.robot.bench import Bench, thing


async def errors_of(bench: Bench) -> dict[str, str]:
    status = await bench.call_robot("GetMachineStatus")
    return {each.name.name: each.error for each in status.resources}


async def test_disabled_resource_does_not_run_and_its_dependents_say_why(bench: Bench) -> None:
    why = 'it is disabled in the configuration; remove "disabled" to run it'
    await bench.apply({**thing("a"), "disabled": True}, thing("b", needs="a"), thing("c"))
    assert await errors_of(bench) == {
        "a": why,
        "b": f'depends on "a", which is not ready: {why}',
        "c": "",
    }
    assert ("build", "a") not in bench.history
    await bench.apply(thing("a"), thing("b", needs="a"), thing("c"))
    assert set((await errors_of(bench)).values()) == {""}


async def test_running_resource_is_closed_when_it_is_disabled(bench: Bench) -> None:
    await bench.apply(thing("a"))
    await bench.apply({**thing("a"), "disabled": True})
    assert bench.history == [("build", "a"), ("close", "a")]
