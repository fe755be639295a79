"""The reply that another reply quotes: gateways wrap the words of the server behind them in their own.

    quoted = quoted_replies.last(reply)     # None where it quotes nothing

Cisco ESA writes `5.1.0 - Unknown address error 550-'5.7.1 …'`, Exchange `#< #5.1.1 smtp;550 5.7.1 …>`,
Exchange Online `Remote Server returned '550 5.7.1 …'`, Postfix `host mx said: 550 …`, Exim
`host mx [192.0.2.1]: 550 …`, sendmail `<<< 550 …`. The gateway tells what it makes of the refusal, and that
is often less than the server said.
"""

from __future__ import annotations

import re
from typing import Final

from pillarbox.mail.smtp.reply import SmtpReply

SHORTEST: Final = 4

_ENHANCED = r"[45]\.[0-9]{1,3}\.[0-9]{1,3}"
_QUOTED = re.compile(
    # What introduces a reply: punctuation, a quotation mark, an arrow, or a word for saying it.
    r"(?:[:;>\])'\"(]|\b(?:error|with|code|was|said|says|returned|replied|responded|answered|smtp)\b)"
    r"[ \t]{0,3}['\"<(#]{0,3}[ \t]{0,3}"
    # Its codes: three digits, the enhanced code, or both; in between Cisco's dash and quotation mark.
    rf"(?:(?<![0-9.])(?P<code>[45][0-9][0-9])(?![0-9.]|-[0-9])"
    rf"[ \t:,#'\"-]{{0,4}}(?P<enhanced>{_ENHANCED}(?![0-9.]))?"
    rf"|(?<![0-9.])(?P<only>{_ENHANCED})(?![0-9.]))"
    r"[ \t]*"
)


def last(reply: SmtpReply) -> SmtpReply | None:
    """Return the innermost reply that the text quotes, with the class of its own code."""
    quoted = None
    for found in _QUOTED.finditer(reply.text):
        quoted = _reply(found, reply.text) or quoted
    return quoted


def _reply(match: re.Match[str], text: str) -> SmtpReply | None:
    """Return the reply that begins here; None for a number alone, and for the code that qmail puts last."""
    rest = text[match.end() :].strip(" '\"<>()#:;,-")
    enhanced = match["enhanced"] or match["only"]
    if len(rest) < SHORTEST and not match["enhanced"]:
        return None
    return SmtpReply(int(match["code"] or f"{enhanced[0]}50"), enhanced, rest)
