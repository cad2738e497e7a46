"""The download of releases over HTTP.

Downloads need no login: releases are public, and machines trust their signatures, not the cloud.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.registry.blob_response import respond_with_blob
from cogwork.cloud.updates.releases import find_file
from cogwork.core.errors import CogworkError
from cogwork.wire.transports.asgi import SECURITY_HEADERS


def release_routes(context: CloudContext) -> list[Route]:
    async def download(request: Request) -> Response:
        digest, filename = request.path_params["digest"], request.path_params["filename"]
        try:
            found = await context.records.read(lambda tx: find_file(tx, digest, filename))
        except CogworkError as error:
            return PlainTextResponse(f"{error}\n", 503, headers=SECURITY_HEADERS)
        if found is None:
            text = "there is no such release\n"
            return PlainTextResponse(text, 404, headers=SECURITY_HEADERS)
        headers = {"Content-Type": "application/x-tar"}
        return respond_with_blob(context.blobs, request, found.digest, found.size, headers)

    return [Route("/releases/{digest}/{filename}", download, methods=["GET"])]
