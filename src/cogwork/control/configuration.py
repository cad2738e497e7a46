"""HTTP endpoints for owners who edit the machine's configuration file.

An error is one sentence of text, and never quotes the configuration.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from cogwork.auth.errors import RoleTooLow
from cogwork.auth.identity import Identity
from cogwork.auth.roles import Role
from cogwork.config.source.config_editor import (
    MAX_EDIT_SIZE,
    CannotWrite,
    ConfigEditor,
    ConfigPreview,
    Edit,
    IsCancelled,
    StaleEdit,
    WouldBeRefused,
)
from cogwork.config.source.history_entry import HistoryEntry, describe_entry
from cogwork.config.text.file import Unreadable, decode_text
from cogwork.control.http_login import IDENTITY_KEY
from cogwork.control.quota import MeteredResponse, Overloaded, Quota
from cogwork.control.sliced_response import SlicedResponse
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.os_error_text import os_reason
from cogwork.core.workers import TooMuchWork, run_in_thread
from cogwork.robot.middleware.authentication import check_role
from cogwork.wire.table.request_limits import RequestTooLarge
from cogwork.wire.transports.http_body import ClientGone, read_body

CHECK_PATH: Final = "/configuration/check"
SAVE_PATH: Final = "/configuration/save"
EDIT_PATHS: Final = frozenset({CHECK_PATH, SAVE_PATH})
"""Paths that accept POST requests."""

_TIMEOUT: Final = 30.0
"""Timeout in seconds for reading, checking or saving a configuration."""
_MAX_ESCAPED_SIZE: Final = 2 * MAX_EDIT_SIZE
"""Maximum bytes of a request that contains the text as a JSON string."""
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FLAT_OBJECT: Final = re.compile(
    rf"\s*+\{{(?:\s*+{_STRING}\s*+:\s*+(?:{_STRING}|\d{{1,20}}|null)\s*+,?+){{0,8}}+\s*+\}}\s*+",
    re.DOTALL,
)
"""The form of an edit: an object of at most 8 strings, integers or nulls. A request of another form
is rejected without parsing it, because that could block the event loop for seconds."""
_TEXT_TYPES: Final = ("text/plain", "application/json")
_NOT_OWN: Final = (
    "the configuration of this machine is not a file of its own; change it where it comes from"
)
_STATUS_BY_ERROR: Final[dict[type[Exception], int]] = {
    RoleTooLow: 403,
    StaleEdit: 409,
    RequestTooLarge: 413,
    InvalidRequest: 400,
    CannotWrite: 500,
    Overloaded: 503,
    TooMuchWork: 503,
}

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]
Meter = Callable[[Response], MeteredResponse]


class _HttpError(CogworkError):
    """A refusal with its HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.http_status = status


def configuration_routes(
    editor: ConfigEditor | None, revision: Callable[[], str], metered: Meter
) -> list[Route]:
    """Return the routes. `editor` is None if the machine's configuration is not a local file.

    `revision` returns the revision of the running configuration. `metered` limits unread responses.
    """
    pages = _ConfigurationPages(editor, revision)

    def route(path: str, endpoint: Endpoint, method: str) -> Route:
        async def respond(request: Request) -> MeteredResponse:
            return metered(await _respond(endpoint, request))

        return Route(path, respond, methods=[method])

    return [
        route("/configuration.json", pages.read, "GET"),
        route(CHECK_PATH, pages.check, "POST"),
        route(SAVE_PATH, pages.save, "POST"),
        route("/configuration/history.json", pages.list_history, "GET"),
        route("/configuration/history/{id}.json", pages.read_entry, "GET"),
        route("/configuration/devices.json", pages.list_devices, "GET"),
    ]


class _ConfigurationPages:
    def __init__(self, editor: ConfigEditor | None, revision: Callable[[], str]) -> None:
        self._editor = editor
        self._revision = revision
        self._edits = Quota("edits of the configuration", total=8, per_address=4)
        self._lock = asyncio.Lock()
        """Held while a text is checked: only one check at a time, because each needs much
        memory."""
        self._device_lock = asyncio.Lock()

    async def read(self, _: Request) -> Response:
        editor, revision = self._editor, self._revision()
        if editor is None:
            return _json(_describe_text("", "", _NOT_OWN, revision))

        def encode() -> Response:
            found = editor.read()
            return _json(_describe_text(found.text, found.checksum, found.obstacle, revision))

        return await run_in_thread("configuration", _TIMEOUT, encode)

    async def check(self, request: Request) -> Response:
        editor = self._require_editor()
        _require_type(request, _TEXT_TYPES)
        with self._edits.hold(_address_of(request)):
            body = await _read_body(request, MAX_EDIT_SIZE)

            def preview(is_cancelled: IsCancelled) -> Response:
                return _json(_describe_preview(editor.preview(_decode(body), is_cancelled)))

            async with self._lock:
                return await _run_cancellable(preview)

    async def save(self, request: Request) -> Response:
        editor = self._require_editor()
        _require_type(request, ("application/json",))
        name = _name_of(request)
        with self._edits.hold(_address_of(request)):
            body = await _read_body(request, _MAX_ESCAPED_SIZE)

            def write(is_cancelled: IsCancelled) -> Response:
                try:
                    saved = editor.save(_parse_edit(body), name, is_cancelled)
                except WouldBeRefused as error:
                    refusal = {"message": str(error), "diagnostics": error.diagnostics}
                    return _json({**refusal, "refused": True}, 400)
                return _json({"checksum": saved})

            async with self._lock:
                return await _run_cancellable(write)

    async def list_history(self, _: Request) -> Response:
        editor = self._require_editor()

        def encode() -> Response:
            return _json([describe_entry(entry) for entry in editor.history.list_details()])

        return await _read_history(encode)

    async def read_entry(self, request: Request) -> Response:
        editor = self._require_editor()
        entry_id = request.path_params["id"]

        def find() -> Response:
            entry = _find_entry(editor, entry_id)
            if entry is None:
                text = "the history has no such entry; list it at /configuration/history.json"
                raise _HttpError(404, text)
            return _json({**describe_entry(entry), "text": entry.text})

        return await _read_history(find)

    async def list_devices(self, request: Request) -> Response:
        with self._edits.hold(_address_of(request)):
            # Imported on demand: drivers of devices take time to load.
            from cogwork.control.devices import find_devices

            async with self._device_lock:
                return _json(await find_devices())

    def _require_editor(self) -> ConfigEditor:
        if self._editor is None:
            raise _HttpError(409, _NOT_OWN)
        return self._editor


async def _respond(endpoint: Endpoint, request: Request) -> Response:
    """Call the endpoint if the caller is an owner, and convert errors to responses."""
    try:
        identity = _identity_of(request)
        if identity is not None:
            check_role(identity, Role.OWNER, request.url.path)
        return await endpoint(request)
    except TimeoutError:
        text = "the machine takes too long; reload the page before you try again"
        return PlainTextResponse(f"{text}\n", 503)
    except MemoryError:
        return PlainTextResponse("not enough memory to check the configuration\n", 503)
    except ClientGone:
        return Response(status_code=400)
    except CogworkError as error:
        return _refuse(error)


def _refuse(error: CogworkError) -> Response:
    if isinstance(error, _HttpError):
        return PlainTextResponse(f"{error}\n", error.http_status)
    status = next((code for kind, code in _STATUS_BY_ERROR.items() if isinstance(error, kind)), 500)
    # Close the connection if the request is too large: the rest of it is not read.
    headers = {"Connection": "close"} if status == 413 else None
    return PlainTextResponse(f"{error}\n", status, headers)


async def _run_cancellable(work: Callable[[IsCancelled], T]) -> T:
    """Run work in a thread. If the request ends early, set the flag that cancels the work."""
    cancelled = threading.Event()
    try:
        return await run_in_thread("configuration", _TIMEOUT, work, cancelled.is_set)
    finally:
        cancelled.set()


async def _read_history(work: Callable[[], Response]) -> Response:
    try:
        return await run_in_thread("configuration", _TIMEOUT, work)
    except TimeoutError:
        raise
    except OSError as error:
        raise _HttpError(500, f"the history cannot be read: {os_reason(error)}") from None


async def _read_body(request: Request, max_size: int) -> bytes:
    """Read the body. Raise RequestTooLarge, before reading if the declared size is too large."""
    declared = request.headers.get("content-length", "")
    if _is_number(declared) and int(declared) > max_size:
        raise RequestTooLarge(f"the request has more than {max_size} bytes")
    return await read_body(request.receive, max_size)


def _decode(body: bytes) -> str | Unreadable:
    try:
        return decode_text(body)
    except Unreadable as error:
        return error


def _parse_edit(body: bytes) -> Edit:
    try:
        fields = json.loads(body) if _FLAT_OBJECT.fullmatch(body.decode()) else {}
    except ValueError:
        fields = {}
    text, checksum, restored = (fields.get(key) for key in ("text", "checksum", "restore"))
    if (
        isinstance(text, str)
        and isinstance(checksum, str)
        and (restored is None or isinstance(restored, int))
    ):
        return Edit(text, checksum, restored)
    raise InvalidRequest('expected {"text": "…", "checksum": "…"} as JSON')


def _find_entry(editor: ConfigEditor, entry_id: str) -> HistoryEntry | None:
    return editor.history.find(int(entry_id)) if _is_number(entry_id) else None


def _is_number(text: str) -> bool:
    # Limit the length: Python takes long to parse very long numbers.
    return text.isascii() and text.isdigit() and len(text) < 20


def _require_type(request: Request, accepted: tuple[str, ...]) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in accepted:
        raise _HttpError(415, f"send the request as {' or '.join(accepted)}")


def _identity_of(request: Request) -> Identity | None:
    """Return the identity of the caller; None if no login is required."""
    identity: Identity | None = request.scope["state"][IDENTITY_KEY]
    return identity


def _name_of(request: Request) -> str:
    identity = _identity_of(request)
    return identity.label if identity is not None else ""


def _address_of(request: Request) -> str:
    return str(request.scope["client"][0])


def _describe_text(text: str, checksum: str, obstacle: str, revision: str) -> dict[str, Any]:
    return {
        "text": text,
        "checksum": checksum,
        "editable": not obstacle,
        "reason": obstacle,
        "revision": revision,
    }


def _describe_preview(preview: ConfigPreview) -> dict[str, Any]:
    return {
        "refused": preview.is_refused,
        "diagnostics": preview.diagnostics,
        "plan": [step._asdict() for step in preview.plan],
        "settings": [asdict(change) for change in preview.settings],
    }


def _json(value: Any, status: int = 200) -> Response:
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return SlicedResponse(body.encode(errors="backslashreplace"), status, None, "application/json")
