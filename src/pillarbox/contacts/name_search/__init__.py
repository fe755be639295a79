"""Finding contacts by parts of their address and names among very many (docs/decisions/0181)."""
