import asyncio
import subprocess
import sys

from cogwork.core.process_end import wait_for_end


def start(program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)


async def test_end_of_a_process_is_noticed() -> None:
    process = start("input()")
    waiting = asyncio.create_task(wait_for_end(process.pid))
    try:
        await asyncio.wait({waiting}, timeout=0.05)
        assert not waiting.done()
    finally:
        process.kill()
    async with asyncio.timeout(30):
        await waiting
    process.communicate()


async def test_process_that_is_gone_has_ended() -> None:
    process = start("")
    process.communicate()
    await wait_for_end(process.pid)
