"""One received email: what it looks like, its parts, and what was found out about its sender."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pillarbox.dashboard import pages
from pillarbox.dashboard.emails.mail_frame import mail_frame
from pillarbox.dashboard.emails.received_list import HERE
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.texts import has_text, t
from pillarbox.kernel.http.request import Html, Reply

ONE: Final = f"{HERE}/{{received_id}}"
VIEWS: Final = ("html", "text", "source", "headers", "attachments")
TONES: Final[Mapping[str, str]] = {
    "pass": "good",
    "fail": "bad",
    "softfail": "warn",
    "policy": "warn",
    "permerror": "warn",
    "temperror": "warn",
    "spam": "bad",
    "wanted": "good",
}


class VerdictLine(NamedTuple):
    """A verdict as the screen shows it: the check, its result, and what that means."""

    check: str
    result: str
    tone: str
    text: str
    reason: str | None


@screen(ONE, title="received.one", query={"view": str})
async def show(visit: Visit) -> Reply[Html]:
    email = await visit.get(_api(visit), html_format="cid")
    verdicts = await visit.get(f"{_api(visit)}/verdicts")
    files = (await visit.get(f"{_api(visit)}/attachments", shown=False, limit=100))["data"]
    view = visit.request.query.text("view")
    shown = view if view in VIEWS else "html" if email["html"] else "text"
    text, is_cut = pages.screen_text(email["html"] if shown == "source" else email["text"])
    return await visit.draw(
        "emails/received.html",
        email=email,
        subject=email["subject"] or t("email.no_subject"),
        here=f"{HERE}/{email['id']}",
        view=shown,
        text=text,
        is_cut=is_cut,
        attachments=files,
        verdicts=verdict_lines(verdicts),
        is_automatic=verdicts["automatic"],
    )


@screen(f"{ONE}/html", title="received.one")
async def frame(visit: Visit) -> Reply[Html]:
    """Show the HTML of the email for a sandboxed frame, cleaned, with its inline pictures."""
    email = await visit.get(_api(visit), shown=False)
    return await mail_frame(visit, email["html"] or "")


def verdict_lines(verdicts: Mapping[str, Any]) -> list[VerdictLine]:
    """Return SPF, each DKIM signature, DMARC and spam in words."""
    spf, dmarc, spam = verdicts["spf"], verdicts["dmarc"], verdicts["spam"]
    signatures = verdicts["dkim"] or [{"result": "none", "domain": None, "selector": None, "reason": None}]
    lines = [_line("spf", "SPF", spf["result"], spf["reason"], domain=spf["domain"])]
    lines += [_line("dkim", "DKIM", one["result"], one["reason"], domain=one["domain"]) for one in signatures]
    lines.append(
        _line(
            "dmarc", "DMARC", dmarc["result"], dmarc["reason"], domain=dmarc["domain"], policy=dmarc["policy"]
        )
    )
    score = "" if spam["score"] is None else f"{spam['score']:g} / {spam['required_score'] or 0:g}"
    result = "spam" if spam["is_spam"] else "wanted"
    lines.append(_line("spam", t("received.spam"), result, spam["reason"] or score or None))
    return lines


def _line(check: str, name: str, result: str, reason: str | None, **values: str | None) -> VerdictLine:
    key = f"verdict.{check}.{result}"
    filled = {key: value or t("received.unknown") for key, value in values.items()}
    text = t(key, **filled) if has_text(key) else t("received.other_result", check=name, result=result)
    shown = t(f"verdict.{result}") if has_text(f"verdict.{result}") else result
    return VerdictLine(check=name, result=shown, tone=TONES.get(result, "quiet"), text=text, reason=reason)


def _api(visit: Visit) -> str:
    return f"/emails/receiving/{visit.request.param('received_id')}"
