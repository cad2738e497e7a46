"""Models of this process: built in, and from packages somebody installed."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogwork.config.fields import Attributes
from cogwork.config.load_context import LoadContext
from cogwork.config.loader import load
from cogwork.config.model_catalog import ModelCatalog
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Dependencies, Offer
from cogwork.graph.spec import Spec
from cogwork.resource.model import Model
from cogwork.resource.registry import Registry, entry_point_models

SOURCE = """
from cogwork.config.fields import Attributes
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Model


class LampAttributes(Attributes):
    watts: float


async def new(name, attributes, dependencies):
    return attributes.watts


def model(name):
    return Model(Api.parse("rdk:component:generic"), ModelName.parse(name), LampAttributes, new)


LAMP = model("acme:lights:lamp")


def several():
    yield model("acme:lights:spot")
    yield model("acme:lights:flood")


def nothing():
    return None


def nonsense():
    return [LAMP, "lamp"]


def stumbles():
    raise RuntimeError("no licence")


NUMBER = 5
"""

ENTRY_POINTS = """
[cogwork.models]
lamp = acme_lights:LAMP
several = acme_lights:several
nothing = acme_lights:nothing
nonsense = acme_lights:nonsense
stumbles = acme_lights:stumbles
number = acme_lights:NUMBER
absent = acme_lights:ABSENT
missing = acme_lights_missing:LAMP
quits = acme_lights_quits:LAMP
broken = acme_lights_broken:LAMP
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "acme_lights.py").write_text(SOURCE)
    (tmp_path / "acme_lights_quits.py").write_text("raise SystemExit('not today')")
    (tmp_path / "acme_lights_broken.py").write_text("def :")
    information = tmp_path / "acme_lights-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-lights\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield
    for name in [name for name in sys.modules if name.startswith("acme_lights")]:
        del sys.modules[name]


@pytest.mark.usefixtures("installed")
def test_the_good_ones_are_usable_and_the_others_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "rdk.resource_manager"):
        models = [model for model in entry_point_models() if model.name.namespace == "acme"]
    assert sorted(model.name.name for model in models) == ["flood", "lamp", "spot"]
    said = {record.getMessage() for record in caplog.records}
    for name, reason in (
        ("nothing", "TypeError"),
        ("nonsense", "'lamp' is not a cogwork.resource.model.Model"),
        ("stumbles", "RuntimeError: no licence"),
        ("number", "TypeError"),
        ("absent", "AttributeError"),
        ("missing", "ModuleNotFoundError: No module named 'acme_lights_missing'"),
        ("quits", "SystemExit: not today"),
        ("broken", "SyntaxError"),
    ):
        (message,) = (
            m for m in said if m.startswith(f"cannot load plug-in {name} of acme-lights: ")
        )
        assert reason in message
        assert message.endswith("; update or uninstall it")
    assert len(said) == 8


@pytest.mark.usefixtures("installed")
def test_a_plugged_in_model_is_checked_and_built(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry([*builtin_models(), *entry_point_models()])
    around = LoadContext(registry, Path("/home"), {})
    lamp = (
        '{"components": [{"name": "l", "api": "rdk:component:generic", "model": "acme:lights:%s",'
    )
    good = load(lamp % "lamp" + '"attributes": {"watts": 40}}]}', around)
    assert good.diagnostics == ()
    (spec,) = good.result.specs
    assert asyncio.run(built(registry, spec)) == 40.0
    bad = load(lamp % "lamp" + '"attributes": {"watts": "bright"}}]}', around)
    assert [fault.diagnostic.code.id for fault in bad.diagnostics] == ["E101"]
    unknown = load(lamp % "lmap" + '"attributes": {}}]}', around)
    assert [fault.diagnostic.hint for fault in unknown.diagnostics] == [
        'did you mean "acme:lights:lamp"?'
    ]


async def built(registry: Registry, spec: Spec) -> object:
    offer = registry.offer(spec)
    assert isinstance(offer, Offer)
    return await offer.builder.build(spec, {})


GENERIC = Api.parse("rdk:component:generic")
NAME = ResourceName(GENERIC, "g")


class Patient:
    def __init__(self) -> None:
        self.attributes: object = None
        self.closed = False

    async def reconfigure(self, attributes: object, dependencies: Dependencies) -> None:
        self.attributes = attributes

    async def close(self) -> None:
        self.closed = True


async def patient(name: ResourceName, attributes: object, dependencies: Dependencies) -> Patient:
    return Patient()


async def bare(name: ResourceName, attributes: object, dependencies: Dependencies) -> object:
    return object()


PATIENT = Model(GENERIC, ModelName.parse("patient"), Attributes, patient, reconfigures=True)
BARE = Model(GENERIC, ModelName.parse("bare"), Attributes, bare)


def test_it_is_a_catalogue() -> None:
    catalogue: ModelCatalog = Registry([PATIENT, BARE])
    shape = catalogue.find(GENERIC, ModelName.parse("patient"))
    assert shape is not None
    assert (shape.attributes, shape.reconfigures) == (Attributes, True)
    assert catalogue.find(GENERIC, ModelName.parse("nobody")) is None
    assert catalogue.find(Api.parse("rdk:service:generic"), ModelName.parse("bare")) is None
    assert len(list(catalogue.schemas())) == 2


def test_of_two_the_first_counts() -> None:
    second = Model(GENERIC, ModelName.parse("patient"), Attributes, bare)
    registry = Registry([PATIENT, second])
    shape = registry.find(GENERIC, ModelName.parse("patient"))
    assert shape is not None
    assert shape.reconfigures


def test_who_is_not_listed_is_not_offered() -> None:
    assert Registry([PATIENT]).offer(Spec(NAME, ModelName.parse("bare"))) is None


def test_the_same_offer_every_time() -> None:
    registry = Registry([PATIENT])
    spec = Spec(NAME, ModelName.parse("patient"))
    assert registry.offer(spec) is registry.offer(spec)


async def test_a_resource_is_built_changed_and_closed() -> None:
    offer = Registry([PATIENT]).offer(Spec(NAME, PATIENT.name))
    assert isinstance(offer, Offer)
    assert offer.in_place
    resource = await offer.builder.build(Spec(NAME, PATIENT.name), {})
    assert isinstance(resource, Patient)
    await offer.builder.reconfigure(resource, Spec(NAME, PATIENT.name, "new"), {})
    assert resource.attributes == "new"
    await offer.builder.close(resource)
    assert resource.closed


async def test_a_resource_without_methods_can_be_closed_but_not_changed() -> None:
    offer = Registry([BARE]).offer(Spec(NAME, BARE.name))
    assert isinstance(offer, Offer)
    assert not offer.in_place
    resource = await offer.builder.build(Spec(NAME, BARE.name), {})
    await offer.builder.close(resource)
    with pytest.raises(TypeError, match="object has no reconfigure method"):
        await offer.builder.reconfigure(resource, Spec(NAME, BARE.name), {})


def test_every_built_in_model_is_of_a_public_api_and_unique() -> None:
    keys = [(model.api, model.name) for model in builtin_models()]
    assert len(set(keys)) == len(keys)
    assert all(model.name.is_builtin for model in builtin_models())
