"""Mail protocols: bytes in, values out; no team, no database, no configuration.

Begin with `message/compose.py` and `message/parse.py` (messages), `smtp/client.py` and `smtp/session.py`
(SMTP), `authentication/evaluate.py` (SPF, DKIM, DMARC), `reports/replies.py` (what comes back).
"""
