import asyncio

from tests.support.waiting import wait_until

from cogwork.server.background_tasks import BackgroundTasks


async def test_failure_of_a_task_is_reported() -> None:
    reasons: list[str] = []
    tasks = BackgroundTasks(reasons.append)

    async def fail() -> None:
        raise ValueError("broken")

    tasks.start(fail(), "log")
    await wait_until(lambda: reasons == ["task log failed"])
    await tasks.cancel()


async def test_kept_tasks_go_on() -> None:
    reasons: list[str] = []
    tasks, began, ended = BackgroundTasks(reasons.append), list[str](), list[str]()

    async def work(name: str) -> None:
        began.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    for name in ("sessions", "log"):
        tasks.start(work(name), name)
    await wait_until(lambda: len(began) == 2)
    await tasks.cancel(keep={"sessions"})
    assert ended == ["log"]
    await tasks.cancel()
    assert ended == ["log", "sessions"]
    assert reasons == []
