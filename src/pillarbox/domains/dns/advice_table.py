"""The advice on records, in the words that people read: what is the case, and what to do next."""

from __future__ import annotations

from typing import Final, NamedTuple


class AdviceText(NamedTuple):
    """Two sentences with places to fill in."""

    problem: str
    step: str


_PUBLISH = "Publish a record of type {type} with the name `{shown}` and the value `{value}`."

ADVICE: Final[dict[str, AdviceText]] = {
    "absent": AdviceText(
        "There is no {type} record at {owner}.",
        _PUBLISH + " New records can take up to an hour to be seen.",
    ),
    "no_domain": AdviceText(
        "The domain {domain} does not exist in DNS.",
        "Check the spelling of the name and that the domain is registered and delegated to name servers.",
    ),
    "name_too_long": AdviceText(
        "The record cannot exist: its name would be longer than the 253 characters that DNS allows.",
        "Use a shorter domain name.",
    ),
    "doubled_name": AdviceText(
        "The record stands at {place}: the domain name is in there twice.",
        "Your DNS provider adds the domain to what you enter. Enter only `{shown}` as the name.",
    ),
    "wrong_host": AdviceText(
        "The record stands at {place} instead of {owner}.",
        "Change its name so that it stands at {owner}; most providers want `{shown}` to be entered.",
    ),
    "wrong_type": AdviceText(
        "The value stands at {owner} in a TXT record.",
        "Change the type of the record to {type}.",
    ),
    "wildcard": AdviceText(
        "What is found at {owner} comes from a wildcard record (`*`); nothing of its own stands there.",
        _PUBLISH + " A record of its own goes before the wildcard.",
    ),
    "cname_beside": AdviceText(
        "{owner} is a CNAME to {place}, and beside a CNAME no other record counts.",
        "Remove the CNAME at {owner}, or choose another name for what it is needed for.",
    ),
    "cname_dangling": AdviceText(
        "{owner} is a CNAME to {place}, which does not exist.",
        "Remove the CNAME at {owner}, then publish a record of type {type} with the value `{value}` there.",
    ),
    "quotes_kept": AdviceText(
        "The quotation marks became part of the value: {found}.",
        "Enter the value without quotation marks; your DNS provider adds those that DNS needs.",
    ),
    "target_doubled": AdviceText(
        "The record points to {found}: your DNS provider has added the domain to the value.",
        "Enter the value with a dot at its end: `{target}.`",
    ),
    "two_spf": AdviceText(
        "There are {count} SPF records at {owner}; receivers then heed none of them.",
        "Keep one record and move everything into it: `{merged}`.",
    ),
    "spf_mechanism": AdviceText(
        "The SPF record at {owner} lacks {missing}.",
        "Change the record to `{merged}`.",
    ),
    "spf_negated": AdviceText(
        "The SPF record names {missing} with a qualifier that forbids it: {found}.",
        "Remove the character before the mechanism: `{merged}`.",
    ),
    "spf_version": AdviceText(
        "The value does not begin with `v=spf1` and a space: {found}.",
        "Enter the value exactly as it is shown: `{value}`.",
    ),
    "spf_not_there": AdviceText(
        "There are TXT records at {owner}, but none of them is an SPF record: {found}.",
        "Add one more TXT record with the value `{value}`.",
    ),
    "spf_after_all": AdviceText(
        "The SPF record names {missing} after `all`, where receivers do not read on.",
        "Move it before `all`: `{merged}`.",
    ),
    "old_key": AdviceText(
        "The record holds the key that the selector had before.",
        "Replace the whole value with the present key.",
    ),
    "truncated_key": AdviceText(
        "The key is cut off: {length} of {whole} characters arrived.",
        "Enter the whole value. Where at most 255 characters are allowed, enter it as two quoted strings.",
    ),
    "case_changed": AdviceText(
        "The letters of the key were all changed to {case}.",
        "Enter the value again exactly as it is shown; upper and lower case count.",
    ),
    "plus_lost": AdviceText(
        "The `+` characters of the key were lost on the way.",
        "Enter the value again exactly as it is shown, and compare the `+` characters.",
    ),
    "empty_key": AdviceText(
        "The record has no key in it (`p=` with nothing behind it), which says that the key is revoked.",
        "Enter the whole value as it is shown.",
    ),
    "missing_semicolon": AdviceText(
        "A semicolon between the parts of the value is missing: {found}.",
        "Enter the value exactly as it is shown: `p=` and the key, nothing else is needed.",
    ),
    "no_p_tag": AdviceText(
        "The key stands there without `p=` before it.",
        "Put `p=` before the key.",
    ),
    "other_key": AdviceText(
        "The record holds another key than ours.",
        "Replace the whole value with the one that is shown. If another service uses this selector, its "
        "record must go elsewhere.",
    ),
    "not_a_key": AdviceText(
        "The TXT record at {owner} is no DKIM key: {found}.",
        "Replace its value with the one that is shown.",
    ),
    "two_keys": AdviceText(
        "There are {count} keys at {owner}; receivers may take the wrong one.",
        "Remove every other TXT record at {owner}.",
    ),
    "dkim_tag": AdviceText(
        "The key is right, but receivers may ignore it because of `{found}`.",
        "Enter the value exactly as it is shown: `p=` and the key, nothing else is needed.",
    ),
    "null_mx": AdviceText(
        "{owner} declares with a null MX (`0 .`) that it takes no mail.",
        "Remove that record and publish an MX record with the value `{value}`.",
    ),
    "mx_address": AdviceText(
        "The MX record holds an IP address ({found}); it must hold a host name.",
        "Change its value to `{value}`.",
    ),
    "other_mx": AdviceText(
        "The MX record of {owner} names {found}, not {value}.",
        "Publish an MX record with the value `{value}` and the priority 10.",
    ),
    "replace_mx": AdviceText(
        "Mail for {owner} goes to {found}.",
        "To receive here, remove those MX records and publish one with the value `{value}` and the priority "
        "10. To keep the present mailboxes, use a subdomain for receiving.",
    ),
    "higher_preference_mx": AdviceText(
        "{found} stands before {value}: the lowest number is tried first.",
        "Remove the other MX records, or give {value} a lower number than all of them.",
    ),
    "equal_preference_mx": AdviceText(
        "{found} has the same number as {value}, so half of the mail goes there.",
        "Remove the other MX records, or give {value} a lower number than all of them.",
    ),
    "other_target": AdviceText(
        "{owner} is a CNAME to {found}, not to {value}.",
        "Change the CNAME to `{value}`.",
    ),
    "address_instead": AdviceText(
        "{owner} has addresses of its own ({found}) and is no CNAME.",
        "Remove its A and AAAA records and publish a CNAME with the value `{value}`. A provider's proxy in "
        "front of the name must be switched off.",
    ),
    "trouble": AdviceText(
        "DNS gave no answer about {owner}: {found}.",
        "Nothing has changed because of that. If it lasts, have the domain's name servers checked.",
    ),
    "owned_elsewhere": AdviceText(
        "Another team of this installation has shown that {domain} is its own.",
        "If the domain is yours, claim it.",
    ),
}
