"""How often the rules are right about messages whose label is known.

python -m pytest tests/inboxes/trust/test_labelled_messages.py -s    # prints the table of bench/RESULTS.md
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping

import pytest

from inboxes.trust.labelled_messages import HELD_BACK, TUNING, labelled_messages, team
from pillarbox.inboxes.trust.evaluation import judged
from pillarbox.inboxes.trust.message_facts import signs_of
from pillarbox.mail.message.parse import parse

WHO = {
    "authenticated",
    "not_authenticated",
    "forwarded",
    "written_to",
    "contact",
    "answers_ours",
    "first_contact",
}


class Shares:
    """Counts of one half: for each reason whether it was said where it had to be, and elsewhere."""

    def __init__(self, seed: int) -> None:
        self.right: Counter[str] = Counter()
        self.all: Counter[str] = Counter()
        self.wrong: Mapping[str, list[str]] = defaultdict(list)
        self.attacks = self.caught = self.benign = self.blamed = 0
        self.seconds = 0.0
        known = team(seed)
        for labelled in labelled_messages(seed):
            message = parse(labelled.raw)
            began = time.thread_time()
            found = judged(signs_of(message, "a@b.example", labelled.verdicts), labelled.facts, known)
            self.seconds += time.thread_time() - began
            codes = {reason.code for reason in found.reasons} - WHO
            for code in codes | labelled.expected:
                self.all[code] += 1
                self.right[code] += (code in codes) == (code in labelled.expected)
                if (code in codes) != (code in labelled.expected):
                    self.wrong[code].append(labelled.name)
            is_suspicious = found.level == "suspicious"
            self.attacks += labelled.is_attack
            self.caught += labelled.is_attack and is_suspicious
            self.benign += not labelled.is_attack
            self.blamed += not labelled.is_attack and is_suspicious

    @property
    def messages(self) -> int:
        return self.attacks + self.benign

    def table(self) -> str:
        rows = [
            f"| {code} | {self.all[code]} | {self.right[code] / self.all[code]:.0%} |"
            for code in sorted(self.all)
        ]
        return "\n".join(rows)


@pytest.mark.parametrize("seed", [TUNING, HELD_BACK])
def test_attacks_are_suspicious_and_other_mail_is_not(seed: int) -> None:
    """At least 95 % of the attacks, at most 2 % of the others."""
    shares = Shares(seed)
    print(f"\n{shares.messages} messages, {1e3 * shares.seconds / shares.messages:.2f} ms of CPU each")
    print(f"{shares.caught} of {shares.attacks} attacks, {shares.blamed} of {shares.benign} others")
    print(shares.table(), dict(shares.wrong))
    assert shares.messages >= 150
    assert shares.caught >= 0.95 * shares.attacks
    assert shares.blamed <= 0.02 * shares.benign


@pytest.mark.parametrize("seed", [TUNING, HELD_BACK])
def test_each_reason_is_told_where_it_holds(seed: int) -> None:
    shares = Shares(seed)
    assert {
        code: shares.wrong[code] for code in shares.all if shares.right[code] < 0.95 * shares.all[code]
    } == {}
