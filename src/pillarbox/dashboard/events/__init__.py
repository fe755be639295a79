"""Screens of events that a team sends: definitions, the latest with their payloads, and sending one."""
