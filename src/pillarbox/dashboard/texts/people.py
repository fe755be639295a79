"""Texts of pages for setting up, logging in, and one's own account."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "frame.logout": "Log out",
    "frame.skip": "Skip to the content",
    "failed.title": "That did not work",
    "missing.title": "There is no such page",
    "missing.text": "The address is not complete, or the page has moved. A form that was sent cannot be "
    "opened by its address.",
    "missing.link": "Start again",
    "gone.title": "It is not there",
    "gone.text": "{problem}. It was deleted, belongs to another team, or its address is not complete.",
    "maintenance.title": "Back in a moment",
    "maintenance.text": "This Pillarbox is under maintenance. Everything can be read, nothing was changed. "
    "Try again in a few minutes.",
    "too_large.title": "That was too much",
    "too_large.text": "The form was larger than this site accepts. Nothing was changed.",
    "form.unreadable.title": "The form cannot be read",
    "form.unreadable.text": "Go back, load the page again and send the form once more.",
    "form.foreign.title": "This form does not count",
    "form.foreign.text": "It was open for too long, or it did not come from this site, or the browser "
    "keeps no cookies.",
    "form.foreign.link": "Start again",
    "refused.title": "You may not do this",
    "refused.operators": "This page is for operators of the installation. At the machine, "
    "`pillarbox people operator ADDRESS` makes an account one.",
    "refused.text": "Your role in this team does not allow it. An owner of the team can change your role.",
    "refused.link": "Back",
    "language.title": "Language",
    "language.browser": "As the browser asks",
    "language.save": "Use this language",
    "language.other": "Another language",
    "field.email": "Email address",
    "field.name": "Your name",
    "field.password": "Password",
    "account.title": "Your account",
    "account.team": "Team",
    "login.title": "Log in",
    "login.submit": "Log in",
    "login.lost": "I have lost my password",
    "login.wrong": "The address or the password is wrong.",
    "login.wait_or_prove": "Too many tries. Please wait {seconds} seconds and try again. If others try to "
    "get into your account you need not wait: use a passkey or a browser in which you have logged in before, "
    "or have a link mailed to you ('I have lost my password'), open it in this browser, and log in with the "
    "password you have.",
    "login.wait": "Too many tries. Please wait {seconds} seconds and try again.",
    "login.done.reset": "Your password is changed. Log in with the new one.",
    "login.done.logout": "You are logged out.",
    "login.too_many.title": "Too many tries",
    "field.new_password": "New password",
    "password.hint": "At least 10 characters; several words are fine.",
    "password.short": "It is too short: {shortest} characters at least.",
    "password.long": "It is too long: {longest} characters at most.",
    "password.common": "Too many people use this one. Take one that is harder to guess.",
    "password.own": "It is your own address or name. Take one that is harder to guess.",
    "set_up.title": "Set up your account",
    "set_up.text": "Choose a password. With it and your email address you log in from now on.",
    "set_up.submit": "Set up and log in",
    "set_up.taken": "There is an account with this address already.",
    "set_up.no_address": "This is no email address.",
    "set_up.gone.title": "This link does not work any more",
    "set_up.gone.text": "It works once, for seven days. Whoever runs this Pillarbox can make another one: "
    "pillarbox people create.",
    "lost.title": "Lost password",
    "lost.text": "Give your email address, and a link for another password is sent to it.",
    "lost.submit": "Send the link",
    "lost.sent.title": "Look into your mailbox",
    "lost.sent.text": "If there is an account with this address, a link is on its way. "
    "It works for half an hour.",
    "reset.title": "Choose another password",
    "reset.text": "It ends all sessions of your account, on every device.",
    "reset.submit": "Change the password",
    "reset.gone.title": "This link does not work any more",
    "reset.gone.text": "It works once, for half an hour. Ask for another one.",
    "confirm.title": "Is it you?",
    "confirm.text": "Give your password again before you go on: this needs a recent login.",
    "confirm.prove": "Prove again who you are before you go on: this needs a recent login.",
    "confirm.act": "You asked for: {act}.",
    "confirm.kept": "What you have typed is kept.",
    "confirm.again": "It is you. Nothing was done yet: press the button again.",
    "confirm.submit": "Go on",
    "confirm.wrong": "The password is wrong.",
    "login.openid": "Log in with {name}",
    "login.openid.other": "Log in by password",
    "login.openid.only": "The address or the password is wrong, or this account logs in with {name} alone.",
    "set_up.openid": "Accounts of this Pillarbox log in with {name}. Log in there with the address that this "
    "link was made for. An operator lets an account use a password: pillarbox people password-login ADDRESS.",
    "join.title": "Is this your account?",
    "join.text": "There is an account with your address already. Give its password once: from then on "
    "{name} logs you in to it.",
    "join.submit": "Join and log in",
    "confirm.openid": "Confirm with {name}",
    "openid.off": "This Pillarbox has no other way to log in than passwords and passkeys.",
    "openid.refused.title": "{name} did not log you in",
    "openid.refused.link": "Back to the login",
    "openid.refused.state": "The login took longer than ten minutes, was used already, or began in another "
    "browser or under another address of this site. Please begin again.",
    "openid.refused.denied": "{name} has not let you in, or you have canceled. Try again, or ask whoever "
    "runs {name}.",
    "openid.refused.unreachable": "{name} does not answer at the moment. Wait a minute and try again. If it "
    "goes on, tell whoever runs this Pillarbox.",
    "openid.refused.answer": "{name} has answered in a way that this Pillarbox does not understand. Try "
    "again. If it happens again, tell whoever runs this Pillarbox: the log of acts has the reason.",
    "openid.refused.token": "What {name} says about you could not be proved. Try again. If it happens again, "
    "tell whoever runs this Pillarbox: the log of acts has the reason.",
    "openid.refused.unverified": "{name} does not say that your email address is verified. Verify it there, "
    "then log in again.",
    "openid.refused.not_invited": "Your address at {name} comes in here by an invitation. If you have one, "
    "open its link and log in from there. If not, ask an owner of a team for one to that address.",
    "openid.refused.no_team": "There is no team that you can join. Whoever runs this Pillarbox must name it "
    "with --oidc-team, by the id that pillarbox teams list shows.",
    "openid.refused.disabled": "Your account is disabled. Ask whoever runs this Pillarbox.",
    "openid.refused.other_subject": "The account with your address belongs to somebody else at {name}, or "
    "you have another account here. Whoever runs this Pillarbox can part them: pillarbox people unlink "
    "ADDRESS.",
    "openid.refused.other_way": "There is an account with your address that logs in another way. Log in as "
    "before, then join it with {name} on the page Your account.",
    "openid.refused.other_person": "At {name} you are somebody else than here. Log in there with the address "
    "of your account, then try again.",
    "openid.refused.old_proof": "{name} has not asked you who you are. Log out there, then try again.",
    "openid.refused.undated_proof": "{name} does not say when it asked you who you are. Confirm with your "
    "password or a passkey.",
    "openid.foreign": "Another site has asked for this login. Begin it here.",
    "login.insecure": "Logging in needs HTTPS, or a browser on the machine itself under the name localhost: "
    "over plain HTTP the browser does not keep the cookie of a session. Open this page with https://.",
}
