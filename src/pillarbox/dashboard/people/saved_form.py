"""Keeps a form that first had to ask for a login (docs/decisions/0106).

It travels in a cookie that only we can read, for one session, team and form, and fills that form in when its
person comes back; then the cookie is taken away. Nothing is done by itself: the person presses the button
again. A form says which of its fields are kept; secrets are never among them.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from pillarbox.dashboard.people.cookies import cookie, no_cookie, set_cookie
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.security.secrets import KeyRing, KeyRingError
from pillarbox.people.visitors import Visitor

NAME: Final = "__Host-pillarbox-input"
LASTS: Final = timedelta(minutes=30)
MOST_BYTES: Final = 2048
"""Of a form with more nothing is filled in: a browser keeps 4096 bytes of a cookie."""

SECRETS: Final = frozenset({"password", "code", "asked", "answer", "csrf_token"})
"""Fields that are kept nowhere."""


@dataclass(frozen=True, slots=True)
class SavedForm:
    """The fields of a form, as they were sent, for the page that shows it."""

    page: str = ""
    form: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    def is_of(self, form: str, **fields: str) -> bool:
        """Return whether it is this form that was sent, with these fields."""
        return self.form == form and all(self.fields.get(name) == value for name, value in fields.items())

    def get(self, form: str, name: str, default: str = "") -> str:
        """Return the saved content of a field of this form."""
        return self.fields.get(name, default) if self.form == form else default


NOTHING: Final = SavedForm()


def keeping(request: Request, visitor: Visitor, page: str, fields: Mapping[str, str]) -> str:
    """Return the Set-Cookie value that keeps the fields of the form that was sent, for the page that shows
    it."""
    plain = _written(request, page, fields)
    if len(plain) > MOST_BYTES:
        plain = _written(request, page, {})
    sealed = request.use(KeyRing).seal(plain, _context(visitor))
    return set_cookie(NAME, urlsafe_b64encode(sealed).decode("ascii"), LASTS)


def kept(request: Request, visitor: Visitor) -> SavedForm:
    """Return the fields that the page may fill in. Nothing where it says what was done: then it was done."""
    found = _opened(request, visitor)
    return found if _is_here(request, found) and not request.query.last("done") else NOTHING


def has_fields(request: Request, visitor: Visitor, page: str | None) -> bool:
    """Return whether fields are kept for this page."""
    found = _opened(request, visitor)
    return bool(found.fields) and found.page == page


def form_path(request: Request, visitor: Visitor, page: str | None) -> str | None:
    """Return the path of the form that was sent for this page; None where none was."""
    found = _opened(request, visitor)
    return found.form if found.form and found.page == page else None


def taken_away(
    request: Request, visitor: Visitor, reply: Reply[Html], *, is_done: bool = False
) -> Reply[Html]:
    """Return the answer, and let it delete the cookie where the form's page was shown, or a form was acted
    upon."""
    if cookie(request, NAME) is not None and (is_done or _is_here(request, _opened(request, visitor))):
        reply.headers.setdefault("set-cookie", no_cookie(NAME))
    return reply


def _written(request: Request, page: str, fields: Mapping[str, str]) -> bytes:
    until = int((request.at + LASTS).timestamp())
    found = {"until": until, "page": page, "form": request.path, "fields": dict(fields)}
    return json.dumps(found, ensure_ascii=False).encode()


def _opened(request: Request, visitor: Visitor) -> SavedForm:
    """Return the content of the cookie; NOTHING where it is of another session, too old, or not ours."""
    value = cookie(request, NAME)
    if not value or len(value) > 2 * MOST_BYTES:
        return NOTHING
    try:
        plain = request.use(KeyRing).open(urlsafe_b64decode(value.encode()), _context(visitor))
    except (KeyRingError, ValueError):
        return NOTHING
    return _read(json.loads(plain), request.at)


def _read(fields: dict[str, Any], instant: datetime) -> SavedForm:
    if fields["until"] < instant.timestamp():
        return NOTHING
    return SavedForm(fields["page"], fields["form"], fields["fields"])


def _is_here(request: Request, saved_form: SavedForm) -> bool:
    return request.method == "GET" and saved_form.page == request.path


def _context(visitor: Visitor) -> bytes:
    # A proof of who one is gives the session another token, and leaves its id. A form about one team is not
    # filled in where another team is looked at.
    team = visitor.team_id.bytes if visitor.team_id else b""
    return b"kept input" + visitor.session_id.bytes + team
