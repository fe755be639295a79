"""What answers of real servers mean (OUT-06, BNC-03, contract decision 23): a table of over 200."""

# ruff: noqa: E501 - the tables hold whole answers

from __future__ import annotations

import re
import time
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.mail.reports.replies import (
    TABLE,
    BounceRule,
    BounceType,
    DeliveryOutcome,
    ReplyVerdict,
    SubType,
    classify,
)
from pillarbox.mail.smtp.reply import ReplyReader, SmtpReply, SmtpStage, our_reply

# Short names of verdicts: what the tables below want.
WANTED = {
    "gone": (DeliveryOutcome.BOUNCED, BounceType.PERMANENT, SubType.NO_EMAIL),
    "full": (DeliveryOutcome.BOUNCED, BounceType.TRANSIENT, SubType.MAILBOX_FULL),
    "later": (DeliveryOutcome.BOUNCED, BounceType.TRANSIENT, SubType.GENERAL),
    "large": (DeliveryOutcome.BOUNCED, BounceType.UNDETERMINED, SubType.MESSAGE_TOO_LARGE),
    "content": (DeliveryOutcome.BOUNCED, BounceType.UNDETERMINED, SubType.CONTENT_REJECTED),
    "file": (DeliveryOutcome.BOUNCED, BounceType.UNDETERMINED, SubType.ATTACHMENT_REJECTED),
    "policy": (DeliveryOutcome.BOUNCED, BounceType.UNDETERMINED, SubType.GENERAL),
    "unclear": (DeliveryOutcome.BOUNCED, BounceType.UNDETERMINED, SubType.UNDETERMINED),
    "delay": (DeliveryOutcome.DELAYED, BounceType.TRANSIENT, SubType.GENERAL),
    "delayfull": (DeliveryOutcome.DELAYED, BounceType.TRANSIENT, SubType.MAILBOX_FULL),
}

AT_RCPT = """
gone 550 5.1.1 The email account that you tried to reach does not exist. Please try double-checking the recipient's email address for typos or unnecessary spaces. Learn more at https://support.google.com/mail/?p=NoSuchUser d2e1a72fcca58-7 - gsmtp
gone 550 5.2.1 The email account that you tried to reach is disabled. Learn more at https://support.google.com/mail/?p=DisabledUser x1 - gsmtp
gone 550 5.2.1 The email account that you tried to reach is inactive. - gsmtp
later 550 5.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional messages from being delivered. - gsmtp
full 552 5.2.2 The recipient's inbox is out of storage space and inactive. Please direct the recipient to https://support.google.com/mail/?p=OverQuotaPerm - gsmtp
full 552 5.2.2 The email account that you tried to reach is over quota and inactive.
full 550 5.2.2 <ann@example.test>: Recipient address rejected: Mailbox is full
delayfull 452 4.2.2 The recipient's inbox is out of storage space. Please direct the recipient to https://support.google.com/mail/?p=OverQuotaTemp - gsmtp
delay 450 4.2.1 The user you are trying to contact is receiving mail too quickly. Please resend your message at a later time. - gsmtp
gone 550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302). [BN8NAM12FT049.eop-nam12.prod.protection.outlook.com]
unclear 550 5.5.0 Requested action not taken: mailbox unavailable
unclear 550 Requested action not taken: mailbox unavailable
unclear 550 Mailbox unavailable
gone 550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient ann@example.test not found by SMTP address lookup
gone 550 5.1.1 RESOLVER.ADR.RecipNotFound; not found
gone 550 5.1.1 User unknown
policy 550 5.4.1 Recipient address rejected: Access denied. [AM4PEPF00027A66.eurprd04.prod.outlook.com 2025-01-01T00:00:00Z]
policy 550 5.4.1 Recipient address rejected: Access denied. AS(201806281)
policy 550 5.7.1 Service unavailable, Client host [192.0.2.1] blocked using Spamhaus. To request removal from this list see https://www.spamhaus.org/query/ip/192.0.2.1 (AS16012609)
policy 550 5.7.606 Access denied, banned sending IP [192.0.2.1]. To request removal from this list please visit https://sender.office.com/
policy 550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3140).
policy 550 5.7.509 Access denied, sending domain harbor.test does not pass DMARC verification and has a DMARC policy of reject.
policy 550 5.7.515 Access denied, sending domain harbor.test doesn't meet the required authentication level.
policy 550 5.7.708 Service unavailable. Access denied, traffic not accepted from this IP.
policy 550 5.7.64 TenantAttribution; Relay Access Denied
policy 550 5.7.124 UnifiedGroupNotFound; sender is not in allowed-senders list
policy 550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required; Delivery restriction check failed
policy 550 5.7.129 RESOLVER.RST.RestrictedToRecipientsPermission; not authorized to send to the recipient
delay 451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (AS77712315)
delay 451 4.7.650 The mail server [192.0.2.1] has been temporarily rate limited due to IP reputation. For e-mail delivery information, see https://postmaster.live.com (S775)
delay 452 4.5.3 Too many recipients (AS780090)
delay 452 4.3.1 Insufficient system resources
delay 432 4.3.2 STOREDRV.ClientSubmit; sender thread limit exceeded
gone 554 delivery error: dd This user doesn't have a yahoo.test account (ann@yahoo.test) [0] - mta1.mail.bf1.yahoo.test
gone 554 delivery error: dd Requested mail action aborted, mailbox not found - mta1.mail.yahoo.test
gone 550 5.1.1 <ann@aol.test>: Recipient address rejected: aol.test
gone 552 1 Requested mail action aborted, mailbox not found
delay 421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user complaints - 4.16.55.1; see https://postmaster.yahooinc.com/error-codes
delay 421 4.7.1 [TS03] All messages from 192.0.2.1 will be permanently deferred; Retrying will NOT succeed.
policy 553 5.7.1 [BL21] Connections will not be accepted from 192.0.2.1, because the ip is in Spamhaus's list; see https://postmaster.yahooinc.com/error-codes
policy 553 5.7.2 [TSS09] All messages from 192.0.2.1 will be permanently deferred; Retrying will NOT succeed.
policy 554 5.7.9 Message not accepted for policy reasons. See https://postmaster.yahooinc.com/error-codes
gone 550 5.1.1 <ann@icloud.test>: user does not exist
gone 550 5.1.6 recipient no longer on server: ann@icloud.test
full 552 5.2.2 <ann@icloud.test>: user is over quota
policy 554 5.7.1 [CS01] Message rejected due to local policy. Please visit https://support.apple.com/en-us/HT204137
policy 550 5.7.0 Blocked - see https://ipcheck.proofpoint.com/?ip=192.0.2.1
delay 450 4.7.1 <ann@example.test>: Recipient address rejected: Greylisted, see http://postgrey.schweikert.ch/help/example.test.html
delay 451 4.7.1 Greylisting in action, please come back later
delay 450 4.2.0 <ann@example.test>: Recipient address rejected: Greylisting in effect, please come back later
delay 451 DT:SPM greylisted, please try again in 300 seconds
gone 550 5.1.1 <ann@example.test>: Recipient address rejected: User unknown in virtual mailbox table
gone 550 5.1.1 <ann@example.test>: Recipient address rejected: User unknown in local recipient table
gone 550 5.1.1 <ann@example.test>: Recipient address rejected: User unknown in relay recipient table
gone 550 5.1.0 <ann@example.test>: Recipient address rejected: User unknown
gone 550 5.1.1 <ann@example.test>: Recipient address rejected: undeliverable address: host mail.example.test said: 550 5.1.1 no such user
gone 550 <ann@example.test>: Recipient address rejected: User unknown in relay recipient table
policy 554 5.7.1 <ann@example.test>: Relay access denied
policy 454 4.7.1 <ann@example.test>: Relay access denied
policy 554 5.7.1 <ann@example.test>: Recipient address rejected: Access denied
policy 550 5.1.8 <a@harbor.test>: Sender address rejected: Domain not found
policy 450 4.1.8 <a@harbor.test>: Sender address rejected: Domain not found
policy 550 5.1.7 <a@harbor.test>: Sender address rejected: undeliverable address
policy 550 5.1.1 <a@harbor.test>: Sender address rejected: User unknown in local recipient table
policy 550 5.1.0 <a@harbor.test>: Sender address rejected: User unknown
policy 554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org; https://www.spamhaus.org/query/ip/192.0.2.1
policy 554 5.7.1 <unknown[192.0.2.1]>: Client host rejected: Access denied
policy 550 5.7.25 Client host rejected: cannot find your hostname, [192.0.2.1]
policy 450 4.7.25 Client host rejected: cannot find your hostname, [192.0.2.1]
policy 550 5.7.1 Client host rejected: cannot find your reverse hostname, [192.0.2.1]
policy 504 5.5.2 <localhost>: Helo command rejected: need fully-qualified hostname
policy 550 5.7.1 <harbor>: Helo command rejected: Host not found
policy 554 5.7.1 <ann@example.test>: Recipient address rejected: SPF fail - not authorized
policy 550 5.7.23 <ann@example.test>: Recipient address rejected: Message rejected due to: SPF fail - not authorized
delay 451 4.3.5 Server configuration error
delay 451 4.3.0 <ann@example.test>: Temporary lookup failure
delay 450 4.1.1 <ann@example.test>: Recipient address rejected: unverified address: Address verification in progress
delay 450 4.1.1 <ann@example.test>: Recipient address rejected: User unknown in local recipient table
delay 452 4.3.1 Insufficient system storage
delay 452 4.5.3 Error: too many recipients
gone 550 No such user here
gone 550 No Such User Here"
gone 550 "No such user here"
gone 550 Unrouteable address
gone 550 unknown user
gone 550 Unknown local part ann in <ann@example.test>
policy 550 Verification failed for <a@harbor.test> No Such User Here Sender verify failed
policy 550 Sender verify failed
policy 550 relay not permitted
policy 550 Rejected because 192.0.2.1 is in a black list at zen.spamhaus.org
policy 550 "JunkMail rejected - out.harbor.test [192.0.2.1]:41234 is in an RBL, see Client host blocked using Barracuda Reputation"
policy 550 Administrative prohibition
policy 550 authentication required
delay 451 Temporary local problem - please try later
delay 451 could not complete recipient verify callout
delay 421 Unexpected failure, please try later
policy 550 Callback setup failed while verifying <a@harbor.test>
gone 550 5.1.1 <ann@example.test>... User unknown
gone 550 5.1.1 ann... User unknown
gone 553 5.3.0 <ann@example.test>... No such user here
gone 550 5.1.2 <ann@nowhere.test>... Host unknown (Name server: nowhere.test: host not found)
policy 550 5.7.1 <ann@example.test>... Relaying denied
policy 550 5.7.1 <ann@example.test>... Relaying denied. IP name lookup failed [192.0.2.1]
policy 553 5.1.8 <a@harbor.test>... Domain of sender address a@harbor.test does not exist
policy 501 5.1.8 Domain of sender address <a@harbor.test> does not exist
policy 550 5.7.1 Access denied
policy 550 5.0.0 Mail rejected by our policy
delay 451 4.1.8 Domain of sender address a@harbor.test does not resolve
delay 452 4.4.5 Insufficient disk space; try again later
delay 421 4.3.2 Too many open connections.
gone 550 Sorry, no mailbox here by that name. (#5.1.1)
gone 550 sorry, no mailbox here by that name (#5.1.1 - chkuser)
gone 511 sorry, no mailbox here by that name (#5.1.1 - chkuser)
gone 550 Sorry, no such user here. vpopmail (#5.1.1)
policy 553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)
policy 553 sorry, your envelope sender is in my badmailfrom list (#5.7.1)
policy 553 sorry, your mail was administratively denied. (#5.7.1)
full 552 sorry, the recipient's mailbox is over quota (#5.2.2)
gone 550 5.1.1 Address does not exist
gone 550 5.1.1 Recipient unknown
gone 550 5.1.1 unknown or illegal alias: ann@example.test
gone 550 5.1.1 recipient rejected
gone 550 5.1.1 Mailbox does not exist
gone 550 5.1.3 Bad destination mailbox address syntax
gone 501 5.1.3 Invalid address
gone 553 5.1.3 <ann..b@example.test>... Invalid route address
gone 550 5.1.6 Recipient no longer on server
gone 556 5.1.10 Recipient domain has a null MX
gone 556 no mail here
gone 550 5.1.2 The domain does not exist
unclear 550 #5.1.0 Address rejected.
policy 550 #5.7.1 Your access to submit messages to this e-mail system has been rejected.
policy 554 Your access to this mail system has been rejected due to the sending MTA's poor reputation. If you believe that this failure is in error, please contact the intended recipient via alternate means.
gone 550 Invalid Recipient - https://community.mimecast.test/docs/DOC-1369#550 [abc.uk23]
policy 550 Administrative prohibition - envelope blocked - https://community.mimecast.test/docs/DOC-1369#550
policy 550 Rejected by header based manually Blocked Senders: a@harbor.test - https://community.mimecast.test
policy 550 Email rejected due to security policies - https://community.mimecast.test/docs/DOC-1369#550
delay 451 Internal resources are temporarily unavailable - https://community.mimecast.test/docs/DOC-1369#451
delay 451 Greylisted by Mimecast - https://community.mimecast.test
policy 550 Local CT IP Reputation - (reject)
gone 550 5.1.1 User unknown: ann (proofpoint essentials)
policy 550 5.7.1 Email rejected per SPF policy
policy 554 Blocked - see https://www.spamcop.net/bl.shtml?192.0.2.1
policy 550-5.7.1 [192.0.2.1 12] Our system has detected that this message does not meet IPv6 sending guidelines regarding PTR records and authentication.
policy 550 5.7.26 Unauthenticated email from harbor.test is not accepted due to domain's DMARC policy. Please contact the administrator of harbor.test domain. - gsmtp
policy 550 5.7.26 This mail has been blocked because the sender is unauthenticated. Gmail requires all senders to authenticate with either SPF or DKIM.
policy 550 5.7.1 The IP you're using to send mail is not authorized to send email directly to our servers.
delay 421 4.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your IP address. To protect our users from spam, mail sent from your IP address has been temporarily rate limited. - gsmtp
delay 421 4.7.0 Try again later, closing connection. (RCPT) - gsmtp
delay 450 4.7.0 Temporary System Problem. Try again later (10). - gsmtp
gone 550 5.1.1 sid: 1234 mid: abc: account ann@web.example unknown
policy 554 Transaction failed Reject due to policy restrictions. For explanation visit https://postmaster.gmx.test
unclear 554 IP=192.0.2.1 - A problem occurred. (Ask your postmaster for help or to contact tosa@rx.t-online.test to clarify.) (BL)
policy 554 5.7.1 You've reached your daily relay quota
policy 550 High probability of spam, IP listed
policy 550 5.1.1 blocked, IP listed
policy 550 5.7.1 blocked
policy 550 IP listed
policy 550 Blacklisted
policy 550 5.2.1 blocked by blocklist
policy 550 DNSBL: listed in bl.example.test
policy 550 Your IP has a poor reputation
gone 550 5.1.1 <spamhaus@example.test>: Recipient address rejected: User unknown
gone 550 <policy@blocked.example.test>: No such user
gone 550 user "spam@example.test" does not exist
policy 550 Your account is disabled
policy 550 5.7.1 Your account has been disabled
policy 535 5.7.8 Authentication credentials invalid
policy 530 5.7.0 Must issue a STARTTLS command first
policy 503 5.5.1 Bad sequence of commands
policy 500 5.5.1 Command unrecognized
policy 501 5.5.4 Syntax error in parameters
delay 552 5.5.3 Too many recipients
delay 552 Too many recipients
delay 550 5.5.3 Too many recipients per message
full 552 Requested mail action aborted: exceeded storage allocation
full 552 Mailbox full
full 550 Mailbox is full
full 550 User's mailbox is over quota
full 550 The recipient's mailbox is full and can't accept messages now
full 554 5.2.2 mailbox full
full 522 5.2.2 Storage quota exceeded
full 550 Quota exceeded
full 552 5.2.2 Over quota
full 550 5.0.0 mailbox size limit exceeded
delayfull 450 4.2.2 Mailbox full
delayfull 451 Mailbox over quota
delayfull 422 4.2.2 user over quota
large 552 5.3.4 Message size exceeds fixed maximum message size
large 552 5.2.3 Message length exceeds administrative limit for the mailbox
large 550 Message too large for this mailbox
gone 551 User not local: no such user
gone 550 Invalid mailbox
gone 550 Invalid recipient
gone 550 Unknown recipient
gone 550 Recipient not found
gone 550 Account not found
gone 550 The account has been deleted
gone 550 Mailbox disabled
gone 550 This mailbox is inactive
gone 550 user ann@example.test no longer exists
gone 550 ann@example.test is no longer with us: unknown user
gone 550 There is no one at this address
gone 550 Not our customer
gone 550 No such mailbox
gone 550 No such recipient here
gone 550 email address does not exist
gone 550 Email address could not be found, or was misspelled (G8): account not found
gone 550 Addressee unknown
gone 550 address unknown
gone 550 The recipient does not exist
gone 550 Recipient does not exist on this server
gone 550 User (ann@example.test) unknown.
gone 550 User ann not known here: unknown user
gone 550 non-existent mailbox
gone 550 No such domain at this location
gone 550 Unknown domain
unclear 550 Rejected
unclear 550 no
unclear 554 Transaction failed
unclear 550 5.0.0 something went wrong
policy 553 Requested action not taken: mailbox name not allowed
delay 421 Service not available, closing transmission channel
delay 450 Requested mail action not taken: mailbox unavailable
delay 451 Requested action aborted: local error in processing
delay 452 Too many recipients received this hour
delay 499 nobody knows
later 550 5.7.1 Greylisted, please try again later
gone 550 5.4.4 Invalid domain
unclear 550 Invalid domain
gone 550 Invalid final delivery userid
gone 550 5.1.1 Invalid final delivery userid: ann
gone 550 5.1.1 <ann@example.test>: Recipient address rejected: User unknown; see our policy at https://example.test/policy
gone 550 5.1.1 no such user here. Questions about spam: https://example.test/spam
policy 550 reverse DNS not found
policy 550 5.1.1 reverse DNS for 192.0.2.1 does not exist
policy 550 no reverse hostname found for 192.0.2.1
policy 550 sender domain does not exist
policy 550 5.1.1 sender domain does not exist
policy 550 5.1.2 sending domain not found
policy 550 sender address unknown
policy 550 sender address rejected: user unknown
policy 550 Unknown senders are rejected: no such user in the list of allowed senders
policy 550 You are not on our list of allowed senders: unknown user
policy 550 DKIM key not found
policy 550 5.1.1 DKIM public key for domain not found
policy 550 SPF record of the domain does not exist
policy 550 DMARC: policy domain not found
policy 550 5.1.1 Relay access denied
policy 550 5.1.2 We do not relay: domain not found
policy 550 5.1.1 relaying prohibited, unknown user
policy 550 Unknown host out.harbor.test [192.0.2.1]
policy 550 client host name does not exist
policy 550 connection from unknown host
policy 550 EHLO domain does not exist
policy 550 HELO name unknown
policy 550 MAIL FROM domain not found
policy 550 Reply-To address does not exist
policy 550 From: address does not exist
policy 550 Your user account is disabled
policy 550 5.2.1 user account disabled for sending
policy 550 5.1.1 Outgoing mail of this user account is disabled
policy 550 5.1.1 user account is not authorized to send
policy 550 5.7.1 user account disabled
policy 550 Authentication failed: user unknown
policy 550 5.1.1 Login failed, no such user
policy 550 certificate not found: unknown account
policy 550 originating domain not found
policy 550 5.1.2 From domain does not exist
policy 550 5.1.1 mail from this account is disabled
policy 550 SMTP AUTH account disabled
policy 550 5.2.1 account disabled because of abuse
policy 550 Mailbox disabled for receiving mail from external senders
policy 550 bounce address does not exist
policy 550 user unknown in sender table
content 550 invalid address in To header
content 550 Message-ID is not valid: host does not exist
content 550 URL domain does not exist
content 550 5.1.2 domain in link not found
policy 550 5.1.1 Access denied
policy 550 5.1.1 Administrative prohibition
policy 550 5.2.1 Delivery restricted by the recipient
content 550 5.1.1 Message rejected due to content restrictions
content 550 5.2.1 Message contains a virus
large 552 5.2.1 Message too large
full 550 5.1.1 mailbox full
full 550 5.2.1 mailbox is over quota and inactive
full 552 User mailbox exceeds allowed size
full 550 5.0.0 Mailbox size exceeds the allowed limit
later 550 5.1.1 Temporary lookup failure
later 550 5.2.1 Mailbox temporarily disabled
later 550 5.1.1 undeliverable address: connect to mx.example.test[192.0.2.1]:25: Connection timed out
later 550 5.1.1 undeliverable address: mail for example.test loops back to myself
policy 550 5.1.1 undeliverable address: host mx.example.test[192.0.2.1] said: 554 5.7.1 blocked
delay 451 4.4.3 DNS failure
delay 441 4.4.1 No answer from host
"""

AT_DOT = """
content 550 5.7.1 Our system has detected that this message is likely unsolicited mail. To reduce the amount of spam sent to Gmail, this message has been blocked. - gsmtp
file 552 5.7.0 This message was blocked because its content presents a potential security issue. Please visit https://support.google.com/mail/?p=BlockedMessage to review our message content and attachment content guidelines. - gsmtp
large 552 5.3.4 Your message exceeded Google's message size limits. Please visit https://support.google.com/mail/?p=MaxSizeError - gsmtp
large 552 5.2.3 Message exceeds local size limit
large 552 Message exceeds maximum fixed size
large 554 5.3.4 Message too big for system
large 550 5.2.3 RESOLVER.RST.RecipSizeLimit; message too large for this recipient
large 552 message size exceeds limit
large 523 the recipient's server only accepts messages up to 10 MB: message too large
content 554 5.7.1 Spam message rejected
content 550 5.7.1 Message rejected as spam by Content Filtering.
content 554 5.7.1 Message scored too high on spam scale. For help, please quote incident ID 1.
content 550 5.6.0 Lone CR or LF in headers (see RFC2822 section 2.2)
content 550 5.6.11 SMTPSEND.BareLinefeedsAreIllegal; message contains bare linefeeds, which cannot be sent via DATA
content 554 5.6.0 Message contained unsafe content
content 550 This message contains a virus (Eicar-Test-Signature)
content 554 5.7.1 The message contains malware
content 550 Message rejected: phishing
content 554 5.7.1 rejected by content filter
content 554 Message refused by DATA content policy
content 550 5.7.1 Message content rejected, UBE, id=01234-01
content 550 High probability of spam
content 550 Spam detected
content 554 5.7.0 Reject, id=123 - SPAM
content 550 Duplicate header: multiple 'From' headers
file 554 5.7.1 Attachment type not allowed: invoice.exe
file 552 5.7.0 Our system detected an illegal attachment on your message.
file 550 5.7.1 attached file blocked: .zip
file 550 File type not allowed
file 554 banned file extension
file 550 attachments are not allowed
file 550 Message rejected: forbidden attachment
unclear 550 The original message is attached below
unclear 554 Transaction failed. It's attached below.
policy 550 5.7.1 Message rejected due to DMARC policy
policy 550 5.7.1 Delivery not authorized, message refused
policy 554 5.7.1 rejected by policy
policy 550 5.7.20 DKIM check failed
policy 554 5.7.5 Message not accepted: authentication failed
full 552 5.2.2 Mailbox full
full 552 Requested mail action aborted: exceeded storage allocation
full 554 5.2.2 ann@example.test mailbox quota exceeded
gone 550 5.1.1 User unknown
gone 554 5.1.1 no such mailbox
unclear 554 Transaction failed
unclear 554 5.0.0 Service unavailable
unclear 554 5.3.0 unknown mailer error 1
delay 451 4.3.0 Error: queue file write error
delay 451 4.7.1 Service unavailable - try again later
delay 452 4.3.1 Out of memory
delayfull 452 4.2.2 over quota
delay 421 4.4.2 out.harbor.test Error: timeout exceeded
"""


def reply(answer: str) -> SmtpReply:
    """The answer as our reader reads it from the wire."""
    replies: deque[SmtpReply] = deque()
    line = re.sub(r"^(\d{3})-", r"\1 ", answer)
    assert ReplyReader().feed(f"{line}\r\n".encode(), replies) is None
    return replies[0]


def rows(table: str, stage: SmtpStage) -> list[tuple[SmtpStage, str, str]]:
    return [(stage, *line.split(" ", 1)) for line in table.strip().splitlines()]  # type: ignore[misc]


ANSWERS = rows(AT_RCPT, SmtpStage.RCPT) + rows(AT_DOT, SmtpStage.DOT)


def test_the_table_is_as_long_as_the_standard_wants() -> None:
    """OUT-06: at least 200 answers."""
    assert len({answer for _, _, answer in ANSWERS}) >= 200


@pytest.mark.parametrize(("stage", "wanted", "answer"), ANSWERS)
def test_out_06_an_answer_has_its_class(stage: SmtpStage, wanted: str, answer: str) -> None:
    """OUT-06, BNC-03."""
    verdict = classify(reply(answer), stage)
    expected = WANTED["delay"] if answer[0] == "4" and wanted == "policy" else WANTED[wanted]
    assert (verdict.outcome, verdict.bounce_type, verdict.sub_type) == expected, verdict.reason
    assert verdict.suppresses is (wanted == "gone")
    assert verdict.reason.endswith(".")


def test_a_delivery_is_a_yes_to_the_dot_and_nothing_else() -> None:
    assert classify(reply("250 2.0.0 ok"), SmtpStage.DOT).outcome is DeliveryOutcome.DELIVERED
    for stage in SmtpStage:
        if stage is not SmtpStage.DOT:
            assert classify(reply("250 ok"), stage).outcome is DeliveryOutcome.DELAYED
    assert classify(reply("354 go"), SmtpStage.DOT).outcome is DeliveryOutcome.DELAYED


@pytest.mark.parametrize(
    "stage", [SmtpStage.BANNER, SmtpStage.HELLO, SmtpStage.TLS, SmtpStage.AUTH, SmtpStage.CONNECT]
)
@pytest.mark.parametrize(
    "answer", ["554 5.7.1 blocked", "550 5.1.1 user unknown", "421 busy", "535 5.7.8 no"]
)
def test_out_06_a_host_that_does_not_talk_to_us_is_that_host_only(stage: SmtpStage, answer: str) -> None:
    """OUT-06: delayed, and the next host is tried."""
    verdict = classify(reply(answer), stage)
    assert (verdict.outcome, verdict.retry_host) == (DeliveryOutcome.DELAYED, True)


def test_out_06_a_521_banner_bounces_without_suppression_when_no_other_host_is_left() -> None:
    """OUT-06, RFC 7504."""
    verdict = classify(reply("521 this host takes no mail"), SmtpStage.BANNER)
    assert (verdict.outcome, verdict.retry_host, verdict.suppresses) == (DeliveryOutcome.BOUNCED, True, False)


@pytest.mark.parametrize(
    ("stage", "answer", "next_host"),
    [
        (SmtpStage.MAIL, "451 4.3.0 later", True),
        (SmtpStage.MAIL, "421 4.3.2 bye", True),
        (SmtpStage.MAIL, "550 5.7.1 no", False),
        (SmtpStage.RCPT, "451 4.3.0 later", False),
        (SmtpStage.DOT, "421 4.3.2 bye", False),
    ],
)
def test_out_01_the_next_host_is_tried_before_the_first_recipient_only(
    stage: SmtpStage, answer: str, next_host: bool
) -> None:
    """OUT-01."""
    assert classify(reply(answer), stage).retry_host is next_host


@pytest.mark.parametrize("answer", ["550 5.1.1 user unknown", "550 no such user", "556 5.1.10 null MX"])
def test_bnc_03_a_refused_sender_makes_no_address_bad(answer: str) -> None:
    """BNC-03: at MAIL the server knows no recipient."""
    assert not classify(reply(answer), SmtpStage.MAIL).suppresses


@pytest.mark.parametrize("text", ["user unknown", "no such user", "mailbox does not exist"])
@pytest.mark.parametrize("code", ["5.7.1", "5.7.26", "5.6.0", "5.3.4", "5.2.2"])
def test_bnc_03_policy_and_content_codes_never_suppress(code: str, text: str) -> None:
    """BNC-03."""
    assert not classify(reply(f"550 {code} {text}"), SmtpStage.RCPT).suppresses


@pytest.mark.parametrize("code", ["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"])
def test_decision_23_these_codes_are_permanent(code: str) -> None:
    """BNC-03, contract decision 23."""
    assert classify(reply(f"550 {code} no"), SmtpStage.RCPT).suppresses


@pytest.mark.parametrize(
    ("answer", "slow"),
    [
        ("421 4.7.0 too many connections from your host", True),
        ("421 4.3.2 busy", True),
        ("450 4.7.1 rate limit exceeded", True),
        ("451 4.7.650 temporarily rate limited due to IP reputation", True),
        ("450 4.7.1 Greylisted", False),
        ("450 4.2.1 The user you are trying to contact is receiving mail too quickly", False),
        ("451 4.3.0 later", False),
        ("452 4.5.3 too many recipients", False),
    ],
)
def test_out_12_rate_answers_ask_to_slow_down(answer: str, slow: bool) -> None:
    """OUT-12."""
    assert classify(reply(answer), SmtpStage.RCPT).slow_down is slow


def test_out_12_a_connection_that_was_lost_does_not_slow_the_site_down() -> None:
    """OUT-12: only what a server says counts."""
    verdict = classify(our_reply(421, "4.4.2", "the connection was lost"), SmtpStage.RCPT)
    assert (verdict.outcome, verdict.slow_down) == (DeliveryOutcome.DELAYED, False)


def test_own_rows_go_first() -> None:
    """Contract decision 23: the table can be extended."""
    mine = ReplyVerdict(DeliveryOutcome.DELAYED, BounceType.TRANSIENT, SubType.GENERAL, "Our partner is odd.")
    table = (BounceRule(mine, codes="550", text=r"quarantine full"), *TABLE)
    assert classify(reply("550 5.1.1 Quarantine full"), SmtpStage.RCPT, table) is mine
    assert classify(reply("550 5.1.1 no such user"), SmtpStage.RCPT, table).suppresses
    assert classify(reply("250 ok"), SmtpStage.DOT, table).outcome is DeliveryOutcome.DELIVERED


@given(
    st.integers(200, 599),
    st.none() | st.from_regex(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}", fullmatch=True),
    st.text(max_size=300),
    st.sampled_from(SmtpStage),
    st.booleans(),
)
def test_every_answer_at_every_stage_has_a_verdict(
    code: int, enhanced: str | None, text: str, stage: SmtpStage, ours: bool
) -> None:
    """OUT-06, BNC-03: Permanent only from a 5xx about a recipient; a 4xx never bounces."""
    verdict = classify(SmtpReply(code, enhanced, text, ours), stage)
    assert (verdict.outcome is DeliveryOutcome.DELIVERED) == (stage is SmtpStage.DOT and code < 300)
    if code < 500:
        assert verdict.outcome is not DeliveryOutcome.BOUNCED
    if verdict.suppresses:
        assert stage in (SmtpStage.ROUTE, SmtpStage.RCPT, SmtpStage.DATA, SmtpStage.DOT)
        assert enhanced is None or not enhanced[2:].startswith(("6.", "7.", "3.4"))


@pytest.mark.parametrize(
    "piece", ["<", "a@", "user ", "message ", "exceeds ", "ip ", "sender ", "x", "mailbox is "]
)
def test_hostile_texts_are_judged_in_bounded_time(piece: str) -> None:
    """OUT-18: the patterns are linear."""
    started = time.thread_time()
    classify(SmtpReply(550, None, (piece * 2048)[:2048]), SmtpStage.RCPT)
    assert time.thread_time() - started < 0.25
