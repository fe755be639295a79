"""Screens rendered on the server: no SQL, no rules, no scripts.

Every page is a jinja2 template with autoescape. HTML that came by mail is shown behind three walls, each
of which holds alone (UI-02): it is cleaned (`mail_html`), it stands in a sandboxed frame, and the frame
has a Content-Security-Policy of its own.

Begin with `pages.py` (from a template to an answer) and `mail_html.py` (HTML that came by mail).
"""
