"""Templates to begin with: eight mails that most senders need, as documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pillarbox.documents.gallery_parts import DIVIDER, Block, GalleryTemplate, button, heading, panel, text

FOOTER: Final[Block] = {"type": "footer", "unsubscribe": "Unsubscribe"}
SERVICE_FOOTER: Final[Block] = {"type": "footer", "text": "You get this mail because of something you did."}

WELCOME: Final = GalleryTemplate(
    name="welcome",
    subject="Welcome to {{{TEAM_NAME}}}, {{{FIRST_NAME|friend}}}",
    preheader="Three small steps, and you are at home.",
    fallbacks={"TEAM_NAME": "Harbor", "START_URL": "https://harbor.example/start"},
    blocks=[
        heading("Good to have you aboard, {{{FIRST_NAME|friend}}}"),
        text(
            "Your account at **{{{TEAM_NAME}}}** is ready. Most people are up and running in five minutes; "
            "these three steps are all it takes."
        ),
        {
            "type": "columns",
            "panel": True,
            "columns": [
                [heading("1. Look around", 3), text("See what is there before you change anything.")],
                [heading("2. Make it yours", 3), text("Add your name, your colours and your people.")],
                [heading("3. Begin", 3), text("Start with one small thing. The rest will follow.")],
            ],
        },
        {"type": "spacer", "height": 12},
        button("Open my account", "{{{START_URL}}}"),
        text("Is something unclear? Reply to this mail: a person reads it, usually within the day."),
        FOOTER,
    ],
)

RECEIPT: Final = GalleryTemplate(
    name="receipt",
    subject="Your receipt {{{ORDER_NO}}}",
    preheader="Thank you. {{{TOTAL}}} were paid on {{{ORDER_DATE}}}.",
    fallbacks={
        "ORDER_NO": "H-2041",
        "ORDER_DATE": "3 October 2026",
        "ITEM": "Storm lantern, brass",
        "PRICE": "€ 84.00",
        "SHIPPING": "€ 6.00",
        "TOTAL": "€ 90.00",
        "RECEIPT_URL": "https://harbor.example/orders/2041",
    },
    blocks=[
        text("RECEIPT {{{ORDER_NO}}}"),
        heading("Thank you for your order"),
        text("We have your payment of **{{{TOTAL}}}** from {{{ORDER_DATE}}}. Here is what it was for."),
        text(
            "| Item | Amount |\n|:--|--:|\n| {{{ITEM}}} | {{{PRICE}}} |\n| Shipping | {{{SHIPPING}}} |\n"
            "| **Total** | **{{{TOTAL}}}** |"
        ),
        button("See the order", "{{{RECEIPT_URL}}}"),
        DIVIDER,
        text(
            "Questions about this order? Reply with its number, {{{ORDER_NO}}}. "
            "You can return everything within 30 days."
        ),
        SERVICE_FOOTER,
    ],
)

RESET: Final = GalleryTemplate(
    name="reset",
    subject="Choose a new password",
    preheader="The link works once, for 30 minutes.",
    fallbacks={
        "RESET_URL": "https://harbor.example/reset",
        "CODE": "482 917",
        "DEVICE": "Firefox on Linux, Hamburg",
    },
    blocks=[
        heading("Choose a new password"),
        text(
            "Somebody, we hope you, asked for a new password for **{{{EMAIL|your account}}}**. "
            "The button works once, for 30 minutes."
        ),
        button("Choose a password", "{{{RESET_URL}}}"),
        text("Or type this code where you were asked for it:"),
        panel("# {{{CODE}}}", "center"),
        text(
            "**Was it not you?** Then do nothing: your password stays as it is. "
            "The request came from {{{DEVICE}}}."
        ),
        SERVICE_FOOTER,
    ],
)

INVITATION: Final = GalleryTemplate(
    name="invitation",
    subject="{{{INVITER}}} invites you to {{{TEAM_NAME}}}",
    preheader="One click, and you work together.",
    fallbacks={
        "INVITER": "Ada Quill",
        "TEAM_NAME": "Harbor",
        "ROLE": "editor",
        "INVITE_URL": "https://harbor.example/join",
        "EXPIRES": "Friday",
    },
    blocks=[
        heading("{{{INVITER}}} would like to work with you", align="center"),
        text("You are invited to **{{{TEAM_NAME}}}** as **{{{ROLE}}}**.", "center"),
        button("Accept the invitation", "{{{INVITE_URL}}}", "center"),
        {
            "type": "quote",
            "text": "Join us: the autumn catalogue is waiting for your eye.",
            "by": "{{{INVITER}}}",
        },
        DIVIDER,
        text(
            "The invitation is for {{{EMAIL|this address}}} and ends on {{{EXPIRES}}}. "
            "If you do not know {{{INVITER}}}, you can ignore it."
        ),
        SERVICE_FOOTER,
    ],
)

NEWSLETTER: Final = GalleryTemplate(
    name="newsletter",
    subject="{{{ISSUE_TITLE}}}",
    preheader="What we learned this month, and three things worth your time.",
    fallbacks={
        "ISSUE_NO": "12",
        "ISSUE_TITLE": "The slow web, and who builds it",
        "STORY_URL": "https://harbor.example/letters/12",
    },
    blocks=[
        text("LETTER {{{ISSUE_NO}}}"),
        heading("{{{ISSUE_TITLE}}}"),
        text(
            "Dear {{{FIRST_NAME|reader}}},\n\nthis month we sat down with people who build things that last: "
            "a boatbuilder, a type designer, and a team of two that runs a payment system for a small town. "
            "What they have in common surprised us."
        ),
        {
            "type": "quote",
            "text": "We do not hurry. We only never stop.",
            "by": "Ben Tarn, boatbuilder",
        },
        text("Their three rules fit on a card, and we keep one above our own desk now."),
        button("Read the story", "{{{STORY_URL}}}"),
        DIVIDER,
        heading("Also worth your time", 2),
        {
            "type": "columns",
            "columns": [
                [
                    heading("A map of quiet places", 3),
                    text("Forty reading rooms, gardens and ferries. [See the map]({{{STORY_URL}}})"),
                ],
                [
                    heading("How to fold a letter", 3),
                    text("An old skill, in six pictures. [Try it]({{{STORY_URL}}})"),
                ],
            ],
        },
        text("Until next month,\n\n*Ada and the crew*"),
        {
            "type": "social",
            "links": [
                {"name": "Website", "href": "https://harbor.example"},
                {"name": "Mastodon", "href": "https://social.example/@harbor"},
                {"name": "Archive", "href": "https://harbor.example/letters"},
            ],
        },
        FOOTER,
    ],
)

ANNOUNCEMENT: Final = GalleryTemplate(
    name="announcement",
    subject="New: {{{FEATURE}}}",
    preheader="It is there, it is quick, and it is in your account already.",
    fallbacks={
        "FEATURE": "Shared drawers",
        "FEATURE_URL": "https://harbor.example/new",
    },
    blocks=[
        text("NEW TODAY", "center"),
        heading("{{{FEATURE}}} are here", align="center"),
        text(
            "Put what belongs together into one place, and give it to exactly the people who need it. "
            "You asked for this more often than for anything else.",
            "center",
        ),
        button("Try it now", "{{{FEATURE_URL}}}", "center"),
        panel(
            "**What it does**\n\n- One link instead of ten attachments\n- Rights by person, not by folder\n"
            "- Everything stays where it is"
        ),
        text("It costs nothing more, and it is switched on for you. Tell us what you think: just reply."),
        FOOTER,
    ],
)

DIGEST: Final = GalleryTemplate(
    name="digest",
    subject="Your week: {{{DONE_COUNT}}} done, {{{OPEN_COUNT}}} to go",
    preheader="What happened from {{{WEEK}}}.",
    fallbacks={
        "WEEK": "28 September to 4 October",
        "DONE_COUNT": "14",
        "OPEN_COUNT": "3",
        "NEW_COUNT": "6",
        "DIGEST_URL": "https://harbor.example/week",
    },
    blocks=[
        text("{{{WEEK}}}"),
        heading("Your week at a glance"),
        {
            "type": "columns",
            "panel": True,
            "columns": [
                [heading("{{{DONE_COUNT}}}", 2, "center"), text("done", "center")],
                [heading("{{{NEW_COUNT}}}", 2, "center"), text("new", "center")],
                [heading("{{{OPEN_COUNT}}}", 2, "center"), text("open", "center")],
            ],
        },
        heading("What waits for you", 2),
        text(
            "1. **Sign the berth contract**: due on Tuesday\n2. **Answer Nell**: she asked twice\n"
            "3. **Choose a cover**: four drafts are there"
        ),
        button("Open my week", "{{{DIGEST_URL}}}"),
        DIVIDER,
        heading("What others did", 2),
        text("Ben closed nine tasks. Kai joined on Thursday. The autumn plan has a new version."),
        FOOTER,
    ],
)

SURVEY: Final = GalleryTemplate(
    name="survey",
    subject="One question, {{{FIRST_NAME|friend}}}",
    preheader="It takes ten seconds, and we read every answer.",
    fallbacks={
        "PRODUCT": "Harbor",
        "SURVEY_URL": "https://harbor.example/survey",
    },
    blocks=[
        heading("How likely are you to recommend {{{PRODUCT}}}?", align="center"),
        text("Choose the answer that fits. It takes ten seconds.", "center"),
        {
            "type": "columns",
            "columns": [
                [button("Not at all", "{{{SURVEY_URL}}}?a=1", "center")],
                [button("Maybe", "{{{SURVEY_URL}}}?a=2", "center")],
                [button("Gladly", "{{{SURVEY_URL}}}?a=3", "center")],
            ],
        },
        panel(
            "We read every answer, and each quarter we write down what we changed because of them. "
            "The last one is [here]({{{SURVEY_URL}}}/results)."
        ),
        text("Thank you, {{{FIRST_NAME|friend}}}. You make {{{PRODUCT}}} better.", "center"),
        FOOTER,
    ],
)

GALLERY: Final[Mapping[str, GalleryTemplate]] = {
    template.name: template
    for template in (WELCOME, RECEIPT, RESET, INVITATION, NEWSLETTER, ANNOUNCEMENT, DIGEST, SURVEY)
}
"""The templates by their names."""
