"""What of a mail is quoted from earlier ones, and what is its signature, as mail programs write them."""
