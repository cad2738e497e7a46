"""Contract tests: one suite per API, which drivers subclass to check what clients rely on."""

import pkgutil

import pytest

# Assertion rewriting makes failed contracts show the compared values.
pytest.register_assert_rewrite(
    *(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
)
