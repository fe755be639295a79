"""The SMTP doors. They translate and decide nothing: what may be sent is `emails.accept`'s to say, who may
log in `api_keys`', what is received `receiving`'s.

A session with AUTH is submission, whatever door it came through; one without is mail from another server.
"""
