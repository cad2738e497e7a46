"""The registry of built-in models and of models from installed packages."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.config.schema.fields import Attributes
from cogwork.config.schema.model_catalog import ModelCatalog
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Dependencies, Offer
from cogwork.graph.spec import Spec
from cogwork.resource.model import Model
from cogwork.resource.registry import Registry, entry_point_models

SOURCE = """
from cogwork.config.schema.fields import Attributes
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
def install_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
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


@pytest.mark.usefixtures("install_package")
def test_valid_entry_points_load_and_invalid_ones_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR, "rdk.resource_manager"):
        models = [model for model in entry_point_models() if model.name.namespace == "acme"]
    assert sorted(model.name.name for model in models) == ["flood", "lamp", "spot"]
    messages = {record.getMessage() for record in caplog.records}
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
            m for m in messages if m.startswith(f"cannot load plug-in {name} of acme-lights: ")
        )
        assert reason in message
        assert message.endswith("; update or uninstall its package")
    assert len(messages) == 8


@pytest.mark.usefixtures("install_package")
def test_plugin_model_is_checked_and_built(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry([*builtin_models(), *entry_point_models()])
    context = LoadContext(registry, Path("/home"), {})
    lamp = (
        '{"components": [{"name": "l", "api": "rdk:component:generic", "model": "acme:lights:%s",'
    )
    good = load(lamp % "lamp" + '"attributes": {"watts": 40}}]}', context)
    assert good.diagnostics == ()
    (spec,) = good.result.specs
    assert asyncio.run(build(registry, spec)) == 40.0
    bad = load(lamp % "lamp" + '"attributes": {"watts": "bright"}}]}', context)
    assert [fault.diagnostic.code.id for fault in bad.diagnostics] == ["E101"]
    unknown = load(lamp % "lmap" + '"attributes": {}}]}', context)
    assert [fault.diagnostic.hint for fault in unknown.diagnostics] == [
        'did you mean "acme:lights:lamp"?'
    ]


async def build(registry: Registry, spec: Spec) -> object:
    offer = registry.offer(spec)
    assert isinstance(offer, Offer)
    return await offer.builder.build(spec, {})


GENERIC = Api.parse("rdk:component:generic")
NAME = ResourceName(GENERIC, "g")


class ReconfigurableResource:
    def __init__(self) -> None:
        self.attributes: object = None
        self.closed = False

    async def reconfigure(self, attributes: object, dependencies: Dependencies) -> None:
        self.attributes = attributes

    async def close(self) -> None:
        self.closed = True


async def make_reconfigurable(
    name: ResourceName, attributes: object, dependencies: Dependencies
) -> ReconfigurableResource:
    return ReconfigurableResource()


async def make_bare(name: ResourceName, attributes: object, dependencies: Dependencies) -> object:
    return object()


RECONFIGURABLE_MODEL = Model(
    GENERIC, ModelName.parse("patient"), Attributes, make_reconfigurable, reconfigures=True
)
BARE_MODEL = Model(GENERIC, ModelName.parse("bare"), Attributes, make_bare)


def test_registry_is_a_model_catalog() -> None:
    catalog: ModelCatalog = Registry([RECONFIGURABLE_MODEL, BARE_MODEL])
    shape = catalog.find(GENERIC, ModelName.parse("patient"))
    assert shape is not None
    assert (shape.attributes, shape.reconfigures) == (Attributes, True)
    assert catalog.find(GENERIC, ModelName.parse("nobody")) is None
    assert catalog.find(Api.parse("rdk:service:generic"), ModelName.parse("bare")) is None
    assert len(list(catalog.schemas())) == 2


def test_first_of_two_equal_models_counts() -> None:
    second = Model(GENERIC, ModelName.parse("patient"), Attributes, make_bare)
    registry = Registry([RECONFIGURABLE_MODEL, second])
    shape = registry.find(GENERIC, ModelName.parse("patient"))
    assert shape is not None
    assert shape.reconfigures


def test_unknown_model_is_not_offered() -> None:
    assert Registry([RECONFIGURABLE_MODEL]).offer(Spec(NAME, ModelName.parse("bare"))) is None


def test_offer_is_cached() -> None:
    registry = Registry([RECONFIGURABLE_MODEL])
    spec = Spec(NAME, ModelName.parse("patient"))
    assert registry.offer(spec) is registry.offer(spec)


async def test_resource_is_built_reconfigured_and_closed() -> None:
    offer = Registry([RECONFIGURABLE_MODEL]).offer(Spec(NAME, RECONFIGURABLE_MODEL.name))
    assert isinstance(offer, Offer)
    assert offer.in_place
    resource = await offer.builder.build(Spec(NAME, RECONFIGURABLE_MODEL.name), {})
    assert isinstance(resource, ReconfigurableResource)
    await offer.builder.reconfigure(resource, Spec(NAME, RECONFIGURABLE_MODEL.name, "new"), {})
    assert resource.attributes == "new"
    await offer.builder.close(resource)
    assert resource.closed


async def test_resource_without_methods_can_only_be_closed() -> None:
    offer = Registry([BARE_MODEL]).offer(Spec(NAME, BARE_MODEL.name))
    assert isinstance(offer, Offer)
    assert not offer.in_place
    resource = await offer.builder.build(Spec(NAME, BARE_MODEL.name), {})
    await offer.builder.close(resource)
    with pytest.raises(TypeError, match="object has no reconfigure method"):
        await offer.builder.reconfigure(resource, Spec(NAME, BARE_MODEL.name), {})


def test_builtin_models_are_unique() -> None:
    keys = [(model.api, model.name) for model in builtin_models()]
    assert len(set(keys)) == len(keys)
    assert all(model.name.is_builtin for model in builtin_models())
