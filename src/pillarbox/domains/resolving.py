"""Asking about domains through the resolver that routes mail, where that is the only one there is."""

from __future__ import annotations

from pillarbox.domains.sightings import Question, Said, Sighting, Sightings
from pillarbox.kernel.dns import Answer, Resolver

_SAID = {
    "found": Said.VALUES,
    "no_data": Said.NO_DATA,
    "no_name": Said.NO_NAME,
    "failed": Said.TROUBLE,
}


class ThroughResolver:
    """`Asks` for TXT records alone."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    async def ask(self, question: Question) -> Sightings:
        answer: Answer[str] = await self._resolver.txt(question.name)
        return (Sighting(_SAID[answer.status], answer.records, detail=answer.detail),)
