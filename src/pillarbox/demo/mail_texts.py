"""The texts of the mail of the demo's shop."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pillarbox.demo.shop import ACCOUNTS, DOMAIN, ORDERS, Customer, Product, euros

STUDIO_LETTERS: Final = "Letters from the studio"
"""The topic of the newsletters."""

SITE: Final = f"https://www.{DOMAIN}"

PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"></head>
<body style="margin:0;background:#f4f1ec;color:#2b2a28;font:16px/1.55 Georgia,serif">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0">
<tr><td align="center" style="padding:28px 12px">
<table role="presentation" width="560" cellpadding="0" cellspacing="0"
 style="max-width:560px;background:#fffdf9;border:1px solid #e4ddd2;border-radius:8px">
<tr><td style="padding:26px 32px 0;font:600 15px/1 Helvetica,Arial,sans-serif;letter-spacing:.14em;
 text-transform:uppercase;color:#35586a">Saltmarsh Pottery</td></tr>
<tr><td style="padding:18px 32px 30px">
<h1 style="font:400 26px/1.25 Georgia,serif;margin:0 0 14px">{title}</h1>
{body}
</td></tr></table>
<p style="font:13px/1.5 Helvetica,Arial,sans-serif;color:#7b756b;margin:18px 0 0">
Saltmarsh Pottery, Deichweg 12, 26506 Norden{footer}</p>
</td></tr></table></body></html>"""

LEAVE: Final = '<br><a href="{{{PILLARBOX_UNSUBSCRIBE_URL}}}" style="color:#7b756b">Stop these letters</a>'


def page(title: str, *parts: str, footer: str = "") -> str:
    """Return the shop's page around these parts."""
    return PAGE.format(title=title, body="\n".join(parts), footer=footer)


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return f'<p style="margin:0 0 14px">{text}</p>'


def button(text: str, url: str) -> str:
    """Return a link that looks like a button."""
    style = (
        "display:inline-block;background:#35586a;color:#fffdf9;padding:11px 20px;border-radius:6px;"
        "font:600 15px/1 Helvetica,Arial,sans-serif;text-decoration:none"
    )
    return f'<p style="margin:20px 0"><a href="{url}" style="{style}">{text}</a></p>'


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Return rows of a label and an amount; the last one is the sum."""
    cell = "padding:8px 0;border-top:1px solid #e4ddd2"
    lines = [
        f'<tr><td style="{cell}">{label}</td><td align="right" style="{cell}">{amount}</td></tr>'
        for label, amount in rows
    ]
    return f'<table role="presentation" width="100%" cellpadding="0" cellspacing="0">{"".join(lines)}</table>'


def tags(kind: str) -> list[dict[str, str]]:
    """Return the tags of a kind of mail."""
    return [{"name": "kind", "value": kind}, {"name": "shop", "value": "web"}]


def order_link(number: int) -> str:
    """Return where an order is shown."""
    return f"{SITE}/orders/SM-{number}"


class Order(NamedTuple):
    """A number, the customer, and the products."""

    number: int
    customer: Customer
    items: Sequence[Product]

    @property
    def total(self) -> int:
        """The sum with postage, in cents."""
        return sum(item.price for item in self.items) + 590


def confirmation(order: Order) -> dict[str, Any]:
    """Return the mail that says that an order has come in, with the invoice."""
    rows = [(item.name, euros(item.price)) for item in order.items]
    rows += [("Postage", euros(590)), ("<strong>Total</strong>", f"<strong>{euros(order.total)}</strong>")]
    return {
        "from": ORDERS,
        "to": order.customer.mailbox,
        "subject": f"We have your order SM-{order.number}",
        "html": page(
            f"Thank you, {order.customer.first}",
            paragraph(
                f"Your order SM-{order.number} is with us. We pack it by hand within two working days."
            ),
            table(rows),
            button("See your order", order_link(order.number)),
            paragraph("Questions? Just answer this mail."),
        ),
        "reply_to": f"hello@{DOMAIN}",
        "tags": tags("order_confirmation"),
        "attachments": [invoice(order)],
    }


def invoice(order: Order) -> dict[str, str]:
    """Return a small PDF as an attachment."""
    lines = [f"Invoice SM-{order.number}", order.customer.full_name.encode("ascii", "replace").decode()]
    lines += [f"{item.name}   {item.price / 100:.2f} EUR" for item in order.items]
    lines.append(f"Total   {order.total / 100:.2f} EUR")
    return {
        "filename": f"invoice-SM-{order.number}.pdf",
        "content": base64.b64encode(pdf(lines)).decode(),
        "content_type": "application/pdf",
    }


def pdf(lines: Sequence[str]) -> bytes:
    """Return a PDF of one page with these lines."""
    shown = " ".join(f"({line.translate(ESCAPES)}) Tj T*" for line in lines)
    stream = f"BT /F1 12 Tf 60 780 Td 18 TL {shown} ET".encode("latin-1", "replace")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start
    return bytes(out)


ESCAPES: Final = str.maketrans({"(": r"\(", ")": r"\)", "\\": r"\\"})

SHIPPED: Final = {
    "name": "Order shipped",
    "alias": "order-shipped",
    "from": ORDERS,
    "subject": "Order SM-{{{ORDER_NUMBER}}} is on its way",
    "html": page(
        "Your parcel is on its way",
        paragraph("Hi {{{CUSTOMER}}}, we have packed order SM-{{{ORDER_NUMBER}}} and handed it to the post."),
        paragraph("It should be with you in two to three days."),
        button("Follow the parcel", SITE + "/track/{{{PARCEL}}}"),
    ),
    "variables": [
        {"key": "CUSTOMER", "type": "string", "fallback_value": "there"},
        {"key": "ORDER_NUMBER", "type": "number"},
        {"key": "PARCEL", "type": "string"},
    ],
}
REVIEW: Final = {
    "name": "Ask for a review",
    "alias": "review-request",
    "from": ORDERS,
    "subject": "How is the {{{PRODUCT}}}?",
    "html": page(
        "A week with new pottery",
        paragraph("Hi {{{CUSTOMER}}}, the {{{PRODUCT}}} has been with you for a week."),
        paragraph(
            "Would you tell others how you like it? Two sentences help us more than any advertisement."
        ),
        button("Write a review", SITE + "/reviews/new?order={{{ORDER_NUMBER}}}"),
    ),
    "variables": [
        {"key": "CUSTOMER", "type": "string", "fallback_value": "there"},
        {"key": "PRODUCT", "type": "string"},
        {"key": "ORDER_NUMBER", "type": "number"},
    ],
}
WORKSHOP: Final = {
    "name": "Workshop booked",
    "alias": "workshop-booked",
    "from": ORDERS,
    "subject": "Your place at “{{{WORKSHOP}}}”",
    "html": page(
        "See you at the wheel",
        paragraph("Hi {{{CUSTOMER}}}, your place at “{{{WORKSHOP}}}” is booked."),
        paragraph("We begin at 18:00 in the studio. Clay, tools and tea are there; bring an apron."),
        button("Add it to your calendar", SITE + "/workshops/calendar"),
    ),
    "variables": [
        {"key": "CUSTOMER", "type": "string", "fallback_value": "there"},
        {"key": "WORKSHOP", "type": "string"},
    ],
}
SPRING_DRAFT: Final = {
    "name": "Kiln opening (draft)",
    "alias": "kiln-opening",
    "from": ORDERS,
    "subject": "The kiln opens on Saturday",
    "html": page(
        "The kiln opens on Saturday", paragraph("Come by between 10 and 16 and take a warm bowl home.")
    ),
}


def password_reset(customer: Customer, token: str) -> dict[str, Any]:
    """Return the mail for a new password."""
    link = f"{SITE}/account/password?token={token}"
    return {
        "from": ACCOUNTS,
        "to": customer.address,
        "subject": "Choose a new password",
        "html": page(
            "A new password",
            paragraph(f"Hi {customer.first}, somebody has asked for a new password for your account."),
            button("Choose a password", link),
            paragraph("The link works for an hour. If that was not you, you need not do anything."),
        ),
        "text": f"Hi {customer.first},\n\nchoose a new password here: {link}\n\nThe link works for an "
        "hour.\n",
        "tags": tags("password_reset"),
    }


def workshop_reminder(customer: Customer, workshop: str) -> dict[str, Any]:
    """Return the mail that reminds of a workshop."""
    return {
        "from": ORDERS,
        "to": customer.mailbox,
        "subject": f"Tomorrow evening: {workshop}",
        "html": page(
            "See you tomorrow",
            paragraph(f"Hi {customer.first}, we look forward to “{workshop}” tomorrow at 18:00."),
            paragraph("If something came up, answer this mail; somebody is waiting for a place."),
        ),
        "reply_to": f"hello@{DOMAIN}",
        "tags": tags("workshop_reminder"),
    }


def from_template(alias: str, customer: Customer, kind: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mail that is made of a template."""
    return {
        "to": customer.address,
        "template": {"id": alias, "variables": dict(variables)},
        "tags": tags(kind),
    }


class Newsletter(NamedTuple):
    """A broadcast of the shop."""

    name: str
    subject: str
    preview: str
    title: str
    paragraphs: Sequence[str]
    link: tuple[str, str]

    @property
    def html(self) -> str:
        """The page, with the link to leave."""
        return page(
            self.title,
            paragraph("Hello {{{FIRST_NAME|there}}},"),
            *map(paragraph, self.paragraphs),
            button(self.link[0], SITE + self.link[1]),
            paragraph(f'More from the studio: <a href="{SITE}/journal">our journal</a>. — Mara'),
            footer=LEAVE,
        )


NEWSLETTERS: Final = (
    Newsletter(
        name="Letter 41: autumn glazes",
        subject="{{{FIRST_NAME|Hello}}}, the autumn glazes are out of the kiln",
        preview="Ash, rust and a blue that we did not plan.",
        title="Out of the kiln",
        paragraphs=(
            "three glazes came out this week: ash, rust, and a blue that we did not plan and now love.",
            "There are forty pieces of each. When they are gone, the recipe changes with the clay.",
        ),
        link=("See the autumn glazes", "/collections/autumn"),
    ),
    Newsletter(
        name="Letter 42: how a mug is made",
        subject="Eleven days for a mug",
        preview="From a lump of clay to your coffee.",
        title="Eleven days for a mug",
        paragraphs=(
            "a mug takes eleven days here: an hour at the wheel, and ten days of waiting.",
            "We wrote down what happens in them, with pictures of every step.",
        ),
        link=("Read the story", "/journal/eleven-days"),
    ),
    Newsletter(
        name="Letter 43: workshops in winter",
        subject="Three evenings at the wheel",
        preview="Workshops for beginners, and one for families.",
        title="Three evenings at the wheel",
        paragraphs=(
            "the studio is warm in winter, so we teach: throwing, glazing, and a Sunday for families.",
            "Eight places each. Readers of this letter book two days before everybody else.",
        ),
        link=("Book a place", "/workshops"),
    ),
    Newsletter(
        name="Letter 44: seconds sale",
        subject="Seconds: small flaws, half the price",
        preview="Only this weekend, only while they last.",
        title="Seconds, this weekend",
        paragraphs=(
            "twice a year we clear the shelf of pieces with a drip, a freckle or a lean.",
            "They hold soup as well as the others and cost half. This weekend, while they last.",
        ),
        link=("Look through the seconds", "/seconds"),
    ),
)
WIN_BACK: Final = Newsletter(
    name="Old customers: we have moved",
    subject="It has been a while: we have a new studio",
    preview="A note to everybody who bought from us at the market.",
    title="We have moved",
    paragraphs=(
        "you left your address with us at a market some years ago. We have a studio and a shop now.",
        "If you would like to hear from us, there is nothing to do. If not, one click and we are quiet.",
    ),
    link=("Visit the new shop", "/"),
)
NEXT_LETTER: Final = Newsletter(
    name="Letter 45: gifts that arrive in time",
    subject="Order by the 12th and it arrives in time",
    preview="What fits into a parcel, and by when.",
    title="Gifts that arrive in time",
    paragraphs=("we pack by hand, so here is the calendar of parcels.", "After the 12th we cannot promise."),
    link=("Choose a gift", "/gifts"),
)
DRAFT_LETTER: Final = Newsletter(
    name="Letter 46: ideas",
    subject="What we learned this year",
    preview="",
    title="What we learned this year",
    paragraphs=("a draft: the kiln, the clay from the new pit, and the bowl that nobody wanted.",),
    link=("Read on", "/journal/this-year"),
)
