"""Commands of personal data."""
