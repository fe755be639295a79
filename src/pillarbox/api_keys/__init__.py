"""API keys (api-keys.md). A key is `active`, `suspended` by the operator (reversible) or `inactive` since
its domain or its inbox was deleted (for good); a deleted key is gone.

Its token is shown once, when it is made; only its SHA-256 (in the directory) and the first characters
are kept. Permission, domain, inbox and rights never change. A change counts at the latest one second later in
every process, and at once in the process that made it.

Begin with `keys.py` (what may be done with a key) and `credentials.py` (which caller a token means).
"""
