"""Patterns of mail servers' texts by their meaning, for the table of `replies`.

Each pattern is searched in lower-case text without addresses. All are linear: alternatives of plain
words with bounded gaps. A pattern that leads to Permanent (the last two) must leave no doubt.
"""

from __future__ import annotations

from typing import Final

from pillarbox.mail.reports import reply_languages


def _any(*alternatives: str) -> str:
    return "|".join(f"(?:{alternative})" for alternative in alternatives)


GREYLISTED: Final = _any(
    r"gr[ae]y ?-?list",
    r"\bpostgrey\b",
    r"try again in [0-9]+ (?:second|minute)",
    r"not yet authori[sz]ed to deliver mail",
)

INBOX_RATE: Final = _any(
    r"receiving (?:mail|email|messages) (?:too quickly|at a rate)",
    r"recipient.{0,20} (?:rate|receiving) limit exceeded",
    r"too many messages (?:for|to) this (?:recipient|mailbox)",
)

SLOW_DOWN: Final = _any(
    r"rate.?limit",
    r"throttl",
    r"too (?:many|much) (?:concurrent |simultaneous |open |smtp )*"
    r"(?:connection|session|message|mail|email|traffic)",
    r"too fast",
    r"(?:connection|message|sending|mail) (?:rate|frequency)",
    r"unusual (?:rate|traffic)",
    r"deferred due to (?:unexpected volume|user complaints)",
    r"temporarily (?:rate limited|deferred|blocked)",
    r"(?:reduce|lower) (?:the|your) (?:rate|sending|number)",
    r"concurrent connection",
)

BLOCKED: Final = _any(
    r"spamhaus|spamcop|barracudacentral|\bsorbs\b|uceprotect|abuseat|mailspike|invaluement",
    r"senderscore|senderbase|talosintelligence",
    r"\bdns-?[bw]l\b|\brbls?\b",
    r"(?:block|black|deny) ?-?list",
    r"blocked using\b",
    r"\b(?:ip|host|client|server|connection|network)s?\b.{0,60}\b(?:blocked|banned|listed|reputation)\b",
    r"\b(?:ip|client|connection)s?\b.{0,40}\b(?:rejected|refused|denied)\b",
    r"\blisted (?:in|on|at|by)\b",
    r"\b(?:poor|low|bad|sender|ip|domain|dns|network) reputation",
    r"reputation (?:score|of)",
    r"banned sending",
    r"\b(?:ptr|reverse dns|reverse lookup|rdns|reverse (?:host ?name|mapping|record)s?)\b",
    r"\b(?:client|connecting|sending|originating|your) (?:ip|address|host|hostname|server|system|mta)"
    r"(?: ?name)?\b.{0,60}\b(?:not|unknown|invalid|unable|fail\w*|resolve|exist)",
    r"\bunknown (?:client|helo|host ?name)\b|\bfrom (?:an )?unknown (?:host|domain|client)",
    r"\b(?:unknown (?:host|domain)|(?:host|domain)(?: name)? (?:is )?(?:unknown|not found))\b"
    r"[^\[]{0,60}\[(?:ipv6:)?[0-9a-f.:]{7,45}\]",
    r"\bcertificate\b",
    r"cannot find your (?:reverse )?hostname",
    r"(?:client )?host rejected",
    r"\b(?:helo|ehlo)\b.{0,60}\b(?:invalid|rejected|refused|found|unknown|not|exist|resolve)",
    r"not accepted from (?:this|your) (?:ip|host|network)",
    r"dynamic (?:ip|address|pool)|residential ip",
)

STOPPED: Final = _any(
    r"\b(?:was|is|been|are|were) (?:temporarily |currently )?(?:blocked|banned)\b",
    r"\bblocked (?:by|due|for|because|from|at)\b|\bblocked$|^blocked\b|:\s?blocked\b",
)

INACTIVE: Final = (
    r"\b(?:mailbox|account|user|recipient|address)\b.{0,30}"
    r"\b(?:blocked|disabled|suspended|closed|deactivated) (?:due to|because of|for) (?:\w+ )?inactivity"
)
"""A mailbox that nobody has used for long: not a sender that is blocked."""

SENDER: Final = _any(
    r"\bsend(?:er|ing)(?:s|'s)?\b.{0,60}"
    r"\b(?:reject|verif|denied|refus|unknown|invalid|not|exist|resolve|suspend|disabled|must|no )",
    r"\bverif\w* .{0,30}\bsender\b|domain of (?:the )?sender|\b(?:invalid|unknown|bad|forged|spoofed) sender",
    r"return.?path|envelope (?:sender|from)",
    r"\bmail from\b.{0,60}\b(?:reject|denied|refus|exist|resolve|not|invalid)",
    r"\bfrom[: ]{1,2}(?:address|header|domain|field|line)|\breply-?to\b|header[. -]from",
    r"\b(?:originator|author)(?:'s)?\b.{0,60}\b(?:reject|denied|unknown|invalid|not|exist|disabled)",
    r"\b(?:allowed|permitted|approved|authori[sz]ed) senders?\b|\blist of senders\b",
    r"\b(?:outgoing|outbound|submission|submit\w*)\b.{0,40}\b(?:disabled|suspended|blocked|denied|not|limit)",
    r"\b(?:user|account|mailbox)\b.{0,40}\b(?:disabled|suspended|blocked|allowed|permitted|authori[sz]ed)\b"
    r".{0,15}\b(?:from|for|to) (?:send|submit|relay|out|smtp|us)",
    r"\byou(?:'re| are)? (?:have been |are )?(?:not|unknown|banned|no longer)\b",
    r"\b(?:sending|originating|author) domain\b|\bbounce address\b|\bsender (?:table|map|access)\b",
    r"\bmail from (?:this|your|the) (?:user|account|address|domain|host|server)\b",
    r"\b(?:external|unknown|outside|unauthori[sz]ed|untrusted) (?:senders?|sources?|origins?|addresses)\b",
    r"(?:because of|due to|for) (?:abus|spamming)",
    r"call-?(?:out|back)\b",
    r"back.?scatter",
    r"\byour (?:email |e-mail |mail |smtp |user |daily |hourly |monthly |sending |relay )*"
    r"(?:account|address|domain|ip|server|host|mailbox|plan|subscription|quota|limit)\b",
)

HEADER: Final = _any(
    r"\b(?:invalid|bad|missing|malformed|duplicate|illegal|no)\b.{0,40}\bheaders?\b",
    r"\bheaders?\b.{0,40}\b(?:invalid|bad|missing|malformed|not|unknown|illegal)\b",
    r"\bmessage.?id\b.{0,15}\b(?:invalid|missing|malformed|not|unknown)\b|\buser.agent\b",
    r"\b(?:url|link)\b.{0,30}\b(?:not|unknown|invalid|exist)|\b(?:in|of) (?:a |the )?(?:url|link|body)\b",
)
"""Faults of the mail itself; addresses and domains in it are not the recipient's."""

SENDER_OTHERWISE: Final = reply_languages.SENDER
"""The same in other languages."""

RELAYING: Final = _any(
    r"\brelay(?:ing|ed)?\b(?! recipient).{0,40}\b(?:denied|not|prohibit\w*|disallow\w*"
    r"|refus\w*|reject\w*|disabled)",
    r"\b(?:unable|cannot|can't|won't|will not|do not|don't|not (?:allowed|permitted|authori[sz]ed|able)) "
    r"(?:to )?relay",
    r"rcpthosts",
)

AUTHENTICATION: Final = _any(
    r"\b(?:spf|dkim(?!-sig)|dmarc|domainkeys?)\b",
    r"\b(?:un)?authenticat|\bsmtp.auth\b|\blog ?in\b|password|credential",
)

OUT_OF_ORDER: Final = _any(
    r"connection (?:refused|timed out|reset|closed)|(?:operation|session|request) timed out|no route to host",
    r"lost connection|loops? back|mail loop|(?:mail|routing) loop|too many hops|hop count|message is looping",
    r"\bldap\b|database (?:error|unavailable|down|failure)|lookup (?:failure|failed|error)",
    r"internal (?:server )?error|configuration error|temporar(?:y|ily)|try (?:again )?later|again later",
)
"""A failure of the server, or something that passes: whatever code stands beside it, no address is bad."""

TOO_MANY_RECIPIENTS: Final = r"too many (?:recipient|rcpt|address)"

TOO_LARGE: Final = _any(
    r"(?:message|mail|email|content|header|body|attachment|data|size) .{0,30}too (?:large|big|long)",
    r"(?:message|mail|email|body|attachment|content)(?:'s)? (?:size|length)"
    r".{0,40}(?:exceed|limit|maximum|above)",
    r"exceed\w*.{0,50}\b(?:message|mail|maximum|fixed|allowed|permitted)\b.{0,20}\bsize",
    r"exceed\w*.{0,20}\bsize limit|(?<!mailbox )size limit (?:exceeded|for)",
    r"\bmax(?:imum)? (?:message )?size\b",
    r"larger than\b.{0,40}\b(?:limit|allowed|permitted|maximum|accept|bytes|takes)",
    r"too large\b|message too (?:big|long)",
)

MAILBOX_EXCEEDS: Final = (
    r"(?:mailbox|inbox|mail ?box|mail ?folder|maildir)(?:'s)? (?:size |has |already |usage )*exceed"
)
"""A mailbox that is too large, not a message."""

MAILBOX_FULL: Final = _any(
    MAILBOX_EXCEEDS,
    reply_languages.MAILBOX_FULL,
    r"over ?-?quota|quota (?:is |has been |limit )*(?:exceed|full|reached|violat)",
    r"(?:exceed|over|out of|reached|past|above)\w*.{0,30}"
    r"\b(?:quota|storage|disk space|mailbox limit|allocation)\b",
    r"(?:mailbox|storage|disk|account)(?:'s)? "
    r"(?:size |space |usage |limit |allocation |is |has |been )*exceed",
    r"(?:mailbox|inbox|mail ?box|mail ?folder|maildir|disk|spool|storage|account|user|recipient) "
    r"(?:is |are |has |was |almost |currently )*(?:full\b|overdrawn)",
    r"insufficient (?:system storage|disk space|storage|space)|not enough (?:storage|space|disk)",
    r"no (?:more |free )?(?:space|room)\b.{0,30}\b(?:mailbox|inbox|disk|device|user)",
    r"full mailbox|mailbox(?: size)? limit",
)

ATTACHMENT: Final = _any(
    r"\battach(?:ment|ed (?:file|document))s?\b.{0,60}"
    r"\b(?:reject|block|not|refus|illegal|prohibit|forbid|forbidden|disallow|banned|virus|danger|guideline|remov|type|"
    r"filter|restrict|unaccept|quarantin|encrypt|password|polic|name|extension)",
    r"\b(?:reject|block|illegal|prohibit|forbid|forbidden|disallow|banned|danger|bad|invalid|unsafe|unaccept|refus|"
    r"suspicious|infected|contain|executable|unauthori|unsupport|too many|encrypted|zip|no)\w*.{0,40}"
    r"\battach(?:ment|ed (?:file|document))",
    r"(?:file|mime) ?-?(?:type|name|extension)s?\b",
    r"\b(?:executable|exe|zip|archive|macro)\b.{0,60}\b(?:block|reject|allow|accept|permit|forbid|banned)",
    r"banned (?:file|content|extension)",
)

CONTENT: Final = _any(
    r"\bspam\b(?! ?trap)|spam(?:my|-like|message|assassin|score)",
    r"unsolicited|\bjunk\b|bulk (?:mail|email)",
    r"virus|malware|malicious|phish|infected",
    r"suspicious (?:content|message|link|url)",
    r"\b(?:content|body|subject|url|link|html)\b.{0,30}"
    r"\b(?:rejected|refused|blocked|unacceptable|forbidden|not accepted|violat)",
    r"(?:rejected|refused|blocked|denied)\b.{0,40}\bcontent",
    r"content (?:filter|polic|restriction|rejected|presents)|potential security issue",
    r"illegal (?:header|content)",
    r"\b(?:rfc ?)?[52]822\b",
    r"(?:multiple|duplicate|missing|malformed|bad|invalid) .{0,12}"
    r"\b(?:from|to|header|headers|message-?id|date)\b",
    r"bare (?:cr|lf|line ?feed)",
)

POLICY: Final = _any(
    r"relay|rcpthosts",
    r"\bpolic(?:y|ies)\b",
    r"\bspf\b|\bdkim\b|\bdmarc\b",
    r"authenticat",
    r"(?:access|permission|authori[sz]ation|delivery|message|service) (?:is |was )?denied",
    r"not (?:authori[sz]ed|permitted|allowed|accepting)",
    r"administrative(?:ly)? (?:prohibit|reject|denied)",
    r"prohibited|restrict",
    r"(?:refused|rejected) by (?:the )?(?:recipient|user|administrator|system)",
    r"rejected for (?:security|policy|local)",
    r"only accepts? (?:mail|messages|email) from",
    r"starttls|encryption (?:is )?(?:required|needed)",
    r"blocked senders?\b|spam ?trap|honeypot",
)

BAD_DOMAIN: Final = _any(
    r"no such (?:domain|host)\b|unknown (?:domain|host)\b",
    r"\b(?:domain|host)(?: name)? (?:is |was )?(?:not found|unknown|does not exist|doesn't exist)",
    r"domain (?:does not|doesn't) (?:accept|receive) (?:e-?mail|mail|messages)",
    r"dns domain [^\s]{1,253} does not exist",
    r"null mx\b|no mx or a records",
)

INVALID_DOMAIN: Final = (
    r"(?:invalid|bad|illegal|nonexistent|non-existent) (?:mail |recipient )?(?:domain|host)\b"
)
"""Counts only beside a code that says whose domain it is."""

_WHO: Final = (
    r"\b(?:users?|user ?ids?|recipients?|mailbox|mail box|account|address|addressee|"
    r"person|inbox|username|alias|local part)"
)
_GLUE: Final = (
    r"(?:[^a-z0-9]{1,4}(?:is|was|has|been|are|have|address|name|account|mailbox|user|email|rejected|"
    r"x|you|tried|to|reach|that|the|here|specified|currently|now))"
)
_MISSING: Final = (
    r"(?:unknown|not found|not known|non-?existent|not valid|not local|not listed|no longer exists?|"
    r"(?:does not|doesn't|do not|don't|did not|not) exist|unknown or illegal|"
    r"(?:could not|couldn't|cannot|can't|wasn't) be found|wasn't found|was not found)"
)
_UNUSABLE: Final = (
    r"(?:invalid|disabled|deleted|closed|deactivated|discontinued|inactive|terminated|expired|undeliverable|"
    r"no longer (?:valid|available|active|in use|used|with us|employed|on (?:this|our) (?:server|system)))"
)

BAD_ADDRESS: Final = _any(
    rf"{_WHO}{_GLUE}{{0,8}}[^a-z0-9]{{1,6}}(?:{_MISSING}|{_UNUSABLE})\b",
    rf"{_WHO}[^a-z0-9]{{1,4}}[^\s]{{1,64}}[^a-z0-9]{{1,4}}(?:is |was )?{_MISSING}\b",
    r"\b(?:unknown|invalid|non-?existent|bad|no such|undeliverable|incorrect) "
    r"(?:local |email |e-mail |virtual |destination |mail |final |delivery )*"
    r"(?:user|user ?id|recipient|mailbox|account|address|addressee|person|local.?part|alias)\b",
    r"no (?:mailbox|user|account|one|recipient|person|such \w{1,20})\b.{0,20}"
    r"\b(?:by|with) that (?:name|address)",
    r"no mailbox (?:here|found)|there is no one (?:at|by) th",
    r"(?:does not|doesn't) have (?:an?|any|such) .{0,40}\b(?:account|mailbox|user|e-?mail)\b",
    r"not our customer|not a (?:known|valid|local|current|registered) "
    r"(?:user|mailbox|recipient|account|subscriber)",
    r"recipnotfound|recipientnotfound",
    r"unrout(?:e)?able address|address (?:is )?unrout",
    r"mailbox unavailable \(s2017062302\)",
    r"no longer works (?:here|for|at)|left the (?:company|organi[sz]ation)|user has moved|mailbox has moved",
    r"not (?:on|in) (?:our|the|my) "
    r"(?:(?:user|address|recipient|account|mailbox|alias) (?:list|table|database)|(?:\w+ )?directory)",
    rf"{_WHO}[^a-z0-9]{{1,4}}(?:x |is |was ){{0,3}}not (?:on|in) (?:our|the|my) (?:list|table|database)",
    reply_languages.BAD_ADDRESS,
)
