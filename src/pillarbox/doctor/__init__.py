"""`pillarbox doctor`: can this machine deliver and receive mail, and if not, what is the next step?

Every check is a value with what was expected, what was found and, where something is wrong, one step that
repairs it. Nothing is changed and no mail is sent. All network access goes through `Outside`. Begin with
`examination.py`.
"""
