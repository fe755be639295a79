"""Mail that customers write to the demo's shop, and what the shop answers."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from pillarbox.mail.message import headers
from pillarbox.mail.message.encoded_words import encode


class Letter(NamedTuple):
    """A conversation: turns of the customer and the shop alternate. `labels` are put on its thread; it ends
    in `folder`, read or not."""

    day: int
    hour: float
    subject: str
    turns: tuple[str, ...]
    labels: tuple[str, ...] = ()
    folder: str = "inbox"
    is_read: bool = True
    is_assigned: bool = False


LETTERS: Final = (
    Letter(
        day=1,
        hour=9.4,
        subject="Can the tidal mug go in the dishwasher?",
        turns=(
            "Hello,\n\nI am thinking of a set of six tidal mugs. Do they survive a dishwasher every "
            "day?\n\nThank you!",
            "Hi {first},\n\nthey do: we fire them at 1260 °C, and ours at home has been through some "
            "thousand "
            "washes. The unglazed foot gets a little lighter with time.\n\nWarm regards,\nMara",
            "Perfect, then I will order six. Thanks for the quick answer!",
        ),
        labels=("Product question",),
        folder="archive",
    ),
    Letter(
        day=2,
        hour=13.1,
        subject="Parcel has not moved for four days",
        turns=(
            "Hi,\n\nmy parcel has been in the sorting centre since Friday. Is it lost? It is a birthday "
            "present.",
            "Hi {first},\n\nI am sorry. I have asked the post and put a second one aside for you. If "
            "yours has not "
            "moved by tomorrow noon, I send it by express.\n\nMara",
            "It arrived this morning. Thank you for looking after it!",
            "Wonderful. Happy birthday to whom it is for!\n\nMara",
        ),
        labels=("Delivery",),
        folder="archive",
    ),
    Letter(
        day=4,
        hour=17.8,
        subject="One plate arrived broken",
        turns=(
            "Hello Saltmarsh,\n\none of the four dune plates has a crack from the rim to the middle. "
            "The box looked "
            "fine. What can we do?\n\nBest wishes",
            "Hi {first},\n\nplease keep the plate, use it under a plant, and a new one leaves today. "
            "There is nothing "
            "to send back.\n\nMara",
            "That is generous. I will tell my friends about you.",
        ),
        labels=("Return", "Urgent"),
        folder="archive",
    ),
    Letter(
        day=6,
        hour=20.2,
        subject="Invoice with our company's address",
        turns=(
            "Good evening,\n\ncould you put our company's name and VAT number on the invoice of last "
            "week?\n\n"
            "Studio Nord GmbH\nDE 811 204 775",
            "Hi {first},\n\nof course; the corrected invoice is attached to your order in the shop "
            "now.\n\nMara",
        ),
        labels=("Invoice",),
        folder="archive",
    ),
    Letter(
        day=9,
        hour=10.6,
        subject="Do you ship to Norway?",
        turns=(
            "Hi! Do you ship to Norway, and who pays the customs?",
            "Hi {first},\n\nwe do, on Mondays. Customs are on your side; for orders below 3000 NOK "
            "there are none.\n\nMara",
        ),
        labels=("Product question", "Delivery"),
    ),
    Letter(
        day=12,
        hour=15.3,
        subject="Re: Your place at “Glazing evening”",
        turns=(
            "Dear Mara,\n\nI cannot come on Thursday. May my sister take my place?",
            "Hi {first},\n\nshe may. Tell me her name for the list.\n\nMara",
            "Her name is Runa. She is very excited.",
        ),
        labels=("Workshop",),
        folder="archive",
    ),
    Letter(
        day=15,
        hour=8.9,
        subject="A wedding list",
        turns=(
            "Hello,\n\nwe are getting married in May and would love to have a list of your pottery for "
            "our guests. "
            "Is that something you do? We think of twelve place settings.\n\nAll the best",
            "Hi {first},\n\ncongratulations! We do. I have put your name on a list; you can choose "
            "pieces until the end "
            "of January, and guests pay for single ones.\n\nMara",
            "That is lovely. Two questions: can we mix ash and indigo, and do you engrave a date under "
            "the foot?",
        ),
        labels=("Urgent",),
        folder="inbox",
        is_read=True,
        is_assigned=True,
    ),
    Letter(
        day=18,
        hour=12.0,
        subject="Wrong colour in the parcel",
        turns=(
            "Hi, I ordered the speckled mug and got the indigo one. It is pretty, but it is not for me.",
            "Hi {first},\n\nmy mistake, I packed late that evening. The right one leaves tomorrow, and "
            "a label for the "
            "way back is in that box.\n\nMara",
        ),
        labels=("Return",),
    ),
    Letter(
        day=22,
        hour=19.5,
        subject="Lead free?",
        turns=(
            "Hello, are your glazes free of lead and cadmium? I would use the bowl for my baby.",
            "Hi {first},\n\nyes, all of them, and tested: the report is on our page about glazes.\n\nMara",
        ),
        labels=("Product question",),
    ),
    Letter(
        day=26,
        hour=11.2,
        subject="Missing part of my order",
        turns=(
            "Good morning,\n\nthe salt cellar was not in the box, although it is on the delivery note.",
            "Hi {first},\n\nI have found it on the packing table. It is on its way, with a small "
            "extra.\n\nMara",
            "Thank you! Looking forward to it.",
        ),
        labels=("Delivery",),
        folder="inbox",
        is_read=False,
    ),
    Letter(
        day=28,
        hour=16.7,
        subject="Tea pot drips",
        turns=(
            "Hi there,\n\nthe tea pot from last week drips along the spout when it is full. "
            "Is there a trick?",
        ),
        labels=("Product question",),
        folder="inbox",
        is_read=False,
    ),
    Letter(
        day=29,
        hour=7.6,
        subject="Order by phone?",
        turns=("Hello,\n\nmy mother does not use the internet. Can she order by phone, and at which hours?",),
        labels=(),
        folder="inbox",
        is_read=False,
    ),
    Letter(
        day=29,
        hour=12.4,
        subject="Refund for SM-4103",
        turns=("Hello,\n\nI sent the platter back on Monday. When will I see the refund?\n\nThanks",),
        labels=("Return", "Urgent"),
        folder="inbox",
        is_read=False,
        is_assigned=True,
    ),
)

WHOLESALE_LETTERS: Final = (
    Letter(
        day=3,
        hour=9.0,
        subject="Stocking your mugs in our café",
        turns=(
            "Hello,\n\nwe run two cafés in Bremen and would like to serve our coffee in your mugs. Do "
            "you have a "
            "price list for 60 pieces?",
            "Hi {first},\n\nthank you! From 48 pieces on a mug is €17.50. I can fire 60 by the middle "
            "of next month.\n\nMara",
            "That works for us. Please send us the invoice for a first half.",
        ),
        labels=("Offer sent",),
    ),
    Letter(
        day=20,
        hour=14.5,
        subject="Trade fair in February",
        turns=(
            "Dear Saltmarsh team,\n\nwe would like to invite you to our trade fair. A stand of 9 m² is "
            "still free.",
        ),
        labels=(),
        folder="inbox",
        is_read=False,
    ),
)

SPAM: Final = Letter(
    day=24,
    hour=3.2,
    subject="Your shop on page ONE of search results!!!",
    turns=("Dear owner,\n\nwe GUARANTEE page one in 7 days. Reply for a free audit.",),
    labels=(),
    folder="spam",
    is_read=False,
)

LABELS: Final = (
    ("Product question", "teal"),
    ("Delivery", "iris"),
    ("Return", "orange"),
    ("Invoice", "mauve"),
    ("Workshop", "grass"),
    ("Urgent", "crimson"),
    ("Offer sent", "plum"),
)


def message(
    sender: str, recipient: str, subject: str, text: str, now: datetime, message_id: str, earlier: str = ""
) -> bytes:
    """Return a mail as a customer's program sends it; `earlier` is the Message-ID that it answers."""
    lines = [
        f"From: {sender}",
        f"To: {recipient}",
        f"Subject: {encoded(subject)}",
        headers.date("Date", now).decode().rstrip(),
        f"Message-ID: {message_id}",
        *([f"In-Reply-To: {earlier}", f"References: {earlier}"] if earlier else []),
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=utf-8",
        "Content-Transfer-Encoding: 8bit",
        "",
        *text.split("\n"),
        "",
    ]
    return "\r\n".join(lines).encode()


def encoded(text: str) -> str:
    """Return a subject as RFC 2047 writes it, where it is not ASCII."""
    return text if text.isascii() else " ".join(encode(text))
