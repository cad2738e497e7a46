"""Guessing keys: nothing is learned from the time it takes, and known clients do not notice."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

from tests.support.machine.login import KEYS, ROLES, config, log_in
from tests.support.machine.running import run_server
from tests.support.sizes import size
from tests.support.waiting import pass_time
from tests.unit.auth.parts import ADDRESS, KEY, SECRETS, api_keys

from cogwork.auth.attempt_limiter import AttemptLimiter, AttemptLimits
from cogwork.auth.authenticator import Authenticator
from cogwork.auth.credentials import KnownCredentials
from cogwork.auth.errors import Unauthenticated
from cogwork.core.clock import ManualClock
from cogwork.core.limits.token_bucket import Rate

GUESSES = size(ci=400, full=10_000)
ADDRESSES = 20
_ENDLESS = Rate.every(1.0, burst=1_000_000_000)
UNLIMITED = AttemptLimits(_ENDLESS, _ENDLESS, _ENDLESS)


def time_guess(authenticator: Authenticator, entity: str, key: str) -> float:
    start = time.perf_counter()
    try:
        authenticator.log_in(entity, "api-key", key, ADDRESS)
    except Unauthenticated:
        return time.perf_counter() - start
    raise AssertionError("the guess was right")


def test_time_of_a_refusal_tells_nothing() -> None:
    """An unknown ID, a known ID with nothing right, and one with all but the last character."""
    clock = ManualClock()
    limiter = AttemptLimiter(clock.monotonic, UNLIMITED)
    authenticator = Authenticator(KnownCredentials(api_keys()), KEY, "machine", limiter, clock)
    almost = SECRETS["owner"][:-1] + "x"
    guesses = {
        "unknown ID": ("nobody", almost),
        "nothing right": ("owner", "x" * len(almost)),
        "almost right": ("owner", almost),
    }
    times: dict[str, list[float]] = {name: [] for name in guesses}
    for _ in range(size(ci=2000, full=GUESSES)):
        for name, guess in guesses.items():
            times[name].append(time_guess(authenticator, *guess))
    medians = {name: statistics.median(found) * 1e6 for name, found in times.items()}
    quartiles = {name: statistics.quantiles(found, n=4)[2] * 1e6 for name, found in times.items()}
    for name, median in medians.items():
        print(f"{name:14} median {median:6.2f} us, upper quartile {quartiles[name]:6.2f} us")
    assert max(medians.values()) < 1.2 * min(medians.values())


async def test_many_guesses_from_many_addresses(tmp_path: Path) -> None:
    """All but a few are refused without a check, because they are short; others log in."""
    async with run_server(config(*ROLES), tmp_path) as server:
        await server.out.wait_for("applied in")

        def time_login() -> float:
            start = time.perf_counter()
            log_in(server.port, "owner")
            return time.perf_counter() - start

        time_login()
        alone = [await asyncio.to_thread(time_login) for _ in range(50)]
        guesser = await asyncio.create_subprocess_exec(
            *(sys.executable, str(Path(__file__).with_name("guesser.py"))),
            *(str(server.port), KEYS["owner"], str(GUESSES), str(ADDRESSES)),
            stdout=asyncio.subprocess.PIPE,
        )
        counting = asyncio.ensure_future(guesser.communicate())
        during = []
        while not counting.done():
            during.append(await asyncio.to_thread(time_login))
            await pass_time(0.01)
        statuses = Counter(json.loads((await counting)[0]))
        alone += [await asyncio.to_thread(time_login) for _ in range(50)]
    ratio = statistics.median(during) / statistics.median(alone)
    print(
        f"{GUESSES} guesses from {ADDRESSES} addresses: {dict(statuses)}; logins meanwhile "
        f"{statistics.median(during) * 1000:.1f} ms, {ratio:.2f} of alone, {len(during)} of them"
    )
    assert set(statuses) == {"401", "429"}
    # The budget of the key, and one guess for each address.
    assert statuses["401"] < 30 + ADDRESSES + 60
    assert len(during) >= 5
    assert ratio < 8
