"""Texts of pages for setting up, logging in, and one's own account."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "frame.logout": "Log out",
    "frame.skip": "Skip to the content",
    "failed.title": "That did not work",
    "form.unreadable.title": "The form cannot be read",
    "form.unreadable.text": "Go back, load the page again and send the form once more.",
    "form.foreign.title": "This form does not count",
    "form.foreign.text": "It was open for too long, or it did not come from this site, or the browser "
    "keeps no cookies.",
    "form.foreign.link": "Start again",
    "refused.title": "You may not do this",
    "refused.text": "Your role in this team does not allow it. An owner of the team can change your role.",
    "refused.link": "Back",
    "field.email": "Email address",
    "field.name": "Your name",
    "field.password": "Password",
    "account.title": "Your account",
    "account.team": "Team",
    "login.title": "Log in",
    "login.submit": "Log in",
    "login.lost": "I have lost my password",
    "login.wrong": "The address or the password is wrong.",
    "login.wait": "Too many tries. Please wait {seconds} seconds and try again.",
    "login.done.reset": "Your password is changed. Log in with the new one.",
    "login.done.logout": "You are logged out.",
    "login.insecure": "Logging in needs HTTPS, or a browser on the machine itself under the name localhost: "
    "over plain HTTP the browser does not keep the cookie of a session. Open this page with https://.",
}
