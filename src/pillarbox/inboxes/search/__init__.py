"""Finding threads of an inbox by their messages, and by subjects and labels (inboxes.md 5.1 and 5.2,
docs/decisions/0100).

Begin with `find.py`. `folding` and `words` say what a word is, `searched_text` what an inbox keeps of a
message for this. `blocks` describes messages in the background, as `terms` and `signatures` say; `candidates`
asks the blocks. What no block has yet is compared directly, so a message is found from its commit on.
"""
