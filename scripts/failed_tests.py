"""Tell whether few enough tests of the last run failed to run them again.

`python -m scripts.failed_tests --at-most COUNT` lists them, and exits with 1 if they are more.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    """List the failed tests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at-most", type=int, required=True)
    failed = list(json.loads(LAST_FAILED.read_text()))
    if len(failed) > parser.parse_args().at_most:
        print(f"{len(failed)} tests failed, too many to run them again")
        return 1
    print("These failed beside others and run again alone:", *failed, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
