"""Forms of bounces as the documentation of mail servers has them, each with what it means."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kit.reports import about, bounce, reply
from pillarbox.mail.message.parse import parse
from pillarbox.mail.reports import dsn
from pillarbox.mail.reports.replies import BounceType, DeliveryOutcome, SubType

ADA = "ada@quay.example"
GONE = (BounceType.PERMANENT, SubType.NO_EMAIL)
FULL = (BounceType.TRANSIENT, SubType.MAILBOX_FULL)
LATER = (BounceType.TRANSIENT, SubType.GENERAL)
REFUSED = (BounceType.UNDETERMINED, SubType.GENERAL)
SPAM = (BounceType.UNDETERMINED, SubType.CONTENT_REJECTED)


class Form(NamedTuple):
    """A report with fields (`status` and what the server said), or in words alone."""

    name: str
    means: tuple[BounceType, SubType]
    said: str
    status: str | None = None

    @property
    def raw(self) -> bytes:
        if self.status is not None:
            return bounce(about(ADA, status=self.status, said=self.said))
        mail = reply("Undelivered Mail Returned to Sender", text=self.said)
        return mail.replace(b"From: Ann <ann@quay.example>", b"From: MAILER-DAEMON@mx.quay.example")


FORMS = (
    Form(
        "exchange online, nobody by that address",
        GONE,
        "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient ada@quay.example not found by SMTP "
        "address lookup",
        "5.1.10",
    ),
    Form("exchange, former recipient", GONE, "550 5.1.1 RESOLVER.ADR.ExRecipNotFound; not found", "5.1.1"),
    Form(
        "exchange online, quota",
        FULL,
        "554 5.2.2 mailbox full; "
        "STOREDRV.Deliver.Exception:QuotaExceededException.MapiExceptionShutoffQuotaExceeded;"
        " Failed to process message due to a permanent exception",
        "5.2.2",
    ),
    Form(
        "exchange online, a group that takes no mail from outside",
        REFUSED,
        "550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required; Delivery "
        "restriction "
        "check failed because the sender was not authenticated when sending to this group",
        "5.7.133",
    ),
    Form("exchange, too long in the queue", LATER, "550 4.4.7 QUEUE.Expired; message expired", "4.4.7"),
    Form(
        "exchange online, too long in the queue",
        LATER,
        "550 5.4.300 Message expired -> 451 4.7.500 Server busy. Please try again later from [192.0.2.1].",
        "5.4.300",
    ),
    Form(
        "exchange online, a loop of forwarding",
        LATER,
        "554 5.4.14 Hop count exceeded - possible mail loop ATTR34",
        "5.4.14",
    ),
    Form(
        "google, no account",
        GONE,
        "550-5.1.1 The email account that you tried to reach does not exist. Please try 550-5.1.1 "
        "double-checking the recipient's email address for typos or 550-5.1.1 unnecessary spaces. gsmtp",
        "5.1.1",
    ),
    Form(
        "google, storage",
        FULL,
        "452-4.2.2 The recipient's inbox is out of storage space. Please direct the recipient to 452 4.2.2 "
        "https://support.google.com/mail/?p=OverQuotaTemp gsmtp",
        "4.2.2",
    ),
    Form(
        "google, inactive account",
        GONE,
        "550-5.2.1 The email account that you tried to reach is inactive. For more information, go to "
        "550 5.2.1 "
        "https://support.google.com/mail/?p=DisabledUser gsmtp",
        "5.2.1",
    ),
    Form(
        "google, too much for one recipient",
        LATER,
        "450-4.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional "
        "messages from being delivered. gsmtp",
        "4.2.1",
    ),
    Form(
        "postfix, virtual mailbox",
        GONE,
        "550 5.1.1 <ada@quay.example>: Recipient address rejected: User unknown in virtual mailbox table",
        "5.1.1",
    ),
    Form(
        "postfix, mail for the domain loops",
        LATER,
        "mail for quay.example loops back to myself",
        "5.4.6",
    ),
    Form(
        "postfix, no such domain",
        GONE,
        "Host or domain name not found. Name service error for name=quay.example type=MX: Host not found",
        "5.4.4",
    ),
    Form(
        "postfix, never reached",
        LATER,
        "connect to mx.quay.example[192.0.2.7]:25: Connection timed out",
        "4.4.1",
    ),
    Form(
        "zimbra, lmtp quota",
        FULL,
        "452 4.2.2 Over quota (in reply to end of DATA command)",
        "4.2.2",
    ),
    Form(
        "exim, unrouteable",
        GONE,
        "This message was created automatically by mail delivery software.\n\nA message that you sent "
        "could not "
        "be delivered to one or more of its\nrecipients. This is a permanent error. The following "
        "address(es) "
        "failed:\n\n  ada@quay.example\n    Unrouteable address\n",
    ),
    Form(
        "exim, quota",
        FULL,
        "A message that you sent could not be delivered to one or more of its\nrecipients. This is a "
        "permanent "
        "error. The following address(es) failed:\n\n  ada@quay.example\n    mailbox is full "
        "(MTA-imposed quota "
        "exceeded while writing to tmp/1.H2P3.mx): retry timeout exceeded\n",
    ),
    Form(
        "qmail, no host",
        GONE,
        "Hi. This is the qmail-send program at mx.harbor.example.\nI'm afraid I wasn't able to deliver your "
        "message to the following addresses.\nThis is a permanent error; I've given up. Sorry it didn't work "
        "out.\n\n<ada@quay.example>:\nSorry, I couldn't find any host named quay.example. (#5.1.2)\n",
    ),
    Form(
        "qmail, over quota",
        FULL,
        "Hi. This is the qmail-send program at mx.quay.example.\nI'm afraid I wasn't able to deliver your "
        "message to the following addresses.\n\n<ada@quay.example>:\nuser is over quota\n",
    ),
    Form(
        "sendmail, transcript",
        GONE,
        "The original message was received at Sat, 3 Oct 2026 08:15:00 GMT\nfrom mx.harbor.example "
        "[192.0.2.1]\n\n"
        "   ----- The following addresses had permanent fatal errors -----\n<ada@quay.example>\n    "
        "(reason: 550 "
        "5.1.1 <ada@quay.example>... User unknown)\n\n   ----- Transcript of session follows -----\n... "
        "while "
        "talking to mx.quay.example.:\n>>> DATA\n<<< 550 5.1.1 <ada@quay.example>... User unknown\n550 5.1.1 "
        "<ada@quay.example>... User unknown\n",
    ),
    Form(
        "sendmail, given up",
        LATER,
        "   ----- The following addresses had permanent fatal errors -----\n<ada@quay.example>\n\n   ----- "
        "Transcript of session follows -----\n<ada@quay.example>... Deferred: Connection timed out with "
        "mx.quay.example.\nMessage could not be delivered for 5 days\nMessage will be deleted from queue\n",
    ),
    Form(
        "domino, directory",
        GONE,
        "550 ada@quay.example... No such user; User ada (ada@quay.example) not listed in Domino Directory",
        "5.1.1",
    ),
    Form(
        "domino, loop",
        LATER,
        "Maximum hop count exceeded.  Message probably in a routing loop.",
        "5.0.0",
    ),
    Form("mdaemon, unknown", GONE, "550 <ada@quay.example>, Recipient unknown", "5.0.0"),
    Form(
        "mdaemon, mailbox at its limit",
        FULL,
        "552 <ada@quay.example> Message exceeds the recipient's disk quota, try again later",
        "5.0.0",
    ),
    Form(
        "mimecast, invalid recipient",
        GONE,
        "550 Invalid Recipient - https://community.mimecast.com/docs/DOC-1369#550 [x1y2z3.uk11]",
        "5.0.0",
    ),
    Form(
        "mimecast, policy",
        REFUSED,
        "554 Email rejected due to security policies - https://community.mimecast.com/docs/DOC-1369#554",
        "5.0.0",
    ),
    Form(
        "proofpoint, block list",
        REFUSED,
        "550 5.7.0 Local Policy Violation - client [192.0.2.1] blocked using prs.proofpoint.com",
        "5.7.0",
    ),
    Form(
        "barracuda, unknown",
        GONE,
        "550 permanent failure for one or more recipients (ada@quay.example:550 5.1.1 User unknown)",
        "5.0.0",
    ),
    Form(
        "barracuda, blocked",
        REFUSED,
        "550 permanent failure for one or more recipients (ada@quay.example:blocked)",
        "5.0.0",
    ),
    Form(
        "yahoo, no account",
        GONE,
        "554 delivery error: dd This user doesn't have a yahoo.com account (ada@quay.example) [0] - "
        "mta1.yahoo",
        "5.0.0",
    ),
    Form(
        "yahoo, disabled",
        GONE,
        "554 30 Sorry, your message to ada@quay.example cannot be delivered. This mailbox is disabled "
        "(554.30).",
        "5.0.0",
    ),
    Form(
        "courier",
        GONE,
        "UNDELIVERABLE MAIL\n\nYour message to the following recipients cannot be delivered:\n\n"
        "<ada@quay.example>:\n     mx.quay.example [192.0.2.7]:\n>>> RCPT TO:<ada@quay.example>\n<<< "
        "550 User "
        "unknown.\n",
    ),
    Form(
        "hmailserver",
        GONE,
        "Your message did not reach some or all of the intended recipients.\n\n   Sent: Sat, 3 Oct 2026\n\n"
        "The following recipient(s) could not be reached:\n\nada@quay.example\n   Error Type: SMTP\n   "
        "Remote "
        "server (192.0.2.7) issued an error.\n   hMailServer sent: RCPT TO:<ada@quay.example>\n   "
        "Remote server "
        "replied: 550 Unknown user\n",
    ),
    Form("imail", GONE, "Unknown user: ada@quay.example\n\nOriginal message follows.\n"),
    Form(
        "imail, quota",
        FULL,
        "User mailbox exceeds allowed size: ada@quay.example\n\nOriginal message follows.\n",
    ),
    Form(
        "communigate",
        FULL,
        "Failed to deliver to 'ada@quay.example'\nLOCAL module(account ada) reports:\n account is full "
        "(quota "
        "exceeded)\n",
    ),
    Form(
        "opensmtpd",
        GONE,
        "Hi!\n\n    This is the MAILER-DAEMON, please DO NOT REPLY to this email.\n\n    An error has "
        "occurred "
        "while attempting to deliver a message for\n    the following list of "
        "recipients:\n\nada@quay.example: "
        "550 Invalid recipient\n\n    Below is a copy of the original message:\n\n",
    ),
    Form(
        "apple, over quota",
        FULL,
        "552 5.2.2 <ada@quay.example>: user is over quota [apple]",
        "5.2.2",
    ),
    Form(
        "spam filter behind a code of bad addresses",
        SPAM,
        "554 5.1.1 Message rejected as spam by content filter",
        "5.1.1",
    ),
    Form(
        "exchange online, no such domain",
        GONE,
        "550 5.4.310 DNS domain quay.example does not exist [Message=InfoDomainNonexistent]",
        "5.4.310",
    ),
    Form(
        "exchange online, refused connections",
        LATER,
        "550 5.4.316 Message expired, connection refused(Socket error code 10061)",
        "5.4.316",
    ),
    Form(
        "exchange online, never connected",
        LATER,
        "550 5.4.317 Message expired, cannot connect to remote server",
        "5.4.317",
    ),
    Form(
        "exchange, a list with few senders",
        REFUSED,
        "550 5.7.129 RESOLVER.RST.RestrictedToRecipientsPermission; not authorized to send to the recipient "
        "because the sender isn't on the recipient's list of senders to accept mail from",
        "5.7.129",
    ),
    Form(
        "google in words, no address",
        GONE,
        "** Address not found **\n\nYour message wasn't delivered to ada@quay.example because the address "
        "couldn't be found, or is unable to receive mail.\n",
    ),
    Form(
        "google in words, no connection",
        LATER,
        "** Message not delivered **\n\nThere was a problem delivering your message to "
        "ada@quay.example. See the "
        "technical details below.\n\nThe recipient server did not accept our requests to connect.\n",
    ),
    Form(
        "google in words, inbox full",
        FULL,
        "** Recipient inbox full **\n\nYour message couldn't be delivered to ada@quay.example. Their "
        "inbox is "
        "full, or it's getting too much mail right now.\n",
    ),
    Form(
        "google in words, no domain",
        GONE,
        "** Address not found **\n\nYour message wasn't delivered to ada@quay.example because the domain "
        "quay.example couldn't be found. Check for typos or unnecessary spaces and try again.\n",
    ),
    Form(
        "outlook in words, not found",
        GONE,
        "Your message to ada@quay.example couldn't be delivered.\n\nada wasn't found at quay.example.\n",
    ),
    Form(
        "outlook in words, full",
        FULL,
        "Delivery has failed to these recipients or "
        "groups:\n\nada@quay.example<mailto:ada@quay.example>\nThe "
        "recipient's mailbox is full and can't accept messages now. Please try resending your message "
        "later, or "
        "contact the recipient directly.\n",
    ),
    Form(
        "sendmail, no host",
        GONE,
        "550 5.1.2 <ada@quay.example>... Host unknown (Name server: quay.example.: host not found)",
        "5.1.2",
    ),
    Form(
        "sendmail, loops back",
        LATER,
        "553 5.3.5 quay.example. config error: mail loops back to me (MX problem?)",
        "5.3.5",
    ),
    Form("postfix, null mx", GONE, "Domain quay.example does not accept mail (nullMX)", "5.1.0"),
    Form("postfix, local", GONE, 'unknown user: "ada"', "5.1.1"),
    Form(
        "postfix, mailbox file at its limit",
        FULL,
        "cannot update mailbox /var/mail/ada for user ada. error writing message: File too large",
        "5.2.2",
    ),
    Form(
        "postfix, disk quota",
        FULL,
        "maildir delivery failed: create maildir file /home/ada/Maildir/tmp/1.P2.mx: Disk quota exceeded",
        "4.2.2",
    ),
    Form(
        "dovecot, quota",
        FULL,
        "552 5.2.2 <ada@quay.example> Quota exceeded (mailbox for user is full)",
        "5.2.2",
    ),
    Form(
        "dovecot, nobody", GONE, "550 5.1.1 <ada@quay.example> User doesn't exist: ada@quay.example", "5.1.1"
    ),
    Form("cpanel", GONE, '550 "No Such User Here"', "5.0.0"),
    Form(
        "exim, failing for long",
        LATER,
        "A message that you sent could not be delivered to one or more of its\nrecipients. This is a "
        "permanent "
        "error. The following address(es) failed:\n\n  ada@quay.example\n    all hosts for "
        "'quay.example' have "
        "been failing for a long time (and retry time not reached)\n",
    ),
    Form("exim, no address", GONE, "550 No such address here", "5.0.0"),
    Form("qmail-ldap, disabled", GONE, "Mailaddress is administratively disabled. (#5.2.1)", "5.2.1"),
    Form(
        "qmail, a loop",
        LATER,
        "This message is looping: it already has my Delivered-To line. (#5.4.6)",
        "5.4.6",
    ),
    Form(
        "notes, address book",
        GONE,
        "Your document:\n\nHello\n\nwas not delivered to:\n\nada@quay.example\n\nbecause:\n\nUser ada "
        "(ada@quay.example) not listed in public Name & Address Book\n",
    ),
    Form("kerio", GONE, "550 5.1.1 ada@quay.example: mailbox does not exist", "5.1.1"),
    Form(
        "mail.ru",
        GONE,
        "550 Message was not accepted -- invalid mailbox.  Local mailbox ada@quay.example is "
        "unavailable: user "
        "not found",
        "5.0.0",
    ),
    Form("yandex, a policy code", REFUSED, "550 5.7.1 No such user!; 1764000000-XyZ", "5.7.1"),
    Form(
        "gmx, storage",
        FULL,
        "552-Requested mail action aborted: exceeded storage allocation 552-Quota exceeded. The recipients "
        "mailbox is full.",
        "5.0.0",
    ),
    Form(
        "orange, full",
        FULL,
        "552 5.2.2 Boite du destinataire pleine. Recipient overquota. OFR_417 [417]",
        "5.2.2",
    ),
    Form(
        "orange, nobody",
        GONE,
        "550 5.1.1 Adresse d au moins un destinataire invalide. Invalid recipient. OFR_416 [416]",
        "5.1.1",
    ),
    Form(
        "free.fr, a mailbox that nobody uses",
        GONE,
        "550 5.2.1 This mailbox has been blocked due to inactivity (UserSearch)",
        "5.2.1",
    ),
    Form(
        "james",
        GONE,
        "Hi. This is the James mail server at quay.example.\nI'm afraid I wasn't able to deliver your "
        "message to "
        "the following addresses.\nThis is a permanent error; I've given up. Sorry it didn't work out.\n\n"
        "ada@quay.example\n\nError message below:\n550 - Requested action not taken: no such user here\n",
    ),
)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_form_means_what_its_server_says(form: Form) -> None:
    """BNC-03: what is permanent suppresses the address, and nothing else does."""
    report = dsn.read(parse(form.raw))
    assert report is not None
    [found] = report.recipients
    assert found.recipient in (None, ADA)
    assert found.verdict.outcome is DeliveryOutcome.BOUNCED
    assert (found.verdict.bounce_type, found.verdict.sub_type) == form.means
