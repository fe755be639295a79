"""The filter `query`: a piece of the subject of a thread, or of the name of a label (inboxes.md 5.1)."""

from __future__ import annotations


def pattern(text: str) -> str:
    """The regular expression of the database that finds the text in any case, whatever the collation is."""
    return "".join(map(_either_case, text))


def is_in(text: str, name: str) -> bool:
    """Whether the name has the text in any case."""
    return text.casefold() in name.casefold()


def _either_case(character: str) -> str:
    cases = sorted({character, character.lower(), character.upper(), character.title()})
    written = [case for case in cases if len(case) == 1]
    if len(written) > 1:
        return f"[{''.join(written)}]"
    return (
        character if character.isalnum() or character.isspace() or ord(character) > 127 else f"\\{character}"
    )
