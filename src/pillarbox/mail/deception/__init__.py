"""What a mail says to programs and not to people, and the text of it that may be handed to a program.

Begin with `safe_text.py`, for what its readers see; `hidden_text.py` finds what they do not see, and
`instructions.py` finds words that are meant for a machine. All of it is pure, and time and memory are
linear in the input up to the bounds that each module names.
"""
