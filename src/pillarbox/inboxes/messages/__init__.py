"""Messages of a thread: what is shown of them, with their bodies and attachments (inboxes.md 6.1 and 6.4).

Begin with `reading.py`. A message has the id of the received or sent email that it came from, and its bodies
and attachments are those of that email.
"""
