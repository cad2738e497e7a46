"""A bounded collection of items by name."""

from __future__ import annotations

from typing import Generic, TypeVar

from cogwork.core.errors import CogworkError, InvalidRequest, NotFound

T = TypeVar("T")

MAX_ITEMS = 1000
MAX_NAME_LENGTH = 200


class AlreadyExists(CogworkError):
    """The name is used by another item."""

    status = "ALREADY_EXISTS"


class StoreFull(CogworkError):
    """The store has no room for another item."""

    status = "RESOURCE_EXHAUSTED"


class NamedStore(Generic[T]):
    def __init__(self, kind: str) -> None:
        """`kind` names an item in errors."""
        self._kind = kind
        self._items: dict[str, T] = {}

    def __len__(self) -> int:
        return len(self._items)

    def all(self) -> list[T]:
        """Return the items in insertion order."""
        return list(self._items.values())

    def get(self, name: str) -> T:
        try:
            return self._items[name]
        except KeyError:
            some = ", ".join(sorted(self._items)[:10])
            hint = f"existing: {some}" if some else "there are none yet"
            raise NotFound(f'there is no {self._kind} "{name}"; {hint}') from None

    def add(self, name: str, item: T) -> T:
        self.check_name_available(name)
        if len(self._items) >= MAX_ITEMS:
            raise StoreFull(f"there are already {MAX_ITEMS} {self._kind}s: delete some first")
        self._items[name] = item
        return item

    def replace(self, name: str, new_name: str, item: T) -> T:
        """Replace an item and keep its place in the order."""
        self.get(name)
        if new_name != name:
            self.check_name_available(new_name)
        self._items = {
            (new_name if key == name else key): (item if key == name else existing)
            for key, existing in self._items.items()
        }
        return item

    def remove(self, name: str) -> None:
        self.get(name)
        del self._items[name]

    def check_name_available(self, name: str) -> None:
        if not 0 < len(name) <= MAX_NAME_LENGTH:
            raise InvalidRequest(
                f"the name of a {self._kind} must have 1 to {MAX_NAME_LENGTH} characters"
            )
        if name in self._items:
            raise AlreadyExists(
                f'{self._kind} "{name}" already exists: update it, or choose another name'
            )
