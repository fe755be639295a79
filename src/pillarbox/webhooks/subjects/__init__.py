"""The webhook events of one subject, such as an email."""
