"""Every model that comes with Cogwork is what the table says it is."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from viam.resource.base import ResourceBase

from cogwork.drivers.table import builtin_models
from cogwork.graph.name import ResourceName
from cogwork.resource.model import Model

MODELS = builtin_models()


def test_it_is_sorted() -> None:
    keys = [(str(model.api), model.name.short) for model in MODELS]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.api} {model.name.short}")
async def test_it_can_be_built_without_any_attribute(model: Model) -> None:
    resource = await model.construct(ResourceName(model.api, "it"), model.attributes(), {})
    assert isinstance(resource, ResourceBase)
    assert str(resource.API) == str(model.api)
    assert resource.logger.name == f"rdk.resource_manager.{model.api}/it"
    assert hasattr(resource, "reconfigure") == model.reconfigures
    closable: Any = resource
    await closable.close()


def test_reading_it_takes_no_driver() -> None:
    code = "import sys, cogwork.drivers.table; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    roots = {name.partition(".")[0] for name in done.stdout.split()}
    assert not roots & {"viam", "grpc", "grpclib", "google", "psutil"}
