"""Links of mail that is not sent yet: a job asks whether they lead somewhere (docs/decisions/0192)."""
