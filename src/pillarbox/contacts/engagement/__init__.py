"""The engagement of contacts: when they last opened mail, followed a link or bounced, and which events they
had."""
