"""The addresses that a server listens on."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from cogwork.net.address import Address


class ListenAddresses(NamedTuple):
    public: Address
    grpc: Address | None
    warnings: tuple[str, ...]
    front: Literal["process", "in_process"] = "process"
    proxies: tuple[str, ...] = ()
    """Networks of trusted proxies, which may forward the address of their clients."""


def format_serving_line(
    addresses: list[tuple[str, int]], requested: Address, *, is_encrypted: bool = False
) -> str:
    """Return the line that supervisors expect on standard output when the server is listening."""
    port = addresses[0][1]
    url = Address(requested.host or "localhost", port)
    alternative = Address(addresses[0][0], port)
    scheme = "https" if is_encrypted else "http"
    urls = {"url": f"{scheme}://{url}", "alt_url": f"{scheme}://{alternative}"}
    return f"serving\t{json.dumps(urls, separators=(',', ':'))}"
