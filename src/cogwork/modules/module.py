"""One configured module: started, watched, started again when it fails, and stopped."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
from dataclasses import replace
from pathlib import Path

import grpc.aio
from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.config.module import ModuleConfig
from cogwork.core.ending import to_its_end
from cogwork.core.errors import CogworkError
from cogwork.graph.limits import retry_delay
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.logs.levels import Level
from cogwork.logs.rules import MODULES, RESOURCES
from cogwork.modules.address import removed
from cogwork.modules.calls import Brought, ModuleCalls
from cogwork.modules.first_run import first_run
from cogwork.modules.greeting import Greeting, NotRunning
from cogwork.modules.ground import Ground
from cogwork.modules.incarnation import Incarnation
from cogwork.modules.launching import address_of, launch_of
from cogwork.modules.output import Stream
from cogwork.modules.process import CannotStop, Child
from cogwork.modules.watch import Watch
from cogwork.robot.guests import GuestState as State
from cogwork.robot.guests import GuestStatus
from cogwork.wire.grpc import LARGEST_MESSAGE

_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", LARGEST_MESSAGE),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
_LAST_WORDS = 0.5
"""Seconds that calls under way have to end, before they are cut off."""
_LASTED = 30.0
"""Seconds after which a module that fails has worked before."""


class Module:
    def __init__(self, config: ModuleConfig, ground: Ground) -> None:
        self.config = config
        self.state = State.PENDING
        self.since = ground.clock.time()
        self.error = ""
        """Why it is not ready; empty once it is."""
        self.failures = 0
        """In a row."""
        self.starts = 0
        self.pid: int | None = None
        self.unfinished: list[str] = []
        """What did not end by itself when its process was last ended: a resource, or all of it."""
        self._ground = ground
        self._log = logging.getLogger(f"{MODULES}{config.name}")
        self._out = {
            Stream.STDOUT: logging.getLogger(f"{MODULES}{config.name}.StdOut"),
            Stream.STDERR: logging.getLogger(f"{MODULES}{config.name}.StdErr"),
        }
        self.described: dict[str, DescriptorPool] = {}
        """The services that only it knows, as it last described them."""
        self._known: Brought | None = None
        """What it brought when it was last ready."""
        self._life: Incarnation | None = None
        self._level: Level | None = None
        """The one it was started with."""
        self._running: asyncio.Task[None] | None = None
        self._again = asyncio.Event()
        self._delay = 0.0
        """Seconds from its last failure to its next start."""
        self._last_lines: tuple[str, ...] = ()
        """What it said before it failed, where the error quotes only the last of it."""
        self._rng = random.Random()  # noqa: S311 - to keep many from coming back at once

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def status(self) -> GuestStatus:
        silent = self._life.trouble if self._life is not None else None
        return GuestStatus(
            self.name,
            State.UNHEALTHY if silent else self.state,
            self.since,
            silent or self._told_error,
            0 if self.state is State.READY else self.failures,
            self.starts,
            self.pid,
        )

    @property
    def _told_error(self) -> str:
        if self.state is not State.UNHEALTHY:
            return self.error
        lines = "".join(f"\n{line}" for line in self._last_lines)
        return f"{self.error}; it is started again after {self._delay:.1f}s{lines}"

    @property
    def brought(self) -> Brought | None:
        """What it brings, or brought when it last ran."""
        return self._known

    def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(
            self._run(), name=f"module {self.name}"
        )

    def restart(self, why: str) -> None:
        """Now, also if it waits for its next attempt."""
        self._log.info("restarting: %s", why)
        self.failures = 0
        self._again.set()

    async def stop(self, patience: float) -> None:
        """First it gets the time to close what it has built, unless that is done."""
        self._enter(State.CLOSING)
        if self._life is not None:
            await self._let_empty(self._life, patience)
        self._ground.changed()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def offer(self, spec: Spec) -> Offer | Unavailable | None:
        if self._known is None or (spec.name.api, spec.model) not in self._known.models:
            return None
        if self._life is None or self.state is not State.READY:
            return Unavailable(self.why_not, self.is_coming)
        return self._life.offer(spec)

    @property
    def is_coming(self) -> bool:
        """Whether it only takes a moment, and nothing has gone wrong yet."""
        return self.state in (State.PENDING, State.STARTING) and not self.error

    @property
    def why_not(self) -> str:
        """For those whose resources it would bring."""
        if self.state is State.CLOSING:
            return f'module "{self.name}" is being stopped'
        if self.error:
            again = "; it is being started again" if self.state is State.STARTING else ""
            return f'module "{self.name}" {self.error}{again}'
        return f'module "{self.name}" is starting'

    def speak_up(self) -> None:
        """Start it again, if it was told to log less than is wanted by now. One that is starting
        is looked at when it is ready."""
        if self._life is not None and self._is_too_quiet(self._life):
            self.restart("it was started with a higher log level")

    def _is_too_quiet(self, life: Incarnation) -> bool:
        rules = self._ground.rules()
        if self._level is not None and rules.level_of(self._log.name) < self._level:
            return True
        return any(self._level_of(name) < level for name, level in life.levels.items())

    async def _run(self) -> None:
        while True:
            self._again.clear()
            try:
                await self._live_unless_restarted()
            except (CogworkError, OSError) as error:
                self._fail(f"could not be started: {error}")
            except Exception as error:
                self._log.exception("a fault of the server's own")
                self._fail(f"could not be run: {error}")
            await self._pause()

    async def _live_unless_restarted(self) -> None:
        """A start that somebody wants to begin anew is given up at once."""
        living = asyncio.ensure_future(self._live())
        again = asyncio.ensure_future(self._again.wait())
        try:
            await asyncio.wait({living, again}, return_when=asyncio.FIRST_COMPLETED)
            if self._life is not None:
                await asyncio.wait({living})
        finally:
            again.cancel()
            living.cancel()
            await to_its_end(asyncio.gather(living, return_exceptions=True))
        if not living.cancelled():
            living.result()

    async def _live(self) -> None:
        """Until it ends, or is told to."""
        self._enter(State.STARTING)
        self.starts += 1
        address = address_of(self.config, self._ground)
        self._level = self._ground.rules().level_of(self._log.name)
        launch = await launch_of(self.config, self._ground, address, self._level, self._log.info)
        await first_run(
            self.name,
            Path(launch.argv[0]),
            launch.environment,
            self._log.info,
            self._ground.clock,
            timeout=self.config.first_run_timeout,
            limits=launch.limits,
        )
        child = await Child.start(launch, self._heard, self._ground.clock)
        self.pid = child.pid
        for note in child.notes:
            self._log.warning("%s", note)
        self._ground.tell("module", {"module": self.name, "state": "started", "pid": child.pid})
        target = address if self.config.tcp_mode else f"unix:{address}"
        channel = grpc.aio.insecure_channel(target, options=_OPTIONS)
        try:
            ground = self._ground
            greeting = Greeting(address, ground.parent, ground.deadlines.start, ground.clock)
            brought = await greeting.exchanged(child, ModuleCalls(channel))
            await self._serve(child, brought, channel)
        except NotRunning as error:
            # Told at once: to end what is left of it may take a while.
            self._fail(str(error), error.last_lines)
        finally:
            life, self._life = self._life, None
            self.pid = None
            if self._again.is_set():
                # Somebody wants it to be started again: nothing has gone wrong.
                self._enter(State.STARTING)
            self._ground.changed()
            await to_its_end(self._put_away(life, channel, child, address))

    async def _put_away(
        self, life: Incarnation | None, channel: grpc.aio.Channel, child: Child, address: str
    ) -> None:
        if life is not None:
            await life.end()
        # Calls under way end by themselves with a process that is dead: better than by us.
        await channel.close(_LAST_WORDS)
        self.unfinished = sorted(map(str, life.unclosed)) if life is not None else []
        ran = not child.exited.done()
        try:
            ended = await child.stop()
        except CannotStop as error:
            self._log.error("%s", error)
            self.unfinished.append(f"module {self.name}")
        else:
            if ran and ended.code == -signal.SIGKILL:
                self.unfinished.append(f"module {self.name}")
        removed(address)

    async def _serve(self, child: Child, brought: Brought, channel: grpc.aio.Channel) -> None:
        began = self._ground.clock.monotonic()
        life = self._life = Incarnation(
            self.starts, brought, channel, self._ground, self._level_of, self._provides
        )
        self._known = brought
        self.error = ""
        self._enter(State.READY)
        self._log.info("ready, with %s", _listed(brought))
        self._ground.changed()
        self.speak_up()
        describing = asyncio.ensure_future(self._describe(life))
        try:
            await Watch(self.name, child, life, self._ground, self._log).until(self._again)
        finally:
            describing.cancel()
            await asyncio.gather(describing, return_exceptions=True)
            if self._ground.clock.monotonic() - began >= _LASTED:
                self.failures = 0
        if not child.exited.done():
            self._enter(State.STARTING)
            # One that does not answer closes nothing.
            await self._let_empty(life, 0.0 if life.trouble else self._ground.deadlines.empty)
        if child.exited.done():
            ended = child.exited.result()
            raise NotRunning(ended.words, ended.last_lines)

    async def _describe(self, life: Incarnation) -> None:
        try:
            self.described = await life.describe()
        except Exception:
            self._log.exception("what it brings could not be described")

    async def _let_empty(self, life: Incarnation, patience: float) -> None:
        """What it offers counts no more by now: whoever has a resource of it is told to close it,
        and what moves is stopped with that."""
        self._ground.changed()
        emptied = asyncio.ensure_future(life.emptied.wait())
        try:
            await self._ground.clock.wait({emptied}, patience)
        finally:
            emptied.cancel()

    async def _pause(self) -> None:
        if self._again.is_set():
            return
        again = asyncio.ensure_future(self._again.wait())
        try:
            await self._ground.clock.wait({again}, self._delay)
        finally:
            again.cancel()

    def _heard(self, stream: Stream, line: str) -> None:
        level = logging.INFO if stream is Stream.STDOUT else logging.ERROR
        self._out[stream].log(level, "%s", line)

    def _provides(self, name: ResourceName, is_there: bool) -> None:
        if is_there:
            self._ground.provided[str(name)] = self.name
            self._hint(name)
        elif self._ground.provided.get(str(name)) == self.name:
            del self._ground.provided[str(name)]

    def _hint(self, name: ResourceName) -> None:
        if self._ground.rules().overrules(str(name)):
            self._log.warning(
                "log_configuration of %s has no effect: log_level of module %s counts",
                *(name, self.name),
            )

    def _level_of(self, name: ResourceName) -> Level:
        """As it will be, once it is known that the resource lives here."""
        rules = replace(self._ground.rules(), provided={str(name): self.name})
        return rules.level_of(f"{RESOURCES}{name}")

    def _fail(self, why: str, last_lines: tuple[str, ...] = ()) -> None:
        self.failures += 1
        self.error = why
        self._last_lines = last_lines if len(last_lines) > 1 else ()
        self._delay = retry_delay(self.failures, self._ground.pauses, self._rng)
        self._enter(State.UNHEALTHY)
        again = f"it is started again after {self._delay:.1f}s"
        self._log.error("module %s %s; %s", self.name, why, again)
        self._ground.tell(
            "module",
            {
                "module": self.name,
                "state": "failed",
                "reason": why,
                "failures": self.failures,
                "retry_after": round(self._delay, 3),
            },
        )
        self._ground.changed()

    def _enter(self, state: State) -> None:
        if self.state is not State.CLOSING:
            self.state = state
            self.since = self._ground.clock.time()


def _listed(brought: Brought) -> str:
    names = sorted(str(model) for _, model in brought.models)
    return ", ".join(names) if names else "no model at all"
