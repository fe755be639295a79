"""Sentences of the API and of commands that screens show: they are recognised by these texts.

The English ones are those of the slices that say them. A screen in another language finds the text that a
sentence was made from, and says the same with the same values.
"""

from __future__ import annotations

from typing import Final

from pillarbox.domains.dns.advice_table import ADVICE
from pillarbox.domains.dns.zone import KEY_NOTES, TRACKING_NOTE
from pillarbox.domains.keys import KeyState

TEXTS: Final[dict[str, str]] = {
    **{f"advice.{code}.problem": words.problem for code, words in ADVICE.items()},
    **{f"advice.{code}.step": words.step for code, words in ADVICE.items()},
    "record_note.tracking": TRACKING_NOTE,
    "record_note.waiting": KEY_NOTES[KeyState.WAITING],
    "record_note.retiring": KEY_NOTES[KeyState.RETIRING],
    "record_note.claim": "proves the claim; the domain's own records follow once it is completed",
    "record_note.dmarc": "recommended; if you have one already, keep yours",
    "insight.unsigned": "No verified domain of this team signs for {host}, so DMARC cannot pass. Verify the "
    "domain.",
    "insight.signed": "DKIM signs for {host}, the domain in From, so DMARC is aligned.",
    "insight.own_links": "Every link leads to a host of {domain}.",
    "insight.foreign_links": "Links lead to hosts of other domains than the sender's: {hosts}. Filters trust "
    "links to the sender's own domain more.",
    "insight.true_links": "No link shows another host than it leads to.",
    "insight.false_links": "The text of a link names another host: {links}. Filters take that for phishing.",
    "insight.small_html": "The HTML has {size} kB: Gmail shows all of it.",
    "insight.large_html": "The HTML has {size} kB: Gmail shows the first 102 kB, and hides the rest behind a "
    "link.",
    "insight.text": "There is a text part, for programs and readers without HTML.",
    "insight.no_text": "There is no text part. Add one: filters expect it beside HTML, and some readers need "
    "it.",
    "insight.image_texts": "Every image has an alternative text.",
    "insight.no_image_texts": "{missing} of {total} images have no alternative text (`alt`): readers who do "
    "not load images see nothing there.",
    "insight.no_reply": "The sender {address} says that nobody reads answers. An address that takes them "
    "builds trust.",
    "insight.takes_replies": "The sender's address does not refuse answers.",
    "insight.own_unsubscribe": "The headers of one-click unsubscribe are added by themselves.",
    "insight.no_unsubscribe": "This is bulk mail without List-Unsubscribe, which Gmail and Yahoo ask for. "
    "Use a topic or a broadcast, or set the header.",
    "insight.no_one_click": "List-Unsubscribe is there without List-Unsubscribe-Post, so there is no "
    "one-click unsubscribe.",
    "insight.one_click": "The headers of one-click unsubscribe are there.",
    "waiting.silent": "The process that held it went silent; another one takes it over.",
    "waiting.working": "A delivery process is working on it.",
    "waiting.fetching": "Waits for an attachment that is fetched from its URL.",
    "waiting.scheduled": "Scheduled for {time}.",
    "waiting.paused": "Held back by the operator.",
    "waiting.quarantined": "{reason} `queue retry` lets it go once more.",
    "waiting.due": "Due; waits for a delivery process.",
    "waiting.until": "Waits until {time}.",
    "waiting.count.due": "{number} due",
    "waiting.count.working": "{number} being worked on",
    "waiting.count.retry": "{number} to be tried again",
    "waiting.count.scheduled": "{number} scheduled",
    "waiting.count.fetching": "{number} waiting for an attachment",
    "waiting.count.paused": "{number} paused",
    "waiting.count.quarantined": "{number} put aside",
}
"""The sentences, with words in braces where they have values."""
