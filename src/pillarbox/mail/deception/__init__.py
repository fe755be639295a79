"""Deception of programs by mail: hidden words, words to a machine, and the text that a program may read.

Begin with `safe_text.py`, for what its readers see; `hidden_text.py` finds what they do not see, and
`instructions.py` finds words that are meant for a machine. All of it is pure, and time and memory are
linear in the input up to the bounds that each module names.
"""
