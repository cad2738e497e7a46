"""Guesses keys over HTTP, from many addresses of this computer, many at once.

Run as `guesser.py PORT ENTITY COUNT ADDRESSES`; it prints how often each status came, as JSON.
"""

import http.client
import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

AT_ONCE = 150
"""More than the answers that a server delays at once, so not every guess waits."""


def guess(port: int, entity: str, number: int, source: str) -> int:
    """Return the status of one wrong login."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=60, source_address=(source, 0)
    )
    credentials = {"type": "api-key", "payload": f"guess {number}"}
    body = json.dumps({"entity": entity, "credentials": credentials})
    try:
        connection.request("POST", "/rpc/v1/authenticate", body)
        return connection.getresponse().status
    finally:
        connection.close()


def main() -> None:
    port, entity, count, addresses = sys.argv[1:]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        statuses = threads.map(
            lambda number: guess(int(port), entity, number, f"127.0.1.{number % int(addresses)}"),
            range(int(count)),
        )
        print(json.dumps(Counter(statuses)))


if __name__ == "__main__":
    main()
