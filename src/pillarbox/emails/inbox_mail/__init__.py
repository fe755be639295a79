"""Sent emails as inboxes have them: what their messages show, and what their answers need."""
