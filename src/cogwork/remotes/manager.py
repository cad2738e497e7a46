"""The remotes that are configured, as one provider of the graph."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.config.schema import RemoteConfig
from cogwork.core.clock import Clock
from cogwork.graph.name import Api
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.remotes.names import RemoteName
from cogwork.robot.placed_frame import PlacedFrame

if TYPE_CHECKING:
    from cogwork.remotes.remote import Remote
    from cogwork.remotes.webrtc_dialing import DialingProcess

SetDiscovered = Callable[[Iterable[Spec]], None]


class RemoteManager:
    def __init__(
        self,
        clock: Clock,
        notify_changed: Callable[[], None],
        set_discovered: SetDiscovered,
        find_webrtc: Callable[[], DialingProcess | None] = lambda: None,
        *,
        allow_plaintext: bool,
        mdns: bool = False,
    ) -> None:
        """`set_discovered` gets the nodes of all remotes whenever they change.

        `find_webrtc` returns the WebRTC process; None if WebRTC is off or not installed.
        `allow_plaintext`: logins may travel unencrypted. `mdns`: look for machines on the local
        network.
        """
        self._clock = clock
        self._notify_changed = notify_changed
        self._set_discovered = set_discovered
        self._find_webrtc = find_webrtc
        self._allow_plaintext = allow_plaintext
        self._mdns = mdns
        self._remotes: dict[str, Remote] = {}
        self._published: list[Spec] = []
        self._offers: dict[str, Offer | Unavailable] = {}
        self._frames: tuple[PlacedFrame, ...] = ()
        self._stopping: set[asyncio.Task[None]] = set()

    def apply(self, configs: Sequence[RemoteConfig]) -> None:
        """Connect to what is configured; remotes that have not changed stay connected."""
        wanted = {config.name: config for config in configs}
        for name, remote in tuple(self._remotes.items()):
            if wanted.get(name) != remote.config:
                self._stop(self._remotes.pop(name))
        for name, config in wanted.items():
            if name not in self._remotes:
                self._remotes[name] = self._start(config)
        self._remotes = {name: self._remotes[name] for name in wanted}
        self._on_change()

    def offer(self, spec: Spec) -> Offer | Unavailable | None:
        where = spec.settings
        if not isinstance(where, RemoteName):
            return None
        remote = self._remotes.get(where.remote)
        return remote.offer() if remote is not None else Unavailable("its remote was removed")

    def services(self) -> dict[Api, str]:
        found: dict[Api, str] = {}
        for remote in self._remotes.values():
            found.update(remote.services)
        return found

    def descriptor_pools(self) -> dict[str, DescriptorPool]:
        found: dict[str, DescriptorPool] = {}
        for remote in self._remotes.values():
            found.update(remote.descriptors)
        return found

    def frames(self) -> Sequence[PlacedFrame]:
        return self._frames

    async def aclose(self) -> None:
        for remote in self._remotes.values():
            self._stop(remote)
        self._remotes = {}
        await asyncio.gather(*self._stopping, return_exceptions=True)

    def _start(self, config: RemoteConfig) -> Remote:
        # A machine without remotes starts without the SDK.
        importlib.import_module("cogwork.resource.sdk")  # must come before any import of the SDK
        from cogwork.remotes.machine_dialing import MachineDialer
        from cogwork.remotes.remote import Remote, RemoteContext

        dialer = MachineDialer(
            self._clock,
            self._find_webrtc,
            allow_plaintext=self._allow_plaintext,
            mdns=self._mdns,
        )
        context = RemoteContext(self._clock, self._on_change, dialer.connect)
        remote = Remote(config, context)
        remote.start()
        return remote

    def _stop(self, remote: Remote) -> None:
        task = asyncio.get_running_loop().create_task(remote.stop())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    def _on_change(self) -> None:
        specs = [spec for remote in self._remotes.values() for spec in remote.specs()]
        if specs != self._published:
            self._published = specs
            self._set_discovered(specs)
        frames = tuple(frame for remote in self._remotes.values() for frame in remote.frames)
        if frames != self._frames:
            self._frames = frames
        offers = {name: remote.offer() for name, remote in self._remotes.items()}
        if offers != self._offers:
            self._offers = offers
            self._notify_changed()
