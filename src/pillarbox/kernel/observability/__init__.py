"""The signals that operators see: log lines, Prometheus metrics, the protocol of the request log.

Begin with `log.py` and `metrics.py`.
"""
