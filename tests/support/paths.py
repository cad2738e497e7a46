"""Where the repository is, for tests that read its files or run in it."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TESTS = REPOSITORY / "tests"
