"""Texts of drafts and of forwarding."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "drafts.title": "Drafts",
    "drafts.nobody": "No recipient yet",
    "drafts.reply": "Reply",
    "drafts.none": "No draft",
    "drafts.none.text": "What you write and save is kept here until it is sent.",
    "draft.title": "Draft",
    "draft.new": "New message",
    "draft.reply": "Reply",
    "draft.from": "From",
    "draft.more": "Cc and Bcc",
    "draft.subject.hint": "Left empty, it is that of the conversation.",
    "draft.text": "Message",
    "draft.html.hint": "The draft was made with HTML. Recipients see this where their program shows HTML.",
    "draft.save": "Save draft",
    "draft.send": "Send",
    "draft.changed_meanwhile": "Somebody else has changed the draft since you opened it. Your text is still "
    "here: save it again to put it in the place of theirs.",
    "draft.discard": "Discard",
    "draft.discard.title": "Discard this draft?",
    "draft.discard.text": "What is written in it is lost.",
    "draft.wrote": "On {at}, {name} wrote:",
    "forward.title": "Forward",
    "forward.lead": "The message goes out with its attachments, below what you write.",
    "forward.note": "Your words",
    "forward.send": "Send",
    "done.draft_saved": "The draft is saved.",
    "done.draft_discarded": "The draft is discarded.",
    "done.message_sent": "The message is sent.",
}
