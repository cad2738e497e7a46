from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from pydantic import ValidationError
from tests.support.machine.served import Serve
from viam.services.discovery.client import DiscoveryClient

from cogwork.drivers.discovery.attributes import FakeDiscoveryAttributes
from cogwork.drivers.discovery.fake import FakeDiscovery
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:service:discovery/d")


async def discover(serve: Serve, attributes: dict[str, Any]) -> AsyncIterator[Any]:
    discovery = await FakeDiscovery.new(
        NAME, FakeDiscoveryAttributes.model_validate(attributes), {}
    )
    async with serve(discovery) as channel:
        client = DiscoveryClient("d", channel)
        for each in await client.discover_resources():
            yield MessageToDict(each)
        assert (await client.get_status())["searches"] == 1


async def test_default_resources_are_a_camera_and_a_sensor(serve: Serve) -> None:
    assert [each async for each in discover(serve, {})] == [
        {
            "name": "fake-camera",
            "namespace": "rdk",
            "type": "camera",
            "api": "rdk:component:camera",
            "model": "rdk:builtin:fake",
            "attributes": {},
        },
        {
            "name": "fake-sensor",
            "namespace": "rdk",
            "type": "sensor",
            "api": "rdk:component:sensor",
            "model": "rdk:builtin:fake",
            "attributes": {"readings": {"temperature": 21.5}},
        },
    ]


async def test_configured_resources_are_found(serve: Serve) -> None:
    resources = [
        {
            "name": "m",
            "api": "rdk:component:motor",
            "model": "acme:motors:big",
            "attributes": {"pins": {"a": "11"}, "rpm": 20, "on": True, "list": [1, "b"]},
        }
    ]
    (motor,) = [each async for each in discover(serve, {"resources": resources})]
    assert (motor["name"], motor["api"], motor["model"]) == (
        "m",
        "rdk:component:motor",
        "acme:motors:big",
    )
    assert motor["attributes"] == {"pins": {"a": "11"}, "rpm": 20, "on": True, "list": [1, "b"]}


async def test_empty_list_of_resources_finds_nothing(serve: Serve) -> None:
    assert [each async for each in discover(serve, {"resources": []})] == []


@pytest.mark.parametrize(
    "resource",
    [
        {"name": "a b", "api": "rdk:component:motor", "model": "fake"},
        {"name": "a", "api": "motor", "model": "fake"},
        {"name": "a", "api": "rdk:component:motor", "model": "x:y"},
        {"name": "a", "api": "rdk:component:motor"},
    ],
)
def test_invalid_resources_are_refused(resource: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FakeDiscoveryAttributes.model_validate({"resources": [resource]})
