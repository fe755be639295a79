"""What an inbox asks of an agent: settings that are stored; no agent runs here (inboxes.md 3.6)."""
