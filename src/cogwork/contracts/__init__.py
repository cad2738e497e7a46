"""What clients may rely on, API by API: suites that a driver runs by naming itself."""

import pkgutil

import pytest

# So that a contract that is not kept shows what it compared.
pytest.register_assert_rewrite(
    *(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
)
