"""The settings that an inbox has for an agent: they are stored, and no agent runs here (inboxes.md 3.6)."""
