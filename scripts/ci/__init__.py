"""Helpers of `.ci/run` for tests: retries, counts and the final report."""
