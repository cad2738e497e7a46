from pathlib import Path

import pytest

from cogwork.core.clock import ManualClock, SystemClock
from cogwork.server.assembly import SESSIONS_TASK, ServerParts
from cogwork.server.closing import CLOSE_BUDGET, ClosingStep, close_all, list_closing_steps
from cogwork.server.serve_options import ServeOptions
from cogwork.serving.log import ServerLog
from cogwork.serving.shutdown import SHUTDOWN_TIMEOUT, Shutdown

ORDER = [
    "listeners.stop_accepting",
    "webrtc.stop_answering",
    "machine.halt",
    "tasks.cancel",
    "config_watcher.aclose",
    "applier.aclose",
    "machine.aclose",
    "tasks.cancel",
    "modules.aclose",
    "processes.aclose",
    "programs.aclose",
    "remotes.aclose",
    "parent.aclose",
    "listeners.aclose",
    "webrtc.aclose",
    "discovery.aclose",
]


class Recorder:
    """A part of the server that records how it is closed."""

    def __init__(self, name: str, calls: list[tuple[str, object]]) -> None:
        self._name = name
        self._calls = calls

    def stop_answering(self) -> None:
        self._calls.append((f"{self._name}.stop_answering", None))

    async def stop_accepting(self) -> None:
        self._calls.append((f"{self._name}.stop_accepting", None))

    async def cancel(self, *, keep: object = None) -> None:
        self._calls.append((f"{self._name}.cancel", keep))

    async def halt(self) -> None:
        self._calls.append((f"{self._name}.halt", None))

    async def aclose(self, budget: float | None = None) -> list[str] | None:
        self._calls.append((f"{self._name}.aclose", budget))
        return [self._name] if self._name in ("machine", "modules", "processes") else None


async def test_parts_are_closed_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, environment = SystemClock(), {"HOME": str(tmp_path)}
    log, options = ServerLog(clock, 1, environment), ServeOptions(tmp_path / "machine.json")
    parts = ServerParts(options, environment, clock, tmp_path, Shutdown(), log)
    parts.journal.close()
    log.close()
    calls: list[tuple[str, object]] = []
    for name in {each.partition(".")[0] for each in ORDER}:
        monkeypatch.setattr(parts, name, Recorder(name, calls))

    unfinished = await close_all(list_closing_steps(parts), clock)

    assert [name for name, _ in calls] == ORDER
    assert unfinished == ["machine", "modules", "processes"]
    given = [value for name, value in calls if name in ("tasks.cancel", "machine.aclose")]
    assert given == [{SESSIONS_TASK}, CLOSE_BUDGET, None]


async def test_processes_get_the_time_that_is_left() -> None:
    clock, lefts = ManualClock(), list[float]()

    async def close_slowly(_: float) -> list[str]:
        await clock.advance(20)
        return ["a resource"]

    async def close_processes(left: float) -> None:
        lefts.append(left)

    resources = ClosingStep("resources", close_slowly)
    processes = ClosingStep("processes", close_processes)
    unfinished = await close_all([resources, processes, resources, resources, processes], clock)
    assert lefts == [SHUTDOWN_TIMEOUT - 30, 0.0]
    assert unfinished == ["a resource"] * 3
