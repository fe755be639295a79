"""The templates to begin with in German."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pillarbox.documents.gallery_parts import DIVIDER, Block, GalleryTemplate, button, heading, panel, text

FOOTER: Final[Block] = {"type": "footer", "unsubscribe": "Abmelden"}
SERVICE_FOOTER: Final[Block] = {
    "type": "footer",
    "text": "Sie erhalten diese Mail, weil Sie etwas angefordert haben.",
}

WELCOME: Final = GalleryTemplate(
    name="welcome",
    language="de",
    subject="Willkommen bei {{{TEAM_NAME}}}, {{{FIRST_NAME|liebe Leserin, lieber Leser}}}",
    preheader="Drei kleine Schritte, und Sie sind angekommen.",
    fallbacks={"TEAM_NAME": "Harbor", "START_URL": "https://harbor.example/start"},
    blocks=[
        heading("Schön, dass Sie da sind"),
        text(
            "Ihr Konto bei **{{{TEAM_NAME}}}** ist bereit. Die meisten sind in fünf Minuten startklar; "
            "mehr als diese drei Schritte braucht es nicht."
        ),
        {
            "type": "columns",
            "panel": True,
            "columns": [
                [heading("1. Umsehen", 3), text("Schauen Sie sich um, bevor Sie etwas ändern.")],
                [heading("2. Einrichten", 3), text("Name, Farben und Ihre Leute eintragen.")],
                [heading("3. Anfangen", 3), text("Mit etwas Kleinem. Der Rest kommt von selbst.")],
            ],
        },
        {"type": "spacer", "height": 12},
        button("Mein Konto öffnen", "{{{START_URL}}}"),
        text(
            "Ist etwas unklar? Antworten Sie auf diese Mail: Ein Mensch liest sie, meist noch am selben Tag."
        ),
        FOOTER,
    ],
)

RECEIPT: Final = GalleryTemplate(
    name="receipt",
    language="de",
    subject="Ihr Beleg {{{ORDER_NO}}}",
    preheader="Vielen Dank. {{{TOTAL}}} wurden am {{{ORDER_DATE}}} bezahlt.",
    fallbacks={
        "ORDER_NO": "H-2041",
        "ORDER_DATE": "3. Oktober 2026",
        "ITEM": "Sturmlaterne, Messing",
        "PRICE": "84,00 €",
        "SHIPPING": "6,00 €",
        "TOTAL": "90,00 €",
        "RECEIPT_URL": "https://harbor.example/orders/2041",
    },
    blocks=[
        text("BELEG {{{ORDER_NO}}}"),
        heading("Vielen Dank für Ihre Bestellung"),
        text("Ihre Zahlung über **{{{TOTAL}}}** vom {{{ORDER_DATE}}} ist da. Das haben Sie gekauft:"),
        text(
            "| Artikel | Betrag |\n|:--|--:|\n| {{{ITEM}}} | {{{PRICE}}} |\n| Versand | {{{SHIPPING}}} |\n"
            "| **Summe** | **{{{TOTAL}}}** |"
        ),
        button("Bestellung ansehen", "{{{RECEIPT_URL}}}"),
        DIVIDER,
        text(
            "Fragen zu dieser Bestellung? Antworten Sie mit ihrer Nummer, {{{ORDER_NO}}}. "
            "Sie können alles innerhalb von 30 Tagen zurückgeben."
        ),
        SERVICE_FOOTER,
    ],
)

RESET: Final = GalleryTemplate(
    name="reset",
    language="de",
    subject="Neues Passwort wählen",
    preheader="Der Link gilt einmal, 30 Minuten lang.",
    fallbacks={
        "RESET_URL": "https://harbor.example/reset",
        "CODE": "482 917",
        "DEVICE": "Firefox unter Linux, Hamburg",
    },
    blocks=[
        heading("Neues Passwort wählen"),
        text(
            "Jemand, hoffentlich Sie, hat für **{{{EMAIL|Ihr Konto}}}** ein neues Passwort angefordert. "
            "Der Knopf gilt einmal, 30 Minuten lang."
        ),
        button("Passwort wählen", "{{{RESET_URL}}}"),
        text("Oder geben Sie diesen Code ein, wo Sie danach gefragt wurden:"),
        panel("# {{{CODE}}}", "center"),
        text(
            "**Waren Sie das nicht?** Dann tun Sie nichts: Ihr Passwort bleibt, wie es ist. "
            "Die Anfrage kam von {{{DEVICE}}}."
        ),
        SERVICE_FOOTER,
    ],
)

INVITATION: Final = GalleryTemplate(
    name="invitation",
    language="de",
    subject="{{{INVITER}}} lädt Sie zu {{{TEAM_NAME}}} ein",
    preheader="Ein Klick, und Sie arbeiten zusammen.",
    fallbacks={
        "INVITER": "Ada Quill",
        "TEAM_NAME": "Harbor",
        "ROLE": "Redaktion",
        "INVITE_URL": "https://harbor.example/join",
        "EXPIRES": "Freitag",
    },
    blocks=[
        heading("{{{INVITER}}} möchte mit Ihnen arbeiten", align="center"),
        text("Sie sind zu **{{{TEAM_NAME}}}** eingeladen, für die Rolle **{{{ROLE}}}**.", "center"),
        button("Einladung annehmen", "{{{INVITE_URL}}}", "center"),
        {
            "type": "quote",
            "text": "Kommen Sie dazu: Der Herbstkatalog wartet auf Ihren Blick.",
            "by": "{{{INVITER}}}",
        },
        DIVIDER,
        text(
            "Die Einladung gilt für {{{EMAIL|diese Adresse}}} bis {{{EXPIRES}}}. "
            "Wenn Sie {{{INVITER}}} nicht kennen, können Sie sie ignorieren."
        ),
        SERVICE_FOOTER,
    ],
)

NEWSLETTER: Final = GalleryTemplate(
    name="newsletter",
    language="de",
    subject="{{{ISSUE_TITLE}}}",
    preheader="Was wir diesen Monat gelernt haben, und zwei Fundstücke.",
    fallbacks={
        "ISSUE_NO": "12",
        "ISSUE_TITLE": "Das langsame Netz, und wer es baut",
        "STORY_URL": "https://harbor.example/letters/12",
    },
    blocks=[
        text("BRIEF {{{ISSUE_NO}}}"),
        heading("{{{ISSUE_TITLE}}}"),
        text(
            "Guten Tag {{{FIRST_NAME|liebe Leserin, lieber Leser}}},\n\ndiesen Monat haben wir Menschen "
            "besucht, die Dinge bauen, die bleiben: einen Bootsbauer, eine Schriftgestalterin und ein Team "
            "von zweien, das den Zahlungsverkehr einer kleinen Stadt betreibt. Was sie gemeinsam haben, hat "
            "uns überrascht."
        ),
        {
            "type": "quote",
            "text": "Wir beeilen uns nicht. Wir hören nur nie auf.",
            "by": "Ben Tarn, Bootsbauer",
        },
        text("Ihre drei Regeln passen auf eine Karte, und eine davon hängt jetzt über unserem Schreibtisch."),
        button("Zur Geschichte", "{{{STORY_URL}}}"),
        DIVIDER,
        heading("Außerdem lesenswert", 2),
        {
            "type": "columns",
            "columns": [
                [
                    heading("Eine Karte stiller Orte", 3),
                    text("Vierzig Lesesäle, Gärten und Fähren. [Zur Karte]({{{STORY_URL}}})"),
                ],
                [
                    heading("Wie man einen Brief faltet", 3),
                    text("Eine alte Kunst in sechs Bildern. [Ausprobieren]({{{STORY_URL}}})"),
                ],
            ],
        },
        text("Bis zum nächsten Monat\n\n*Ada und die Mannschaft*"),
        {
            "type": "social",
            "links": [
                {"name": "Website", "href": "https://harbor.example"},
                {"name": "Mastodon", "href": "https://social.example/@harbor"},
                {"name": "Archiv", "href": "https://harbor.example/letters"},
            ],
        },
        FOOTER,
    ],
)

ANNOUNCEMENT: Final = GalleryTemplate(
    name="announcement",
    language="de",
    subject="Neu: {{{FEATURE}}}",
    preheader="Es ist da, es ist schnell, und Sie haben es schon.",
    fallbacks={
        "FEATURE": "Gemeinsame Schubladen",
        "FEATURE_URL": "https://harbor.example/new",
    },
    blocks=[
        text("NEU AB HEUTE", "center"),
        heading("{{{FEATURE}}} sind da", align="center"),
        text(
            "Legen Sie an einen Ort, was zusammengehört, und geben Sie es genau denen, die es brauchen. "
            "Nichts haben Sie sich öfter gewünscht.",
            "center",
        ),
        button("Jetzt ausprobieren", "{{{FEATURE_URL}}}", "center"),
        panel(
            "**Was es kann**\n\n- Ein Link statt zehn Anhängen\n- Rechte je Person, nicht je Ordner\n"
            "- Alles bleibt, wo es ist"
        ),
        text(
            "Es kostet nichts extra und ist für Sie schon eingeschaltet. Sagen Sie uns, was Sie davon "
            "halten: Antworten Sie einfach."
        ),
        FOOTER,
    ],
)

DIGEST: Final = GalleryTemplate(
    name="digest",
    language="de",
    subject="Ihre Woche: {{{DONE_COUNT}}} erledigt, {{{OPEN_COUNT}}} offen",
    preheader="Was vom {{{WEEK}}} geschah.",
    fallbacks={
        "WEEK": "28. September bis 4. Oktober",
        "DONE_COUNT": "14",
        "OPEN_COUNT": "3",
        "NEW_COUNT": "6",
        "DIGEST_URL": "https://harbor.example/week",
    },
    blocks=[
        text("{{{WEEK}}}"),
        heading("Ihre Woche auf einen Blick"),
        {
            "type": "columns",
            "panel": True,
            "columns": [
                [heading("{{{DONE_COUNT}}}", 2, "center"), text("erledigt", "center")],
                [heading("{{{NEW_COUNT}}}", 2, "center"), text("neu", "center")],
                [heading("{{{OPEN_COUNT}}}", 2, "center"), text("offen", "center")],
            ],
        },
        heading("Was auf Sie wartet", 2),
        text(
            "1. **Liegeplatzvertrag unterschreiben**: fällig am Dienstag\n"
            "2. **Nell antworten**: Sie hat zweimal gefragt\n"
            "3. **Titelbild wählen**: Vier Entwürfe sind da"
        ),
        button("Meine Woche öffnen", "{{{DIGEST_URL}}}"),
        DIVIDER,
        heading("Was andere getan haben", 2),
        text(
            "Ben hat neun Aufgaben abgeschlossen. Kai ist am Donnerstag dazugekommen. Vom Herbstplan gibt "
            "es eine neue Fassung."
        ),
        FOOTER,
    ],
)

SURVEY: Final = GalleryTemplate(
    name="survey",
    language="de",
    subject="Eine Frage an {{{FIRST_NAME|Sie}}}",
    preheader="Sie dauert zehn Sekunden, und wir lesen jede Antwort.",
    fallbacks={
        "PRODUCT": "Harbor",
        "SURVEY_URL": "https://harbor.example/survey",
    },
    blocks=[
        heading("Würden Sie {{{PRODUCT}}} weiterempfehlen?", align="center"),
        text("Wählen Sie, was am besten passt. Es dauert zehn Sekunden.", "center"),
        {
            "type": "columns",
            "columns": [
                [button("Gar nicht", "{{{SURVEY_URL}}}?a=1", "center")],
                [button("Vielleicht", "{{{SURVEY_URL}}}?a=2", "center")],
                [button("Gern", "{{{SURVEY_URL}}}?a=3", "center")],
            ],
        },
        panel(
            "Wir lesen jede Antwort und schreiben jedes Quartal auf, was wir deswegen geändert haben. "
            "Der letzte Bericht steht [hier]({{{SURVEY_URL}}}/results)."
        ),
        text("Vielen Dank. Sie machen {{{PRODUCT}}} besser.", "center"),
        FOOTER,
    ],
)

GERMAN_GALLERY: Final[Mapping[str, GalleryTemplate]] = {
    template.name: template
    for template in (WELCOME, RECEIPT, RESET, INVITATION, NEWSLETTER, ANNOUNCEMENT, DIGEST, SURVEY)
}
"""The templates by their names."""
