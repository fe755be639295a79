"""Measurements that anybody can repeat: each prints its results and their ratio to a stated limit.

`python -m bench.NAME [--short]` runs one, `python -m bench [--short] [NAME …]` runs them in order.
README.md says what each measures and how to read the output; RESULTS.md has the results.
"""
