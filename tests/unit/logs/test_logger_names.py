from __future__ import annotations

import re
from pathlib import Path

import cogwork
from cogwork.logs.logger_names import SERVER_LOGGERS, matching_names

LOGGER = re.compile(r'(?:getLogger\(|LOGGER = )"(rdk[\w.]*)"')


def test_every_logger_of_the_server_is_listed() -> None:
    sources = Path(cogwork.__file__).parent.rglob("*.py")
    assert {name for file in sources for name in LOGGER.findall(file.read_text())} <= {
        *SERVER_LOGGERS
    }


def test_resource_has_full_short_and_dotted_names() -> None:
    assert [*matching_names("rdk.resource_manager.rdk:component:arm/left.bus", "acme")] == [
        "rdk.resource_manager.rdk:component:arm/left.bus",
        "rdk:component:arm/left",
        "left",
        "rdk.components.arm",
        "rdk.components.arm.left",
        "acme",
    ]


def test_logger_of_a_module_has_its_own_name_and_that_of_the_module() -> None:
    assert [*matching_names("rdk.modmanager.acme.lib.bus")] == [
        "rdk.modmanager.acme.lib.bus",
        "lib.bus",
        "acme",
    ]
