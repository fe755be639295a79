"""Received mail (receiving.md).

A message is accepted for the addresses that `addresses` finds a team for, and it is stored before the sender
hears 250: the row that lists show, the message itself as it came, where its attachments lie in it, and the
event. A transaction with recipients of several teams becomes one received email for each of them. What is
read from the message is a cache: the message is the truth, and nothing of it is changed but that fields
which claim to be ours are taken out of its header.

Nothing is ever sent back: whatever is refused is refused while the sender is still on the line.

Begin with `receive.py` (one message) and `addresses.py` (whom it is for).
"""
