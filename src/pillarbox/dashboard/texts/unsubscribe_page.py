"""Texts of the settings of the page to unsubscribe."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "unsubscribe_page.title": "Unsubscribe page",
    "unsubscribe_page.words": "logo, colours, branding, email preferences, opt out",
    "unsubscribe_page.lead": "Recipients see this page behind the unsubscribe link of your mail. "
    "Whatever is empty stays as it is.",
    "unsubscribe_page.heading": "Title",
    "unsubscribe_page.logo": "Address of the logo",
    "unsubscribe_page.logo.hint": "It begins with https://. Each recipient's browser loads the picture from "
    "there.",
    "unsubscribe_page.text": "Text below the title",
    "unsubscribe_page.text.hint": "For instance who writes to the reader, and why.",
    "unsubscribe_page.footer": "Text at the end",
    "unsubscribe_page.footer.hint": "For instance your postal address.",
    "unsubscribe_page.colors": "Colours",
    "unsubscribe_page.page_color": "Page",
    "unsubscribe_page.text_color": "Text",
    "unsubscribe_page.button_color": "Buttons",
    "unsubscribe_page.colors.hint": "As #rrggbb. With a colour of its own the page looks the same by day and "
    "by night.",
    "unsubscribe_page.in_language": "Texts in",
    "unsubscribe_page.in_language.hint": "For readers whose browser asks for this language. Whatever is "
    "empty is as above.",
    "unsubscribe_page.language": "Preview in",
    "unsubscribe_page.save": "Save",
    "unsubscribe_page.try": "Try without saving",
    "unsubscribe_page.preview": "Preview",
    "unsubscribe_page.not_saved": "Nothing was saved: see the fields below.",
    "unsubscribe_page.too_long": "The text is too long.",
    "unsubscribe_page.no_logo": "An address begins with https:// and names a host and a picture.",
    "unsubscribe_page.no_color": "A colour is # and six digits or letters from a to f: #0b57b5.",
    "unsubscribe_page.hard_to_read": "This cannot be read on the page: text needs a contrast of 4.5, buttons "
    "one of 3 (WCAG AA).",
    "unsubscribe_page.topic.1": "Release notes",
    "unsubscribe_page.topic.2": "News of the harbour",
    "done.unsubscribe_page": "The page is saved: recipients see it like this from now on.",
}
