"""A program that exceeds its limits: `APPETITE` is `memory` or `files`."""

from __future__ import annotations

import os
import time


def main() -> None:
    kept: list[object] = []
    for _ in range(1000):
        if os.environ["APPETITE"] == "memory":
            kept.append(bytearray(100 << 20))
        else:
            kept.append(open(os.devnull))  # noqa: SIM115, PTH123
    time.sleep(600)


if __name__ == "__main__":
    main()
