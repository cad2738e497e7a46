"""In which way a remote is connected to: directly, by a name on the network, or by its cloud."""

from __future__ import annotations

from typing import Any, cast

import pytest

from cogwork.config.schema.machine import RemoteConfig
from cogwork.core.clock import ManualClock
from cogwork.discovery.sightings import FoundMachine
from cogwork.remotes.dialing import DialTarget
from cogwork.remotes.errors import NotReached, RemoteUnavailable
from cogwork.remotes.machine_dialing import MachineDialer
from cogwork.remotes.webrtc_dialing import DialingProcess

_MODULE = "cogwork.remotes.machine_dialing"
PROCESS = cast("DialingProcess", object())


class Connection:
    def __init__(self, fault: Exception | None) -> None:
        self._fault = fault
        self.can_call = False
        self.is_open = False
        self.is_closed = False

    async def open_calls(self) -> None:
        if self._fault is not None:
            raise self._fault
        self.can_call = True

    async def aclose(self) -> None:
        self.is_closed = True


class Network:
    """What can be reached, and what was tried."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.dialed: list[DialTarget] = []
        self.faults: dict[str, Exception] = {}
        """By address."""
        self.calls_fault: Exception | None = None
        self.machines: dict[str, FoundMachine] = {}
        self.connections: list[Connection] = []
        self.called: list[str] = []
        """Over WebRTC."""
        self.is_open = False
        """Whether the machines require no login."""
        self.call_fault: Exception | None = None
        patch.setattr(f"{_MODULE}.dial", self._dial)
        patch.setattr(f"{_MODULE}.find_machine", self._find)
        patch.setattr(f"{_MODULE}.call_machine", self._call)

    async def _dial(self, to: DialTarget, _: object) -> Connection:
        self.dialed.append(to)
        if to.address in self.faults:
            raise self.faults[to.address]
        self.connections.append(Connection(self.calls_fault))
        self.connections[-1].is_open = self.is_open
        return self.connections[-1]

    async def _find(self, name: str, seconds: float) -> FoundMachine | None:
        assert seconds <= 1
        return self.machines.get(name)

    async def _call(self, host: str, signaling: Connection, process: DialingProcess) -> str:
        assert not signaling.is_closed
        assert process is PROCESS
        self.called.append(host)
        if self.call_fault is not None:
            raise self.call_fault
        return "webrtc"

    def make_dialer(self, *, mdns: bool = True, has_webrtc: bool = True) -> MachineDialer:
        return MachineDialer(
            *(ManualClock(), lambda: PROCESS if has_webrtc else None),
            allow_plaintext=False,
            mdns=mdns,
        )

    async def connect(self, *, mdns: bool = True, has_webrtc: bool = True, **given: Any) -> Any:
        dialer = self.make_dialer(mdns=mdns, has_webrtc=has_webrtc)
        return await dialer.connect(RemoteConfig.model_validate({"name": "line", **given}))

    def lose(self, address: str) -> None:
        """Let an address have no machine."""
        self.faults[address] = NotReached("it did not answer")


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    return Network(monkeypatch)


async def test_machine_has_a_port_if_none_is_given(network: Network) -> None:
    connection = await network.connect(address="line")
    assert network.dialed == [DialTarget("line:8080", None, False, False)]
    assert connection.can_call


async def test_connection_without_a_channel_for_calls_is_closed(network: Network) -> None:
    network.calls_fault = RemoteUnavailable("it is away")
    with pytest.raises(RemoteUnavailable, match="it is away"):
        await network.connect(address="line")
    assert network.connections[0].is_closed


@pytest.mark.parametrize(
    ("address", "machine", "expected"),
    [
        # The name of a computer, which may run several machines, keeps its port.
        (
            "box.local:9000",
            FoundMachine("line", "10.0.0.7", 8080, "box.local", ()),
            "10.0.0.7:9000",
        ),
        # The name of a machine says which one.
        ("line", FoundMachine("line", "10.0.0.7", 8123, "box.local", ()), "10.0.0.7:8123"),
        ("line", FoundMachine("line", "fe80::7", 8123, "box.local", ()), "[fe80::7]:8123"),
        ("https://line", FoundMachine("line", "10.0.0.7", 1, "box", ()), "https://10.0.0.7:1"),
    ],
)
async def test_name_is_looked_for_on_the_local_network(
    network: Network, address: str, machine: FoundMachine, expected: str
) -> None:
    name = address.removeprefix("https://").partition(":")[0]
    network.machines[name] = machine
    for each in (address, f"{address}:8080"):
        network.lose(each)
    await network.connect(address=address)
    # Its certificate is for the name.
    assert (network.dialed[1].address, network.dialed[1].certificate_name) == (expected, name)


async def test_machine_without_login_is_reported_once(
    network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    dialer = network.make_dialer()
    config = RemoteConfig.model_validate({"name": "line", "address": "line"})
    for is_open, reports in ((True, 1), (True, 1), (False, 1), (True, 2)):
        network.is_open = is_open
        await dialer.connect(config)
        assert caplog.text.count('remote "line" requires no login') == reports


@pytest.mark.parametrize("address", ["10.0.0.7:8080", "[fe80::7]:8080"])
async def test_number_is_not_looked_for(network: Network, address: str) -> None:
    network.machines["10.0.0.7"] = FoundMachine("x", "10.0.0.8", 1, "x", ())
    network.lose(address)
    with pytest.raises(NotReached):
        await network.connect(address=address)
    assert len(network.dialed) == 1


async def test_name_that_no_one_knows(network: Network) -> None:
    network.lose("line:8080")
    with pytest.raises(NotReached):
        await network.connect(address="line")
    network.machines["line"] = FoundMachine("line", "10.0.0.7", 1, "x", ())
    with pytest.raises(NotReached):
        await network.connect(address="line", mdns=False)
    assert {each.address for each in network.dialed} == {"line:8080"}


async def test_machine_that_refuses_is_not_looked_for_elsewhere(network: Network) -> None:
    network.machines["line"] = FoundMachine("line", "10.0.0.7", 1, "x", ())
    network.faults["line:8080"] = RemoteUnavailable("it refused the login")
    with pytest.raises(RemoteUnavailable, match="refused the login"):
        await network.connect(address="line")
    assert len(network.dialed) == 1


MANAGED: dict[str, Any] = {"address": "line.hall.fleet.test", "managed_by": "fleet.test"}


async def test_managed_machine_is_called_through_its_cloud(network: Network) -> None:
    assert await network.connect(**MANAGED, secret="s") == "webrtc"
    (cloud,) = network.dialed
    assert cloud.address == "fleet.test:443"
    assert cloud.login is not None
    assert cloud.login.entity == "line.hall.fleet.test"
    assert network.called == ["line.hall.fleet.test"]
    assert network.connections[0].is_closed


async def test_call_that_fails_closes_the_signaling(network: Network) -> None:
    network.call_fault = RemoteUnavailable("it did not answer the call")
    with pytest.raises(RemoteUnavailable, match="did not answer the call"):
        await network.connect(**MANAGED)
    assert network.connections[0].is_closed


async def test_cloud_that_is_away_is_named(network: Network) -> None:
    network.faults["fleet.test:443"] = RemoteUnavailable("it cannot be reached")
    with pytest.raises(RemoteUnavailable, match=r"^the cloud fleet\.test: it cannot be reached$"):
        await network.connect(**MANAGED)


async def test_managed_machine_needs_webrtc(network: Network) -> None:
    with pytest.raises(RemoteUnavailable, match=r"pip install 'cogwork\[webrtc\]'"):
        await network.connect(**MANAGED, has_webrtc=False)
    assert network.dialed == []
