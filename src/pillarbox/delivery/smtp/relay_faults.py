"""Finds answers of a smarthost that are about us and not about a mail: a wrong password, TLS that it does not
offer, a name that does not exist.

Such an answer comes for every mail alike, and ends when the operator, or the owner of the smarthost, has
mended it. So it is no attempt of the mail that happened to be first. The smarthost is held (`rate_control`),
its mail waits as it is, and one mail after each pause finds out whether it works again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pillarbox.mail.smtp.client import ConnectFailed, SmtpReply, SmtpStage, TlsMode

PREFIX: Final = "The smarthost "
"""Every sentence begins so; `deliveries.reason` is known by it."""

NAME_UNKNOWN: Final = "4.4.3"
"""Our own answer where a host name has no address (RFC 3463: routing server failure)."""

CLOSING: Final = 421
LOGIN_NEEDED: Final = 530
"""RFC 4954, 6 and RFC 3207, 4: for want of AUTH or of STARTTLS, whoever the recipient is."""

REFUSES_HOST: Final = frozenset({SmtpStage.BANNER, SmtpStage.HELLO})
BEFORE_CONTENT: Final = frozenset({SmtpStage.MAIL, SmtpStage.RCPT})


class RelayFault(NamedTuple):
    """`name` is for programs; `found` is a sentence that begins with `PREFIX`, `step` says what to do."""

    name: str
    code: int
    found: str
    step: str


def of_opening(host: str, failed: ConnectFailed, mode: TlsMode) -> RelayFault | None:
    """Return why no session could be had, where that has nothing to do with any mail; `mode` is what we ask
    of every session. None where the smarthost or the way to it is only away."""
    stage, reply = failed.stage, failed.reply
    if stage is SmtpStage.CONNECT:
        if reply.ours and reply.enhanced == NAME_UNKNOWN:
            return _fault("name", host, "has no address in DNS", reply, "Check the host name in `--route`.")
        return None
    if stage is SmtpStage.TLS:
        if mode.may_be_clear:
            return None
        return _fault(
            "tls",
            host,
            "gives no TLS that can be trusted, and without it gets no password",
            reply,
            "Check host, port and scheme in `--route`, and the certificate of the smarthost.",
        )
    if stage is SmtpStage.AUTH:
        return _of_login(host, reply)
    if stage in REFUSES_HOST and reply.code >= 500:
        return _fault("refused", host, "sends this machine away", reply, "Ask who runs it to let it in.")
    return None


def _of_login(host: str, reply: SmtpReply) -> RelayFault | None:
    if reply.code == CLOSING:
        return None
    if reply.ours:
        step = "Check host and port in `--route`: logging in needs TLS, and AUTH PLAIN or LOGIN."
        return _fault("no_login", host, "offers no way to log in", reply, step)
    return _fault(
        "login",
        host,
        "refuses our user name or password",
        reply,
        "Check user and password in `--route`, and restart the server when you have changed them.",
    )


def of_answer(host: str, stage: SmtpStage, reply: SmtpReply) -> RelayFault | None:
    """Return the fault that a reply within a session shows: code 530 before the content says that the relay
    wants a login. None for every other reply."""
    if stage not in BEFORE_CONTENT or reply.code != LOGIN_NEEDED:
        return None
    step = "Give user and password in `--route relay:smtp://user:password@host:587`, or use `smtps://`."
    return _fault("login_needed", host, "takes mail only after a login or under TLS", reply, step)


def _fault(name: str, host: str, words: str, reply: SmtpReply, step: str) -> RelayFault:
    return RelayFault(name, reply.code, f"{PREFIX}{host} {words} ({reply}).", step)
