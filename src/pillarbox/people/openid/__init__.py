"""Logging in by an OpenID Connect provider that the operator has named (docs/decisions/0174).

A subject of the provider is joined to a person once, by an address that the provider has verified; from then
on issuer and subject say who it is. Each answer of the provider counts once, in the browser that asked.

Begin with `openid_logins.py` (what an answer does), then `provider.py` (talking to the provider) and
`id_tokens.py` (what is believed of a token).
"""
