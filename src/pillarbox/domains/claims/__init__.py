"""Claims (domains.md section 5): taking over a name that another team has verified, by proof in DNS.

    pending ──► verified ──► completed
       │           ▲ │
       │           │ ▼
       │         blocked
       └──► expired        every open one also ──► superseded, canceled, failed

A claim is open while it is `pending`, `verified` or `blocked`, and a team has at most one open claim for a
name. An open claim has a placeholder: a domain of the claiming team that has no records to show, cannot be
verified and neither sends nor receives. `domains.claim_id` names the claim for exactly as long as it is open.

What changes more than one team's rows runs under the name's lock (`directory.domains.hold_name`), and the
transfer is one transaction: every reader sees the name with the former owner or with the new one.

Begin with `opening.py` and `transfer.py`.
"""
