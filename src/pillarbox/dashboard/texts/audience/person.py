"""Texts of the file of a person, and of its erasure."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "person.title": "Personal data",
    "person.words": "privacy, GDPR, data protection, export a person, erase, forget, right to be forgotten",
    "person.lead": "What the team holds about one address, as a file, and its erasure. The address need "
    "not be a contact's.",
    "person.address": "Address",
    "person.look_up": "Look up",
    "person.no_address": "Enter a whole address, such as kim@quay.example.",
    "person.file": "Personal data of an address",
    "person.save": "Save all that is held",
    "person.erase": "Erase",
    "person.erase.title": "Erase {address}?",
    "person.erase.text": "The contact, mail to and from this address, and everything else that names it "
    "goes for good. No mail goes to it any more; a hash of the address is kept for that.",
    "person.typed_wrong": "Type the address to erase it.",
    "person.is.unknown": "This address was not erased.",
    "person.is.in_progress": "This address is being erased.",
    "person.is.waiting": "This address is erased but for mail that is under way.",
    "person.is.completed": "The person with this address was erased. No mail goes to it.",
    "person.erasures": "Erased people",
    "person.erasure": "Erasure",
    "person.status": "Status",
    "person.status.in_progress": "In progress",
    "person.status.waiting": "Waiting",
    "person.status.completed": "Completed",
    "person.waiting": "{count} rows wait for mail and webhooks",
    "person.waiting.singular": "{count} row waits for mail or a webhook",
    "person.rows": "Rows",
    "person.begun": "Begun",
    "person.completed": "Completed",
    "person.allow": "Allow mail again",
    "person.allow.title": "Allow mail to this address again?",
    "person.allow.text": "Do this only if the person asked for mail. What was erased stays erased.",
    "person.none": "Nobody was erased",
    "person.none.text": "Somebody who asks for it is erased on the page of the contact, or here by the "
    "address. The list never shows addresses: none is kept.",
    "done.person_erasing": "The erasure has begun. No mail goes to the address any more.",
    "done.person_allowed": "Mail may go to the address again.",
}
