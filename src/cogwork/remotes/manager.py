"""The remote manager: provides the resources of all configured remotes to the graph."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.config.schema.machine import RemoteConfig
from cogwork.core.clock import Clock
from cogwork.core.supervised_set import SupervisedSet
from cogwork.graph.name import Api
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.remotes.names import RemoteName
from cogwork.robot.placed_frame import PlacedFrame

if TYPE_CHECKING:
    from cogwork.remotes.remote import Remote
    from cogwork.remotes.webrtc_dialing import DialingProcess

_log = logging.getLogger("rdk.remotes")

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
        """Create a manager without remotes.

        `set_discovered` receives the nodes of all remotes whenever they change. `find_webrtc`
        returns the WebRTC process; None if WebRTC is off or not installed. `allow_plaintext`: allow
        sending logins unencrypted. `mdns`: look for machines on the local network.
        """
        self._clock = clock
        self._notify_changed = notify_changed
        self._set_discovered = set_discovered
        self._find_webrtc = find_webrtc
        self._allow_plaintext = allow_plaintext
        self._mdns = mdns
        self._remotes: SupervisedSet[RemoteConfig, Remote] = SupervisedSet(
            "remote", self._make_remote, lambda config: config, _log, one_at_a_time=False
        )
        self._published: list[Spec] = []
        self._offers: dict[str, Offer | Unavailable] = {}
        self._frames: tuple[PlacedFrame, ...] = ()

    def apply(self, configs: Sequence[RemoteConfig]) -> None:
        """Connect to the configured remotes. Unchanged remotes stay connected."""
        self._remotes.apply({config.name: config for config in configs})
        self._on_change()

    def offer(self, spec: Spec) -> Offer | Unavailable | None:
        where = spec.settings
        if not isinstance(where, RemoteName):
            return None
        remote = self._remotes.by_name.get(where.remote)
        return remote.offer() if remote is not None else Unavailable("its remote was removed")

    def services(self) -> dict[Api, str]:
        found: dict[Api, str] = {}
        for remote in self._remotes:
            found.update(remote.services)
        return found

    def descriptor_pools(self) -> dict[str, DescriptorPool]:
        found: dict[str, DescriptorPool] = {}
        for remote in self._remotes:
            found.update(remote.descriptors)
        return found

    def frames(self) -> Sequence[PlacedFrame]:
        return self._frames

    async def aclose(self) -> None:
        self._remotes.stop_all()
        await asyncio.gather(*self._remotes.stopping, return_exceptions=True)

    def _make_remote(self, config: RemoteConfig) -> Remote:
        # Import the SDK only now: machines without remotes start faster.
        importlib.import_module("cogwork.resource.sdk.clean_import")  # before other SDK imports
        from cogwork.remotes.machine_dialing import MachineDialer
        from cogwork.remotes.remote import Remote, RemoteContext

        dialer = MachineDialer(
            self._clock,
            self._find_webrtc,
            allow_plaintext=self._allow_plaintext,
            mdns=self._mdns,
        )
        context = RemoteContext(self._clock, self._on_change, dialer.connect)
        return Remote(config, context)

    def _on_change(self) -> None:
        specs = [spec for remote in self._remotes for spec in remote.specs()]
        if specs != self._published:
            self._published = specs
            self._set_discovered(specs)
        frames = tuple(frame for remote in self._remotes for frame in remote.frames)
        if frames != self._frames:
            self._frames = frames
        offers = {name: remote.offer() for name, remote in self._remotes.by_name.items()}
        if offers != self._offers:
            self._offers = offers
            self._notify_changed()
