"""From a request with its answer to a row of the log.

The html and text of emails that the request made are stored with them already, and are most of such a
request. In the row a number stands for each: the index of the email in the answer. It is found by
identity, not by equality: the very string that was parsed is the one that was stored.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pillarbox.kernel.observability.request_log import UNREADABLE, RequestRecord, ResponseRecord
from pillarbox.kernel.wire import large_json
from pillarbox.logs.masking import masked_request, masked_response

MOST: Final = 256 * 1024
"""Octets of a body that are kept."""
SURELY_LESS: Final = 200 * 1024
"""A request of so many octets is below `MOST` when it is written anew, unless it is made of numbers."""
LONGEST_ENDPOINT: Final = 2048
LONGEST_AGENT: Final = 512
REFUSED: Final = 400
SHORT: Final = 64
"""Characters that are not worth a reference."""
BODIES: Final = ("html", "text")

Row = dict[str, Any]

_encode = msgspec.json.Encoder().encode


def row_of(answered: ResponseRecord) -> Row:
    """Return the row, from column to value."""
    asked = answered.asked
    request_body, refers = _request_body(answered)
    agent = asked.user_agent
    return {
        "team_id": asked.team_id,
        "id": asked.id,
        "created_at": asked.at,
        "endpoint": asked.endpoint[:LONGEST_ENDPOINT].replace("\0", "\ufffd"),
        "method": asked.method,
        "response_status": answered.status,
        "user_agent": None if agent is None else agent.decode("latin-1")[:LONGEST_AGENT],
        "request_body": request_body,
        "response_body": _response_body(answered.body),
        "refers": refers,
    }


def measure(asked: RequestRecord) -> None:
    """Note how large the body is as it is logged, before a handler empties what it attaches."""
    accepted, refused = [
        sum(map(len, large_json.encoded(masked_request(asked.body, well_formed=well_formed))))
        for well_formed in (True, False)
    ]
    asked.masked_sizes = accepted, refused


def _request_body(answered: ResponseRecord) -> tuple[str | None, bool]:
    """Return the body of the request as JSON, and whether it refers to contents."""
    asked = answered.asked
    if asked.body is None:
        return None, False
    if asked.body is UNREADABLE:
        return '{"invalid_json":true}', False
    if asked.masked_sizes is not None:
        size = asked.masked_sizes[answered.status >= REFUSED]
        if size > MOST:
            return _truncated(size), False
    body = masked_request(asked.body, well_formed=answered.status < REFUSED)
    if asked.size > SURELY_LESS and asked.masked_sizes is None:
        size = len(_encode(body))
        if size > MOST:
            return _truncated(size), False
    shorter = _referring(body, answered) if answered.contents else None
    written = _encode(body if shorter is None else shorter)
    if len(written) > MOST:
        return _truncated(len(written)), False
    return written.decode(), shorter is not None


def _response_body(body: bytes | None) -> str | None:
    if not body:
        return None
    if len(body) <= 4 * MOST:
        body = masked_response(body)
    return _truncated(len(body)) if len(body) > MOST else body.decode()


def without_large_body(answered: ResponseRecord) -> ResponseRecord:
    """Return the record without a body that would be read to its end only to be left out."""
    body = answered.body
    if not answered.asked.is_open or body is None or len(body) <= MOST:
        return answered
    return answered._replace(body=_truncated(len(body)).encode())


def _truncated(size: int) -> str:
    return f'{{"truncated":true,"size":{size}}}'


def _referring(body: Any, answered: ResponseRecord) -> Any:
    """Return the body with numbers for what is stored elsewhere; None where nothing is."""
    indexes: dict[int, int] = {}
    for index, content in enumerate(answered.contents):
        for text in content:
            if text is not None and len(text) > SHORT:
                indexes[id(text)] = index
    items = [body] if isinstance(body, dict) else body
    if not indexes or len(items) != len(answered.contents):
        return None
    referring = [_one_referring(item, indexes) for item in items]
    return referring[0] if isinstance(body, dict) else referring


def _one_referring(item: dict[str, Any], indexes: dict[int, int]) -> dict[str, Any]:
    found = {}
    for name in BODIES:
        index = indexes.get(id(item.get(name)))
        if index is not None:
            found[name] = index
    return {**item, **found} if found else item
