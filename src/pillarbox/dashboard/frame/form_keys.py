"""The Idempotency-Key of a form that sends mail: the form carries it, so sent twice it acts once."""

from __future__ import annotations

from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.kernel.wire.problems import IdempotencyMismatch, Problem
from pillarbox.kernel.wire.uuids import well_formed


def new_key(visit: Visit) -> str:
    """Return the key of a form that is drawn now."""
    return str(visit.request.id)


def form_key(visit: Visit, form: Form) -> str:
    """Return the key that the form came with, else a new one."""
    key = form.get("key")
    return key if well_formed(key) else new_key(visit)


def key_after(visit: Visit, form: Form, problem: Problem) -> str:
    """Return the key of the form that is shown again. It is a new one where the old one stands for other
    words; while the first sending of the form still runs it stays, so the next does not send twice."""
    return new_key(visit) if isinstance(problem, IdempotencyMismatch) else form_key(visit, form)
