"""Public links to a mail, and the page that they show."""
