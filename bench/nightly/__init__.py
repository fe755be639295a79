"""Whether a ratio to a peer has fallen: `python -m bench.nightly` (README.md says how to read its output).

Begin with `judging.py`, which says what counts as a fall; `recorded.py` reads and writes the recorded ratios,
`ratios.py`, `latencies.py` and `metrics_beside_sql.py` measure them, and `against.py` compares with another
commit on this machine.
"""
