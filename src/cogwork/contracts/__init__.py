"""Contract tests: one suite for each API, which checks what clients rely on. Drivers subclass
it."""

import pkgutil

import pytest

# Let pytest rewrite the assertions of the suites, so that failures show the compared values.
pytest.register_assert_rewrite(
    *(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
)
