"""Mail that is made of a template (templates.md 5 to 8): values take the place of placeholders, once.

Everything is rendered when the mail is accepted, but for the links by which recipients unsubscribe: they
differ for each recipient and are filled in as its copy is made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from pillarbox.mail.html.plain_text import text_of
from pillarbox.mail.placeholders.contact_values import (
    ContactValues,
    contact_value,
    is_link,
    is_of_contact,
)
from pillarbox.mail.placeholders.parsing import (
    LinkPlaces,
    ParsedTemplate,
    Placeholder,
    Span,
    filled_at,
    parse,
    placeholders,
)
from pillarbox.mail.placeholders.rendering import (
    EMPTY,
    RenderTarget,
    Value,
    ValueOrigin,
    inline_fallback,
    partly_rendered,
    printed,
    rendered,
    written,
)
from pillarbox.templates.content import TemplateContent
from pillarbox.templates.variables import LONGEST_VALUE, MissingVariable, Scalar, Variable, check_given

LINK: Final = "{{{PILLARBOX_UNSUBSCRIBE_URL}}}"
"""The placeholder of a recipient's link in a text that was made from html."""


@dataclass(frozen=True, slots=True)
class RenderedMail:
    """The parts of a mail. `links` says where the placeholders of recipients' links are; it is null where
    neither part has any, nor anything that looks like one."""

    subject: str | None
    html: str
    text: str | None
    links: LinkPlaces | None


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The values of one mail."""

    variables: Mapping[str, Variable]
    given: Mapping[str, Scalar]
    contact: ContactValues
    foreign: Collection[str]

    def body(self, placeholder: Placeholder) -> Value | None:
        """Return the value of a placeholder in a body; None for a link, which stays."""
        return None if is_link(placeholder.name) else self.subject(placeholder)

    def subject(self, placeholder: Placeholder) -> Value | None:
        """Return the value of a placeholder in a subject; an undeclared one stays. A subject is the same for
        all recipients, so it has no link."""
        name = placeholder.name
        if is_link(name):
            return inline_fallback(placeholder) or EMPTY
        if is_of_contact(name):
            return contact_value(self.contact, placeholder)
        return self._variable(placeholder) if name in self.variables else None

    def _variable(self, placeholder: Placeholder) -> Value | None:
        value = self.given.get(placeholder.name)
        if value is not None:
            origin = ValueOrigin.OTHERS if placeholder.name in self.foreign else ValueOrigin.SENDER
            return Value(printed(value), origin)
        inline = inline_fallback(placeholder)
        if inline is not None:
            return inline
        fallback = self.variables[placeholder.name].fallback_value
        if fallback is None:
            raise MissingVariable(placeholder.name)
        return Value(printed(fallback), ValueOrigin.SENDER)


def is_about_contact(content: TemplateContent) -> bool:
    """Return whether something of the contact that gets the mail stands in it."""
    return any(names_contact(part) for part in (content.html, content.text, content.subject))


def names_contact(part: str | None) -> bool:
    """Return whether it has a placeholder of contacts."""
    return any(is_of_contact(found.name) for found in placeholders(part or ""))


def rendered_size(
    content: TemplateContent,
    given: Mapping[str, Scalar],
    contact: ContactValues,
    field: str,
    foreign: Collection[str] = (),
) -> int:
    """Return the characters that the html and the own text of the mail will have, without rendering them.

    Raises as `render` does. Text that is made of the html is not counted.
    """
    check_given(given, content.variables, field)
    lookup = _Lookup({variable.key: variable for variable in content.variables}, given, contact, foreign)
    size = _part_size(content.html, lookup, RenderTarget.HTML)
    return size if content.text is None else size + _part_size(content.text, lookup, RenderTarget.TEXT)


def weight(content: TemplateContent) -> int:
    """Return an upper bound of the characters that rendering reads and writes, known at once: every
    placeholder with the longest value that there may be."""
    count = sum(
        part.count("{{{") for part in (content.html, content.text, content.subject) if part is not None
    )
    return content.size + count * LONGEST_VALUE


def _part_size(source: str, lookup: _Lookup, part: RenderTarget) -> int:
    """Return the characters of a rendered part; the same placeholder has the same value everywhere."""
    size, known = len(source), dict[str, int]()
    for placeholder in placeholders(source):
        added = known.get(placeholder.source)
        if added is None:
            value = lookup.body(placeholder)
            added = 0 if value is None else len(written(value, part)) - len(placeholder.source)
            known[placeholder.source] = added
        size += added
    return size


def render(
    content: TemplateContent,
    subject: str | None,
    given: Mapping[str, Scalar],
    contact: ContactValues,
    field: str,
    foreign: Collection[str] = (),
) -> RenderedMail:
    """Return the parts of the mail; `subject` is used instead of the template's. 422 for a value of another
    type than declared, and for one that is missing; `field` has the values. `foreign` are the variables whose
    values are not the sender's own."""
    check_given(given, content.variables, field)
    lookup = _Lookup({variable.key: variable for variable in content.variables}, given, contact, foreign)
    html, in_html = partly_rendered(parse(content.html), lookup.body, RenderTarget.HTML)
    if content.text is None:
        text, in_text = _text_of(html, in_html)
    else:
        text, in_text = partly_rendered(parse(content.text), lookup.body, RenderTarget.TEXT)
    wanted = subject or content.subject
    return RenderedMail(
        None if wanted is None else rendered(parse(wanted), lookup.subject, RenderTarget.SUBJECT),
        html,
        text or None,
        LinkPlaces(in_html, in_text) if in_html or in_text or _has_links(html, text) else None,
    )


def _has_links(*parts: str) -> bool:
    """Return whether something in them looks like a link's placeholder."""
    return any(is_link(found.name) for part in parts for found in placeholders(part))


def _text_of(html: str, places: Sequence[Span]) -> tuple[str, tuple[Span, ...]]:
    """Return the text of the html, and where the links are in it. While it is made, a URL that occurs nowhere
    else stands for them: URLs are left alone."""
    if not places:
        return text_of(html), ()
    url = next(url for url in (f"https://link-{n}.invalid" for n in count()) if url not in html)
    texts = text_of(filled_at(html, places, url)).split(url)
    link = Placeholder(start=0, end=0, name="", fallback=None, source=LINK)
    return partly_rendered(
        ParsedTemplate(tuple(texts), (link,) * (len(texts) - 1)), lambda _: None, RenderTarget.TEXT
    )
