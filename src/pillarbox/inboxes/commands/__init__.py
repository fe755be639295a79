"""`pillarbox inboxes`: inboxes in a terminal."""
