"""Guesses keys over HTTP, from many addresses of this computer, one guess after the other.

Run as `guesser.py PORT ENTITY COUNT ADDRESSES`; it prints how often each status came, as JSON.
"""

import http.client
import json
import sys
from collections import Counter


def main() -> None:
    port, entity, count, addresses = sys.argv[1:]
    statuses = Counter[int]()
    for number in range(int(count)):
        source = f"127.0.1.{number % int(addresses)}"
        connection = http.client.HTTPConnection(
            "127.0.0.1", int(port), timeout=60, source_address=(source, 0)
        )
        credentials = {"type": "api-key", "payload": f"guess {number}"}
        body = json.dumps({"entity": entity, "credentials": credentials})
        connection.request("POST", "/rpc/v1/authenticate", body)
        statuses[connection.getresponse().status] += 1
        connection.close()
    print(json.dumps(statuses))


if __name__ == "__main__":
    main()
