"""The signature checker: whether a delivery that somebody received was signed with a secret."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.webhooks.webhook_list import HERE
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.people.roles import Right
from pillarbox.webhooks.signature_check import SignatureVerdict, verdict_of

CHECKER: Final = f"{HERE}/signature"


@screen(CHECKER, title="signature.title", words="signature.words")
async def show(visit: Visit) -> Reply[Html]:
    """Show the empty form."""
    return await visit.draw("webhooks/signature.html", body="", header_lines="")


@act(CHECKER, title="signature.check", back=CHECKER, right=Right.VIEW)
async def check(visit: Visit, form: Form) -> Reply[Html]:
    """Say whether the signature is right. Nothing is stored, and the secret is not shown again."""
    body, header_lines = form.get("body"), form.get("header_lines")
    verdict = verdict_of(body, header_lines, form.get("secret"), visit.request.at)
    is_valid = verdict is SignatureVerdict.VALID
    said = t(f"signature.verdict.{verdict.value}")
    return await visit.draw(
        "webhooks/signature.html",
        problem=None if is_valid else said,
        notice=said if is_valid else None,
        body=body,
        header_lines=header_lines,
    )
