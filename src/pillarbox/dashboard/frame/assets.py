"""Style sheet and scripts of the screens. Their address holds a hash, so browsers keep them for good."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Final

from pillarbox.dashboard.pages import HEADERS
from pillarbox.kernel.http.request import OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.wire.problems import NotFound

MEDIA: Final = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
NAMES: Final = ("dashboard.css", "dashboard.js", "editor.css", "editor.js")
KEPT: Final = "public, max-age=31536000, immutable"


@cache
def content_of(name: str) -> bytes:
    """Return a file of the screens."""
    return resources.files("pillarbox.dashboard").joinpath("assets", name).read_bytes()


@cache
def address(name: str) -> str:
    """Return the path of a file of the screens, with the hash of its content."""
    stem, _, kind = name.rpartition(".")
    return f"/assets/{stem}.{sha256(content_of(name)).hexdigest()[:12]}.{kind}"


@route(
    "GET",
    "/assets/{name}",
    needs=Access.PUBLIC,
    summary="A style sheet or script of the screens",
    problems=(404,),
)
async def show(request: Request) -> Reply[OctetsAnswer]:
    found = {address(name): name for name in NAMES}.get(f"/assets/{request.param('name')}")
    if found is None:
        raise NotFound("Asset")
    headers = {**HEADERS, "cache-control": KEPT}
    return Reply(content_of(found), headers=headers, media=MEDIA[found.rpartition(".")[2]])
