"""Forty zones in which one record is not right, and the advice that each must give.

The domains are `harbor.example` and `mail.harbor.example`; `mx.pillar.example` is the installation's mail
host, `track.pillar.example` its tracking host. `{key}` is the key that is expected, `{old}` one that was
replaced; `{half}`, `{lower}`, `{plusless}` are that key after an accident.
"""

from __future__ import annotations

from typing import Final, NamedTuple

KEY: Final = "MIIBIjANBgkq+hkiG9w0BAQEFAAOCAQ8A/" + "xY7+q" * 70 + "wIDAQAB"
OLD: Final = "MIIBIjANBgkq+hkiG9w0BAQEFAAOCAQ8A/" + "bK2/m" * 70 + "wIDAQAB"
OTHER: Final = "MIIBIjANBgkq+hkiG9w0BAQEFAAOCAQ8A/" + "Zr5+d" * 70 + "wIDAQAB"


class Broken(NamedTuple):
    """A zone: which record is looked at, what the zone holds, which advice comes first, and words in it."""

    what: str
    record: str
    zone: str
    code: str
    says: str
    domain: str = "harbor.example"


SPF_TXT = "send.harbor.example TXT"
DKIM = "pillarbox._domainkey.harbor.example TXT"

BROKEN: Final = (
    # Nothing there.
    Broken("nothing at all", "dkim", "", "no_domain", "harbor.example does not exist"),
    Broken("no return path", "spf_mx", "harbor.example A 192.0.2.1", "absent", "name `send` and the value"),
    Broken("no key", "dkim", "harbor.example A 192.0.2.1", "absent", "`pillarbox._domainkey`"),
    Broken("no SPF beside the MX", "spf_txt", "send.harbor.example MX 10 mx.pillar.example", "absent", "TXT"),
    Broken("no MX", "receiving", "harbor.example A 192.0.2.1", "absent", "no MX record at harbor.example"),
    Broken("no tracking", "tracking", "harbor.example A 192.0.2.1", "absent", "type CNAME"),
    # At the wrong name.
    Broken(
        "full name where the zone is added",
        "spf_mx",
        "send.harbor.example.harbor.example MX 10 mx.pillar.example",
        "doubled_name",
        "stands at send.harbor.example.harbor.example: the domain name is in there twice",
    ),
    Broken(
        "doubled name of a key",
        "dkim",
        'pillarbox._domainkey.harbor.example.harbor.example TXT "p={key}"',
        "doubled_name",
        "Enter only `pillarbox._domainkey`",
    ),
    Broken(
        "doubled name of the tracking host",
        "tracking",
        "links.harbor.example.harbor.example CNAME track.pillar.example",
        "doubled_name",
        "Enter only `links`",
    ),
    Broken(
        "doubled name of a subdomain",
        "spf_txt",
        'send.mail.harbor.example.harbor.example TXT "v=spf1 a:mx.pillar.example ~all"',
        "doubled_name",
        "Enter only `send.mail`",
        "mail.harbor.example",
    ),
    Broken(
        "name of the parent zone in the zone of the subdomain",
        "dkim",
        'pillarbox._domainkey.mail.mail.harbor.example TXT "p={key}"',
        "doubled_name",
        "pillarbox._domainkey.mail.mail.harbor.example",
        "mail.harbor.example",
    ),
    Broken(
        "doubled name for receiving",
        "receiving",
        "harbor.example.harbor.example MX 10 mx.pillar.example",
        "doubled_name",
        "harbor.example.harbor.example",
    ),
    Broken(
        "the subdomain was left out",
        "spf_mx",
        "send.harbor.example MX 10 mx.pillar.example",
        "wrong_host",
        "`send.mail` to be entered",
        "mail.harbor.example",
    ),
    Broken(
        "SPF at the domain instead of its return path",
        "spf_txt",
        'harbor.example TXT "v=spf1 a:mx.pillar.example ~all"',
        "wrong_host",
        "at harbor.example instead of send.harbor.example",
    ),
    Broken(
        "a key without _domainkey",
        "dkim",
        'pillarbox.harbor.example TXT "p={key}"',
        "wrong_host",
        "at pillarbox.harbor.example instead",
    ),
    Broken(
        "a key under domainkey without its underscore",
        "dkim",
        'pillarbox.domainkey.harbor.example TXT "p={key}"',
        "wrong_host",
        "pillarbox.domainkey.harbor.example",
    ),
    Broken(
        "MX of the parent for a subdomain",
        "receiving",
        "harbor.example MX 10 mx.pillar.example",
        "wrong_host",
        "at harbor.example instead of mail.harbor.example",
        "mail.harbor.example",
    ),
    Broken(
        "MX host in a TXT record",
        "spf_mx",
        "send.harbor.example TXT mx.pillar.example",
        "wrong_type",
        "Change the type of the record to MX",
    ),
    # The return path's MX.
    Broken(
        "another mail server", "spf_mx", "send.harbor.example MX 10 mx.quay.example", "other_mx", "mx.quay"
    ),
    Broken("null MX of the return path", "spf_mx", "send.harbor.example MX 0 .", "null_mx", "takes no mail"),
    Broken("address in an MX", "spf_mx", "send.harbor.example MX 10 192.0.2.7", "mx_address", "192.0.2.7"),
    Broken(
        "MX without its final dot",
        "spf_mx",
        "send.harbor.example MX 10 mx.pillar.example.harbor.example",
        "target_doubled",
        "`mx.pillar.example.`",
    ),
    Broken(
        "CNAME at the return path",
        "spf_mx",
        "send.harbor.example CNAME shop.harbor.example\nshop.harbor.example A 192.0.2.1",
        "cname_beside",
        "is a CNAME to shop.harbor.example",
    ),
    Broken(
        "CNAME to nowhere",
        "spf_txt",
        "send.harbor.example CNAME gone.quay.example",
        "cname_dangling",
        "gone.quay.example, which does not exist",
    ),
    Broken("wildcard MX", "spf_mx", "*.harbor.example MX 10 mx.quay.example", "wildcard", "wildcard record"),
    # SPF.
    Broken(
        "two SPF records",
        "spf_txt",
        f'{SPF_TXT} "v=spf1 include:quay.example -all"\n{SPF_TXT} "v=spf1 a:mx.pillar.example ~all"',
        "two_spf",
        "`v=spf1 a:mx.pillar.example include:quay.example ~all`",
    ),
    Broken(
        "SPF of somebody else",
        "spf_txt",
        f'{SPF_TXT} "v=spf1 include:quay.example ?all"',
        "spf_mechanism",
        "`v=spf1 a:mx.pillar.example include:quay.example ?all`",
    ),
    Broken(
        "SPF that forbids us",
        "spf_txt",
        f'{SPF_TXT} "v=spf1 -a:mx.pillar.example ~all"',
        "spf_negated",
        "`-a:mx.pillar.example`",
    ),
    Broken(
        "SPF host with the zone added",
        "spf_txt",
        f'{SPF_TXT} "v=spf1 a:mx.pillar.example.harbor.example ~all"',
        "target_doubled",
        "mx.pillar.example.harbor.example",
    ),
    Broken(
        "SPF with its quotes",
        "spf_txt",
        f'{SPF_TXT} "\\"v=spf1 a:mx.pillar.example ~all\\""',
        "quotes_kept",
        "without quotation marks",
    ),
    Broken(
        "SPF with a semicolon",
        "spf_txt",
        f'{SPF_TXT} "v=spf1; a:mx.pillar.example ~all"',
        "spf_version",
        "does not begin with `v=spf1` and a space",
    ),
    Broken(
        "another TXT record only",
        "spf_txt",
        f'{SPF_TXT} "site-verification=4711"',
        "spf_not_there",
        "none of them is an SPF record",
    ),
    # DKIM.
    Broken("key of the rotation before", "dkim", f'{DKIM} "v=DKIM1; k=rsa; p={{old}}"', "old_key", "before"),
    Broken("key cut at 255 characters", "dkim", f'{DKIM} "p={{half}}"', "truncated_key", "253 of "),
    Broken("key in lower case", "dkim", f'{DKIM} "p={{lower}}"', "case_changed", "lower case"),
    Broken("key without its plus signs", "dkim", f'{DKIM} "p={{plusless}}"', "plus_lost", "`+`"),
    Broken("revoked key", "dkim", f'{DKIM} "v=DKIM1; p="', "empty_key", "revoked"),
    Broken(
        "no semicolons",
        "dkim",
        f'{DKIM} "v=DKIM1 k=rsa p={{key}}"',
        "missing_semicolon",
        "A semicolon between",
    ),
    Broken("key without p=", "dkim", f'{DKIM} "{{key}}"', "no_p_tag", "Put `p=` before the key"),
    Broken("key with its quotes", "dkim", f'{DKIM} "\\"p={{key}}\\""', "quotes_kept", "quotation marks"),
    Broken("key with curly quotes", "dkim", f'{DKIM} "“p={{key}}”"', "quotes_kept", "quotation marks"),
    Broken("key of another service", "dkim", f'{DKIM} "v=DKIM1; p={{other}}"', "other_key", "another key"),
    Broken("no key at all", "dkim", f'{DKIM} "v=spf1 -all"', "not_a_key", "no DKIM key"),
    Broken(
        "CNAME of another service at the selector",
        "dkim",
        "pillarbox._domainkey.harbor.example CNAME k.quay.example\nquay.example A 192.0.2.1",
        "cname_dangling",
        "k.quay.example",
    ),
    # Receiving.
    Broken("null MX", "receiving", "harbor.example MX 0 .", "null_mx", "declares with a null MX"),
    Broken(
        "another mail server first",
        "receiving",
        "harbor.example MX 5 mx.quay.example\nharbor.example MX 10 mx.pillar.example",
        "higher_preference_mx",
        "mx.quay.example (5) stands before mx.pillar.example",
    ),
    Broken(
        "another mail server beside",
        "receiving",
        "harbor.example MX 10 mx.quay.example\nharbor.example MX 10 mx.pillar.example",
        "equal_preference_mx",
        "half of the mail",
    ),
    Broken(
        "mail is received elsewhere",
        "receiving",
        "harbor.example MX 1 mx1.quay.example\nharbor.example MX 2 mx2.quay.example",
        "replace_mx",
        "goes to mx1.quay.example, mx2.quay.example",
    ),
    # Tracking.
    Broken(
        "tracking points elsewhere",
        "tracking",
        "links.harbor.example CNAME quay.example",
        "other_target",
        "Change the CNAME to `track.pillar.example`",
    ),
    Broken(
        "tracking with the zone added",
        "tracking",
        "links.harbor.example CNAME track.pillar.example.harbor.example",
        "target_doubled",
        "`track.pillar.example.`",
    ),
    Broken(
        "tracking behind a proxy",
        "tracking",
        "links.harbor.example A 203.0.113.9\ntrack.pillar.example A 192.0.2.80",
        "address_instead",
        "203.0.113.9",
    ),
    # DNS itself.
    Broken(
        "servers that fail", "dkim", "pillarbox._domainkey.harbor.example ! SERVFAIL", "trouble", "SERVFAIL"
    ),
    Broken("servers that refuse", "spf_mx", "send.harbor.example ! REFUSED", "trouble", "REFUSED"),
    Broken(
        "CNAME records in a circle",
        "spf_mx",
        "send.harbor.example CNAME a.harbor.example\na.harbor.example CNAME send.harbor.example",
        "trouble",
        "a circle",
    ),
)

UNWISE: Final = (
    Broken(
        "two keys",
        "dkim",
        f'{DKIM} "p={{key}}"\n{DKIM} "p={{other}}"',
        "two_keys",
        "There are 2 keys",
    ),
    Broken("a key of another type", "dkim", f'{DKIM} "k=ed25519; p={{key}}"', "dkim_tag", "`k=ed25519`"),
    Broken("escaped semicolons", "dkim", f'{DKIM} "v=DKIM1\\\\; p={{key}}"', "dkim_tag", "v=DKIM1"),
    Broken(
        "a mechanism after all",
        "spf_txt",
        f'{SPF_TXT} "v=spf1 ~all a:mx.pillar.example"',
        "spf_after_all",
        "before `all`",
    ),
)
"""Records that count, with advice all the same."""


def script_of(case: Broken) -> str:
    """Return the zone as a script for `kit.dns_server`."""
    return case.zone.format(
        key=KEY, old=OLD, other=OTHER, half=KEY[:253], lower=KEY.lower(), plusless=KEY.replace("+", "")
    )
