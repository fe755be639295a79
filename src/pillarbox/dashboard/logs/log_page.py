"""One request of the log with its answer, and the code that sends it again."""

from __future__ import annotations

from typing import Any, Final

from pillarbox.dashboard import pages
from pillarbox.dashboard.frame.code_samples import ApiExample, samples_of
from pillarbox.dashboard.frame.json_text import indented
from pillarbox.dashboard.frame.screen_table import ScreenTable
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.logs.log_list import HERE, status_tone
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.logs.masking import MASK

LONGEST_BODY: Final = 60_000
"""Octets of the page that the body of a request takes at most, and that of its answer."""

LISTED: Final = (
    "/emails/receiving",
    "/emails",
    "/domains",
    "/webhooks",
    "/contacts",
    "/templates",
    "/broadcasts",
)
"""Paths whose answers hold the id of something that has a screen."""


@screen(f"{HERE}/{{log_id}}", title="log.title", query={"done": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show a request with its answer."""
    log = await visit.get(f"/logs/{visit.request.param('log_id')}")
    body, answer = log["request_body"], log["response_body"]
    request_text, request_is_cut = pages.screen_text(_text(body), LONGEST_BODY)
    answer_text, answer_is_cut = pages.screen_text(_text(answer), LONGEST_BODY)
    example = ApiExample(log["method"], log["endpoint"], {}, body)
    [again] = samples_of([example], visit.request.use(ScreenTable).public_url)
    return await visit.draw(
        "logs/one.html",
        log=log,
        tone=status_tone(log["response_status"]),
        request_text=request_text,
        answer_text=answer_text,
        is_cut=request_is_cut or answer_is_cut,
        again=again,
        is_masked=MASK in (request_text or ""),
        thing=_thing(visit, log["endpoint"], answer),
        message=answer.get("message") if isinstance(answer, dict) and log["response_status"] >= 400 else None,
    )


def _text(body: Any) -> str | None:
    return None if body is None else indented(body)


def _thing(visit: Visit, endpoint: str, answer: Any) -> str | None:
    """Return the screen of what the request made or changed."""
    thing_id = answer.get("id") if isinstance(answer, dict) else None
    base = next((path for path in LISTED if endpoint == path or endpoint.startswith(f"{path}/")), None)
    if base is None or not isinstance(thing_id, str) or not well_formed(thing_id):
        return None
    path = f"/dashboard{base}/{thing_id}"
    return path if visit.request.use(ScreenTable).leads_to(path) else None
