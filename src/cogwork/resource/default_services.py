"""The specs of the default services, made when the services are first needed."""

from __future__ import annotations

from functools import partial

from cogwork.config.schema.default_services import DEFAULT_MODEL, DEFAULT_SERVICES
from cogwork.config.schema.model_catalog import ModelCatalog
from cogwork.graph.desired_specs import DefaultSpecs
from cogwork.graph.name import ResourceName
from cogwork.graph.spec import Spec


def default_specs(catalog: ModelCatalog) -> DefaultSpecs:
    return {name: partial(_make_spec, name, catalog) for name in DEFAULT_SERVICES}


def _make_spec(name: ResourceName, catalog: ModelCatalog) -> Spec:
    schema = catalog.find(name.api, DEFAULT_MODEL)
    assert schema is not None  # the model is built in
    return Spec(name, DEFAULT_MODEL, schema.attributes(), is_default=True)
