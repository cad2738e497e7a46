"""The effective level for every combination of rules and kinds of loggers, also at runtime."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from cogwork.logs.levels import Level
from cogwork.logs.loggers import LoggerLevels
from cogwork.logs.pattern import Pattern
from cogwork.logs.rules import LevelRules

BUILT_IN = "rdk:component:sensor/probe"
MODULAR = "acme:component:arm/left"
MODULE = "acme-arms"
KINDS = {
    "built in": f"rdk.resource_manager.{BUILT_IN}",
    "modular": f"rdk.resource_manager.{MODULAR}",
    "module": f"rdk.modmanager.{MODULE}",
    "output of a module": f"rdk.modmanager.{MODULE}.StdErr",
    "internal": "rdk.networking",
    "root": "rdk",
    "foreign": "somebody.elses",
}
PATTERNS: dict[str, list[tuple[str, Level]]] = {
    "none": [],
    "all": [("*", Level.ERROR)],
    "the last counts": [("*", Level.ERROR), ("*", Level.WARN)],
    "one kind": [("rdk.resource_manager.*", Level.WARN)],
    "the other way round": [("rdk.resource_manager.*", Level.WARN), ("*", Level.ERROR)],
    "a module by its name": [("*", Level.ERROR), (MODULE, Level.WARN)],
    "a regular expression": [(r"rdk\.(networking|modmanager\..+)", Level.DEBUG)],
}
MATCHES = {
    # Determined by hand: the last matching entry of PATTERNS by kind of logger.
    "none": {},
    "all": dict.fromkeys(KINDS, Level.ERROR),
    "the last counts": dict.fromkeys(KINDS, Level.WARN),
    "one kind": {"built in": Level.WARN, "modular": Level.WARN},
    "the other way round": dict.fromkeys(KINDS, Level.ERROR),
    "a module by its name": {
        **dict.fromkeys(KINDS, Level.ERROR),
        "modular": Level.WARN,
        "module": Level.WARN,
        "output of a module": Level.WARN,
    },
    "a regular expression": {
        "internal": Level.DEBUG,
        "module": Level.DEBUG,
        "output of a module": Level.DEBUG,
    },
}
MODULE_KINDS = ("modular", "module", "output of a module")
RESOURCE_KINDS = ("built in", "modular")
CASES = list(
    itertools.product(
        (False, True), (None, Level.ERROR, Level.DEBUG), (None, Level.WARN), PATTERNS, KINDS
    )
)


def build_rules(
    debug: bool, log_level: Level | None, log_configuration: Level | None, patterns: str
) -> LevelRules:
    levels = (
        {} if log_configuration is None else dict.fromkeys((BUILT_IN, MODULAR), log_configuration)
    )
    return LevelRules(
        patterns=tuple((Pattern.parse(text), level) for text, level in PATTERNS[patterns]),
        resources=levels,
        modules={MODULE: log_level},
        module_by_resource={MODULAR: MODULE},
        debug=debug,
    )


def expected_level(
    debug: bool,
    log_level: Level | None,
    log_configuration: Level | None,
    patterns: str,
    kind: str,
) -> Level:
    in_order = [
        Level.DEBUG if debug else None,
        log_level if kind in MODULE_KINDS else None,
        log_configuration if kind in RESOURCE_KINDS else None,
        MATCHES[patterns].get(kind),
        Level.INFO,
    ]
    return next(level for level in in_order if level is not None)


@pytest.fixture
def loggers() -> Iterator[LoggerLevels]:
    root = logging.getLogger()
    before = root.level
    levels = {
        name: logger.level
        for name, logger in logging.Logger.manager.loggerDict.items()
        if isinstance(logger, logging.Logger)
    }
    loggers = LoggerLevels()
    loggers.install()
    yield loggers
    loggers.uninstall()
    root.setLevel(before)
    for name, logger in logging.Logger.manager.loggerDict.items():
        if isinstance(logger, logging.Logger):
            logger.setLevel(levels.get(name, logging.NOTSET))


def test_level_of_every_combination() -> None:
    for debug, log_level, log_configuration, patterns, kind in CASES:
        rules = build_rules(debug, log_level, log_configuration, patterns)
        wanted = expected_level(debug, log_level, log_configuration, patterns, kind)
        assert rules.level_of(KINDS[kind]) is wanted, (rules, kind)


def test_loggers_have_the_level_of_every_combination_after_apply(loggers: LoggerLevels) -> None:
    """Check existing loggers and loggers that are created later."""
    for number, (debug, log_level, log_configuration, patterns, kind) in enumerate(CASES):
        logger = logging.getLogger(KINDS[kind])
        loggers.apply(build_rules(debug, log_level, log_configuration, patterns))
        wanted = expected_level(debug, log_level, log_configuration, patterns, kind)
        assert logger.getEffectiveLevel() == wanted
        assert logger.isEnabledFor(wanted)
        assert not logger.isEnabledFor(wanted - 1)
        if kind == "foreign":
            late = logging.getLogger(f"late.{number}")
            assert late.getEffectiveLevel() == wanted


def test_resource_level_applies_to_child_loggers() -> None:
    rules = LevelRules(resources={BUILT_IN: Level.ERROR})
    assert rules.level_of(f"rdk.resource_manager.{BUILT_IN}.bus") is Level.ERROR
    assert rules.level_of(f"rdk.resource_manager.{BUILT_IN}-2") is Level.INFO


def test_module_level_overrides_resource_level() -> None:
    rules = build_rules(False, Level.ERROR, Level.WARN, "none")
    assert rules.overrides_resource_level(MODULAR)
    assert not rules.overrides_resource_level(BUILT_IN)
    assert not replace(rules, modules={MODULE: None}).overrides_resource_level(MODULAR)


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        (f"rdk.resource_manager.{BUILT_IN}", {"built in"}),
        (BUILT_IN, {"built in"}),
        ("rdk:component:*", {"built in"}),
        ("probe", {"built in"}),
        ("prob.", {"built in"}),
        ("rdk.components.*", {"built in"}),
        ("rdk.components.sensor", {"built in"}),
        ("rdk.components.sensor.probe", {"built in"}),
        ("rdk.components.arm", set()),
        ("rdk.services.*", set()),
        ("acme.components.arm", {"modular"}),
        ("left", {"modular"}),
        (MODULE, {"modular", "module", "output of a module"}),
        ("acme-*", {"modular", "module", "output of a module"}),
        ("(acme|other)-arms", {"modular", "module", "output of a module"}),
        ("StdErr", {"output of a module"}),
        ("prob", set()),
        ("arms", set()),
    ],
)
def test_pattern_matches_the_names_of_a_logger(pattern: str, matched: set[str]) -> None:
    rules = LevelRules(
        patterns=((Pattern.parse(pattern), Level.ERROR),), module_by_resource={MODULAR: MODULE}
    )
    found = {kind for kind, logger in KINDS.items() if rules.level_of(logger) is Level.ERROR}
    assert found == matched


def test_resource_pattern_applies_to_child_loggers() -> None:
    rules = LevelRules(patterns=((Pattern.parse("probe"), Level.ERROR),))
    assert rules.level_of(f"rdk.resource_manager.{BUILT_IN}.bus") is Level.ERROR


def test_module_level_applies_before_the_module_provides_the_resource() -> None:
    rules = LevelRules(modules={MODULE: Level.ERROR})
    assert rules.level_of(KINDS["modular"]) is Level.INFO
    assert rules.level_of(KINDS["modular"], MODULE) is Level.ERROR


@pytest.mark.parametrize(
    ("rules", "level"),
    [
        (LevelRules(), Level.INFO),
        (LevelRules(modules={MODULE: Level.ERROR}), Level.ERROR),
        (LevelRules(modules={MODULE: Level.ERROR}, debug=True), Level.DEBUG),
        (LevelRules(patterns=((Pattern.parse("acme-*"), Level.WARN),)), Level.WARN),
        (
            LevelRules(patterns=((Pattern.parse(f"rdk.modmanager.{MODULE}.driver"), Level.DEBUG),)),
            Level.DEBUG,
        ),
    ],
)
def test_module_is_launched_with_the_lowest_level_that_it_needs(
    rules: LevelRules, level: Level
) -> None:
    assert rules.launch_level(MODULE) is level
