"""The pages on which people sign up with a form and confirm it, and the mail between them (forms.md 3 and 4).

They need no script and name no product. Look and words are the team's, where it has chosen any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

from pillarbox.dashboard import pages
from pillarbox.dashboard.texts import t, use_language
from pillarbox.dashboard.unsubscribing import HEADERS, colors_of, masked, policy_of
from pillarbox.documents.colors import readable_on
from pillarbox.forms.form_settings import origin_of
from pillarbox.forms.screens import ConfirmationMail
from pillarbox.forms.sign_up_pages import TRAP, ShownForm
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.unsubscribe.page_settings import DEFAULT

LONGEST_SHOWN: Final = 500
MAIL: Final = Markup(
    '<div style="font-family:system-ui,-apple-system,Segoe UI,Roboto,sans-serif;font-size:16px;'
    'line-height:1.5;max-width:36rem;margin:0 auto;padding:1.5rem">'
    '<h1 style="font-size:20px;line-height:1.3">{title}</h1><p>{ask}</p>'
    '<p><a href="{url}" style="display:inline-block;padding:12px 20px;border-radius:6px;text-decoration:none;'
    'font-weight:600;background:{button};color:{ink}">{act}</a></p>'
    '<p>{or_copy}<br><a href="{url}">{url}</a></p><p>{not_you}</p></div>'
)


class SigningUpPages:
    """Draws the pages and writes the mail."""

    def speak(self, accepted: str | None) -> None:
        use_language(None, accepted)

    def form(
        self, form: ShownForm, given: Mapping[str, str] | None = None, wrong: Mapping[str, str] | None = None
    ) -> Reply[Html]:
        faults = {name: t(f"sign_up.wrong.{fault}") for name, fault in (wrong or {}).items()}
        return _page(
            "sign_up.html",
            form,
            _title(form),
            status=422 if faults else 200,
            target=form.settings.redirect_url,
            given={name: value[:LONGEST_SHOWN] for name, value in (given or {}).items()},
            wrong=faults,
            trap=TRAP,
            button=_button(form),
            consent=_consent(form),
        )

    def consent_text(self, form: ShownForm) -> str:
        topics = [topic.name for topic in form.topics]
        lines = [_title(form), form.texts.text, *topics, _consent(form), _button(form)]
        return "\n".join(line for line in lines if line)

    def mail(self, form: ShownForm, url: str, email: str) -> ConfirmationMail:
        title = _title(form)
        words = {
            "title": title,
            "ask": t("sign_up.mail.ask", address=email, title=title),
            "act": t("sign_up.confirm"),
            "or_copy": t("sign_up.mail.or_copy"),
            "not_you": t("sign_up.mail.not_you"),
        }
        _, _, button = form.look.colors
        html = MAIL.format(url=url, button=button, ink=readable_on(button), **words)
        text = "\n\n".join([words["title"], words["ask"], url, words["not_you"]]) + "\n"
        return ConfirmationMail(t("sign_up.mail.subject", title=title), str(html), text)

    def sent(self, form: ShownForm) -> Reply[Html]:
        return _message(form, t("sign_up.sent"), form.texts.sent or t("sign_up.sent.text"))

    def confirm(self, form: ShownForm, email: str) -> Reply[Html]:
        return _page(
            "sign_up_confirm.html",
            form,
            _title(form),
            target=form.settings.confirmed_url,
            address=masked(email),
            consent=_consent(form),
        )

    def confirmed(self, form: ShownForm) -> Reply[Html]:
        return _message(form, t("sign_up.confirmed"), form.texts.confirmed or t("sign_up.confirmed.text"))

    def expired(self, form: ShownForm, url: str | None) -> Reply[Html]:
        link = None if url is None else (url, t("sign_up.again"))
        return _message(form, t("sign_up.expired"), t("sign_up.expired.text"), status=410, link=link)

    def unknown(self) -> Reply[Html]:
        return _message(None, t("recipient.no_link"), t("recipient.no_link.text"), status=404)

    def not_understood(self) -> Reply[Html]:
        return _message(None, t("sign_up.not_understood"), t("sign_up.not_understood.text"), status=400)

    def too_many(self, seconds: int) -> Reply[Html]:
        reply = _message(None, t("sign_up.too_many"), t("sign_up.too_many.text"), status=429)
        reply.headers["retry-after"] = str(seconds)
        return reply

    def unavailable(self) -> Reply[Html]:
        reply = _message(None, t("sign_up.unavailable"), t("sign_up.unavailable.text"), status=503)
        reply.headers["retry-after"] = "3600"
        return reply


def _title(form: ShownForm) -> str:
    return form.texts.title or form.team_name


def _button(form: ShownForm) -> str:
    return form.texts.button or t("sign_up.button")


def _consent(form: ShownForm) -> str:
    return form.texts.consent or t("sign_up.consent", team=form.team_name)


def _page(
    template: str,
    form: ShownForm,
    title: str,
    *,
    status: int = 200,
    target: str | None = None,
    **values: object,
) -> Reply[Html]:
    """Return a page of a form. The browser may be sent on to `target` by its answer."""
    policy = policy_of(form.look)
    if target is not None:
        policy = policy.replace("form-action 'self'", f"form-action 'self' {origin_of(target)}")
    return pages.page(
        template,
        status=status,
        headers={**HEADERS, "content-security-policy": policy},
        title=title,
        form=form,
        look=form.look,
        colors=Markup(colors_of(form.look)),  # noqa: S704 (colours that were checked, in our own text)
        **values,
    )


def _message(
    form: ShownForm | None, title: str, text: str, *, status: int = 200, link: tuple[str, str] | None = None
) -> Reply[Html]:
    look = DEFAULT if form is None else form.look
    return pages.page(
        "sign_up_message.html",
        status=status,
        headers={**HEADERS, "content-security-policy": policy_of(look)},
        title=title,
        text=text,
        link=link,
        look=look,
        colors=Markup(colors_of(look)),  # noqa: S704 (colours that were checked, in our own text)
    )


def preview_of(form: ShownForm) -> Reply[Html]:
    """Return the page for a frame in which nothing can be sent."""
    reply = SigningUpPages().form(form)
    reply.headers["content-security-policy"] = (
        policy_of(form.look, frame_ancestors="'self'").replace("form-action 'self'", "form-action 'none'")
        + "; sandbox"
    )
    reply.headers["x-frame-options"] = "SAMEORIGIN"
    return reply
