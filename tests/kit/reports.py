"""Reports as other servers write them: bounces (RFC 3464), complaints (RFC 5965), automatic replies.

raw = bounce(about("ann@quay.example", status="5.1.1", said="550 5.1.1 no such user"))
await came_back(pillarbox, token, raw)
"""

from __future__ import annotations

from uuid import UUID

from kit.manual_world import clock_of
from kit.world import World
from pillarbox.mail.reports.verp import VerpSigner
from pillarbox.receiving.reports.bounce_mail import BounceMail
from pillarbox.receiving.reports.return_path import ReportOutcome, ReturnPath

FEEDBACK = "fbl@mx.pillar.example"
QUAY_SERVER = "192.0.2.7"
"""The host that brings reports; it sends mail of quay.example by that domain's SPF record."""
NO_SUCH_USER = "550 5.1.1 <x>: no such user here"


def about(
    final: str, *, action: str = "failed", status: str = "5.1.1", said: str = NO_SUCH_USER, original: str = ""
) -> str:
    """Return the fields of one recipient."""
    lines = [f"Final-Recipient: rfc822; {final}", f"Action: {action}", f"Status: {status}"]
    if original:
        lines.insert(0, f"Original-Recipient: rfc822; {original}")
    return "\n".join([*lines, "Remote-MTA: dns; mx.quay.example", f"Diagnostic-Code: smtp; {said}"])


def bounce(*groups: str, original: str = "Message-ID: <c81@harbor.example>") -> bytes:
    """Return a delivery status notification with these groups of fields."""
    fields = "\n\n".join(["Reporting-MTA: dns; relay.quay.example", *groups])
    return _lines(
        "From: Mail Delivery System <MAILER-DAEMON@quay.example>\nSubject: Undelivered Mail Returned to "
        "Sender\nAuto-Submitted: auto-replied\nMIME-Version: 1.0\n"
        "Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n"
        "--b\n\nThis is the mail system.\n\n--b\nContent-Type: message/delivery-status\n\n"
        f"{fields}\n\n--b\nContent-Type: text/rfc822-headers\n\n{original}\n\n--b--\n"
    )


def complaint(fields: str = "Feedback-Type: abuse", original: str = "Subject: Berth 12") -> bytes:
    """Return an abuse report with these fields and this enclosed mail."""
    return _lines(
        "From: fbl@quay.example\nSubject: FW: Berth 12\nTo: fbl@mx.pillar.example\nMIME-Version: 1.0\n"
        "Content-Type: multipart/report; report-type=feedback-report; boundary=b\n\n"
        "--b\n\nThis is an email abuse report.\n\n--b\nContent-Type: message/feedback-report\n\n"
        f"{fields}\nUser-Agent: Quay/1.0\nVersion: 1\n\n--b\nContent-Type: message/rfc822\n\n"
        f"{original}\n\nhello\n--b--\n"
    )


def reply(subject: str, *headers: str, text: str = "I am away until Monday.") -> bytes:
    """Return what a person, or a program in their name, answers."""
    return _lines("\n".join(["From: Ann <ann@quay.example>", f"Subject: {subject}", *headers, "", text, ""]))


async def token_of(pillarbox: World, email: str, address: str = "") -> str:
    """Return the local part under which the email went to this recipient, or to the first one."""
    row = await pillarbox.pool.fetchrow(
        """
        SELECT t.number, r.grp
          FROM recipients r
          JOIN teams t ON t.id = r.team_id
         WHERE r.email_id = $1 AND ($2 = '' OR r.address = $2)
         ORDER BY r.position
        """,
        UUID(email),
        address,
    )
    return pillarbox.app.need(VerpSigner).token(row["number"], UUID(email), row["grp"])


async def came_back(
    pillarbox: World,
    token: str,
    raw: bytes,
    *,
    seconds: float = 60,
    sender: str = "",
    client: str = QUAY_SERVER,
) -> ReportOutcome:
    """Return what the receiving side hands over when this comes to a return path, or with "" to the feedback
    address; some time after what was before."""
    pillarbox.zone.remove("quay.example", "TXT")
    pillarbox.zone.add("quay.example", "TXT", f'"v=spf1 ip4:{QUAY_SERVER} -all"')
    clock = clock_of(pillarbox)
    clock.advance(seconds)
    to = f"{token}@send.harbor.example" if token else FEEDBACK
    mail = BounceMail(
        token=token,
        recipient=to,
        sender=sender,
        raw=raw,
        at=clock.now(),
        client=client,
        helo="mail.quay.example",
    )
    return await pillarbox.app.need(ReturnPath).take(mail)


def _lines(text: str) -> bytes:
    return text.replace("\r\n", "\n").replace("\n", "\r\n").encode()
