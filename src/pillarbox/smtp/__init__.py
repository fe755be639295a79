"""The SMTP listeners and their handlers. They translate only: `emails.accept` decides what may be sent,
`api_keys` who may log in, `receiving` what is received.

A session with AUTH is submission, whichever listener it uses; one without is mail from another server.
Begin with `listeners.py` and `handler_choice.py`.
"""
