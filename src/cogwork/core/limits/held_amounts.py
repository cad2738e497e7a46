"""The amounts of a limited resource that clients hold, per client and in total."""

from __future__ import annotations


class HeldAmounts:
    """Counts amounts without limiting them: its callers decide which amounts are too large."""

    __slots__ = ("by_client", "total")

    def __init__(self) -> None:
        self.by_client: dict[str, int] = {}
        """The amount that each client holds, without clients that hold nothing."""
        self.total = 0

    def of(self, client: str) -> int:
        return self.by_client.get(client, 0)

    def hold(self, client: str, amount: int) -> None:
        """Count an amount, which the caller must release."""
        self._change(client, amount)

    def release(self, client: str, amount: int) -> None:
        self._change(client, -amount)

    def find_heaviest(self) -> str:
        """Return the client that holds most. At least one client must hold an amount."""
        return max(self.by_client, key=self.by_client.__getitem__)

    def _change(self, client: str, difference: int) -> None:
        self.total += difference
        amount = self.of(client) + difference
        if amount:
            self.by_client[client] = amount
        else:
            self.by_client.pop(client, None)
