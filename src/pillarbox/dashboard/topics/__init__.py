"""Screens of topics: the list with subscribers, and one topic."""
