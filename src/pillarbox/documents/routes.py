"""The page that serves pictures of mail. It is no part of the API: mail programs ask for it."""

from __future__ import annotations

from typing import Final

from pillarbox.documents.images import key_of
from pillarbox.kernel.http.request import OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.storage.blobs import BlobMissing, BlobStore
from pillarbox.kernel.wire.problems import NotFound

HEADERS: Final = {
    "cache-control": "public, max-age=31536000, immutable",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "cross-origin",
    "x-robots-tag": "noindex",
}


@route("GET", "/i/{image}", needs=Access.PUBLIC, summary="A picture of a mail", problems=(404,))
async def image(request: Request) -> Reply[OctetsAnswer]:
    found = key_of(request.param("image"))
    if found is None:
        raise NotFound("Picture")
    blob, media = found
    try:
        data = await request.use(BlobStore).get(blob)
    except BlobMissing:
        raise NotFound("Picture") from None
    return Reply(data, 200, dict(HEADERS), media)
