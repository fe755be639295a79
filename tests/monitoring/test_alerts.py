"""The Prometheus alerts: each comes when it should and only then, and leads to what the person needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import yaml

from kit.metrics_table import GUIDE
from kit.monitoring import ALERTS, alerts, panels
from kit.prometheus import promtool
from monitoring.test_dashboard import unknown

FIELDS = {"alert", "expr", "for", "labels", "annotations"}
HOUR = 60
"""Minutes; a sample of a test comes every minute."""

SENT = 'route="POST /emails"'


class Case(NamedTuple):
    """What a rule is tried with: series and values while all is well, and when it is not. `after` are the
    minutes after which the alert must be there, `labels` what it says besides those of the job; `early` is a
    time at which the fault is there and the alert is not."""

    well: dict[str, str]
    wrong: dict[str, str]
    after: int
    labels: Mapping[str, str] = MappingProxyType({})
    early: int | None = None


def constant(value: float) -> str:
    return f"{value}+0x300"


def growing(by: float) -> str:
    return f"0+{by}x300"


def stepping(at: int) -> str:
    """A counter that has grown by one after so many minutes."""
    return f"0x{at} 1x300"


def values(of: float | str) -> str:
    """The values of a series that stays at a number, or those that are given."""
    return of if isinstance(of, str) else constant(of)


def changed(series: Mapping[str, tuple[float | str, float | str]], **case: Any) -> Case:
    """Series with their values while all is well, and when it is not."""
    well = {name: values(pair[0]) for name, pair in series.items()}
    return Case(well, {name: values(pair[1]) for name, pair in series.items()}, **case)


HERE = {"instance": "a:9100"}
AT = 'instance="a:9100"'
STARTED = 'pillarbox_process_start_time_seconds{instance="a:9100", process="worker", index="0"}'
BUILD = 'pillarbox_build_info{instance="a:9100", version="1", python="3", postgresql="18"}'
BOUNCED = 'pillarbox_delivery_outcomes_total{outcome="bounced"}'
DELIVERED = 'pillarbox_delivery_outcomes_total{outcome="delivered"}'
WAITED = 'pillarbox_queue_destination_oldest_seconds{destination="quay.example"}'
WAITING = 'pillarbox_queue_destination_items{destination="quay.example"}'
REQUESTS = "pillarbox_http_request_seconds_count"
TOOK = "pillarbox_http_request_seconds_bucket"
SMTP = "pillarbox_smtp_messages_total"
CERTIFICATE = f'pillarbox_tls_certificate_seconds{{{AT}, listener="smtp"}}'
LOOP = f'{{{AT}, process="worker"}}'
FILES = f'{{{AT}, process="worker", index="1"}}'
DAY = 86400

CASES = {
    "PillarboxDown": changed({f"up{{{AT}}}": (1, 0)}, after=3, labels=HERE, early=1),
    "PillarboxNoWorkers": Case(
        {BUILD: constant(1), STARTED: constant(1e9)},
        {BUILD: constant(1)},
        after=3,
        labels=HERE | {"version": "1", "python": "3", "postgresql": "18"},
        early=1,
    ),
    "PillarboxWorkersRestart": changed(
        {f'pillarbox_worker_restarts_total{{{AT}, reason="killed"}}': (stepping(5), growing(0.5))},
        after=20,
        labels=HERE | {"reason": "killed"},
        early=2,
    ),
    "PillarboxDatabaseRestarts": changed(
        {f"pillarbox_database_restarts_total{{{AT}}}": (3, stepping(15))}, after=20, labels=HERE, early=10
    ),
    "PillarboxDatabaseAway": changed(
        {f'pillarbox_database_connect_failures_total{{{AT}, reason="other"}}': (stepping(15), growing(5))},
        after=20,
        labels=HERE,
        early=3,
    ),
    "PillarboxTooManyConnections": changed(
        {f'pillarbox_database_connect_failures_total{{{AT}, reason="too_many"}}': (7, growing(1))},
        after=20,
        labels=HERE,
        early=3,
    ),
    "PillarboxPoolExhausted": changed(
        {f'pillarbox_pool_connections{{{AT}, pool="requests", state="waiting"}}': (0, 12)},
        after=15,
        labels=HERE | {"pool": "requests"},
        early=5,
    ),
    "PillarboxMailNotLeaving": changed(
        {
            # A smarthost that refuses us is another alert, and mail of ours waits for it.
            "pillarbox_queue_lag_seconds": (600, 90),
            "pillarbox_delivery_smarthost_held": (1, 0),
        },
        after=8,
        early=4,
    ),
    "PillarboxSmarthostHeld": changed({"pillarbox_delivery_smarthost_held": (0, 1)}, after=8, early=4),
    "PillarboxDestinationWaits": changed(
        {
            WAITED: (7 * 3600, 7 * 3600),
            WAITING: (3, 30),
        },
        after=20,
        labels={"destination": "quay.example"},
        early=10,
    ),
    "PillarboxBounces": changed(
        {
            BOUNCED: (growing(1), growing(20)),
            DELIVERED: (growing(99), growing(80)),
        },
        after=2 * HOUR,
        early=5,
    ),
    "PillarboxMailPutAside": changed(
        {"pillarbox_delivery_quarantined_total": (1, stepping(20))}, after=25, early=15
    ),
    "PillarboxUncertain": changed(
        {"pillarbox_delivery_uncertain_total": (4, stepping(20))}, after=25, early=15
    ),
    "PillarboxRefusesRequests": changed(
        {
            f'{REQUESTS}{{{SENT}, status="2xx"}}': (growing(99), growing(80)),
            f'{REQUESTS}{{{SENT}, status="5xx"}}': (growing(1), growing(20)),
        },
        after=12,
        early=4,
    ),
    "PillarboxRefusesSmtp": changed(
        {
            f'{SMTP}{{way="inbound", code="250"}}': (growing(95), growing(5)),
            f'{SMTP}{{way="inbound", code="451"}}': (growing(5), growing(5)),
        },
        after=25,
        labels={"way": "inbound"},
        early=8,
    ),
    "PillarboxAcceptSlow": Case(
        {
            f'{TOOK}{{{SENT}, status="2xx", le="0.1"}}': growing(100),
            f'{TOOK}{{{SENT}, status="2xx", le="+Inf"}}': growing(100),
        },
        {
            f'{TOOK}{{{SENT}, status="2xx", le="2.5"}}': growing(90),
            f'{TOOK}{{{SENT}, status="2xx", le="5.0"}}': growing(100),
            f'{TOOK}{{{SENT}, status="2xx", le="+Inf"}}': growing(100),
        },
        after=25,
        early=8,
    ),
    "PillarboxDiskShort": changed({f"pillarbox_disk_short{{{AT}}}": (0, 1)}, after=3, labels=HERE, early=0),
    "PillarboxBlobsFail": changed(
        {
            f'pillarbox_blob_errors_total{{{AT}, operation="put", reason="failed"}}': (
                stepping(15),
                growing(1),
            )
        },
        after=20,
        labels=HERE,
        early=3,
    ),
    "PillarboxBlobsUnwritable": changed(
        {f"pillarbox_blob_unwritable_processes{{{AT}}}": (0, 1)}, after=4, labels=HERE, early=1
    ),
    "PillarboxWebhooksLate": changed(
        {'pillarbox_webhook_queue_oldest_seconds{state="due"}': (3, 400)}, after=8, early=4
    ),
    "PillarboxBackupLate": changed(
        {f"pillarbox_backup_age_seconds{{{AT}}}": (DAY, 2 * DAY + 60)}, after=70, early=50
    ),
    "PillarboxCertificateExpires": changed(
        {CERTIFICATE: (30 * DAY, 13 * DAY)}, after=70, labels=HERE | {"listener": "smtp"}, early=50
    ),
    "PillarboxCertificateEndsToday": changed(
        {CERTIFICATE: (3 * DAY, -5)}, after=15, labels=HERE | {"listener": "smtp"}, early=5
    ),
    "PillarboxProcessHangs": changed(
        {f"pillarbox_process_silent_seconds{FILES}": (1, "1+60x300")},
        after=10,
        labels=HERE | {"process": "worker", "index": "1"},
        early=1,
    ),
    "PillarboxLoopStalls": changed(
        {
            f'pillarbox_loop_lag_seconds_bucket{LOOP[:-1]}, le="1.0"}}': (growing(1200), growing(1200)),
            f"pillarbox_loop_lag_seconds_count{LOOP}": (growing(1200), growing(1202)),
        },
        after=15,
        labels=HERE | {"process": "worker"},
        early=4,
    ),
    "PillarboxFilesShort": changed(
        {
            f"pillarbox_process_open_files{FILES}": (700, 900),
            f"pillarbox_process_max_files{FILES}": (1e3, 1e3),
        },
        after=15,
        labels=HERE | {"process": "worker", "index": "1"},
        early=5,
    ),
    "PillarboxClockJumped": changed(
        {f'pillarbox_clock_jumps_total{{{AT}, direction="back"}}': (2, stepping(20))},
        after=25,
        labels=HERE,
        early=15,
    ),
    "PillarboxLogsDropped": changed(
        {f"pillarbox_logs_dropped_total{{{AT}}}": (0, growing(2))}, after=25, labels=HERE, early=0
    ),
    "PillarboxVersionsDiffer": Case(
        {BUILD: constant(1), BUILD.replace("a:", "b:"): constant(1)},
        {BUILD: constant(1), BUILD.replace("a:", "b:").replace('"1"', '"2"'): constant(1)},
        after=70,
        early=50,
    ),
}


def named(series: str, job: str) -> str:
    """The series of this job."""
    name, _, labels = series.partition("{")
    return f'{name}{{job="{job}"' + (f", {labels}" if labels else "}")


def tried(rule: dict[str, Any], case: Case) -> dict[str, Any]:
    """A test for promtool: of two installations one has the fault, and only that one gets the alert."""
    job = {"job": "pillarbox-wrong"}
    series = [
        {"series": named(name, job), "values": values}
        for job, group in (("pillarbox-well", case.well), ("pillarbox-wrong", case.wrong))
        for name, values in group.items()
    ]
    expected = {
        "exp_labels": job | dict(case.labels) | rule["labels"],
        "exp_annotations": rule["annotations"],
    }
    checks = [{"eval_time": f"{case.after}m", "alertname": rule["alert"], "exp_alerts": [expected]}]
    if case.early is not None:
        checks.append({"eval_time": f"{case.early}m", "alertname": rule["alert"], "exp_alerts": []})
    return {"name": rule["alert"], "interval": "1m", "input_series": series, "alert_rule_test": checks}


def test_every_alert_says_what_it_is_and_where_to_read_on() -> None:
    for rule in alerts():
        assert rule.keys() == FIELDS, rule["alert"]
        assert re.fullmatch(r"\d+[mh]", rule["for"]), rule["alert"]
        assert rule["labels"].keys() == {"severity"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"].keys() == {"summary", "runbook_url"}
        assert rule["annotations"]["summary"].endswith(".")


def test_the_guide_has_a_section_for_each_alert_and_for_no_other() -> None:
    sections = re.findall(r"^### (Pillarbox\w+)$", GUIDE.read_text(), re.M)
    names = [rule["alert"] for rule in alerts()]
    assert sorted(sections) == sorted(names)
    for rule in alerts():
        assert rule["annotations"]["runbook_url"] == f"docs/guide/monitoring.md#{rule['alert'].lower()}"


def test_each_section_says_what_it_means_what_to_look_at_and_what_to_do() -> None:
    for section in re.split(r"^### (?=Pillarbox)", GUIDE.read_text(), flags=re.M)[1:]:
        found = re.findall(r"^- \*(Means|Look|Do):\*", section.split("\n## ")[0], re.M)
        assert found == ["Means", "Look", "Do"], section[:40]


def test_the_guide_names_panels_that_are_there() -> None:
    titles = {panel["title"] for panel in panels()}
    runbook = GUIDE.read_text().split("## What to do when an alert comes")[1].split("\n## ")[0]
    named_panels = set(re.findall(r'"([A-Z][^"]+)"', runbook))
    assert len(named_panels) > 5
    assert named_panels - titles == set()


def test_every_alert_asks_for_metrics_of_ours() -> None:
    wrong = {rule["alert"]: missing for rule in alerts() if (missing := unknown(rule["expr"]))}
    assert wrong == {}


def test_every_alert_is_tried() -> None:
    assert CASES.keys() == {rule["alert"] for rule in alerts()}


def test_promtool_accepts_the_rules() -> None:
    assert f"{len(alerts())} rules found" in promtool("check", "rules", str(ALERTS))


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_the_alert_comes_when_it_should_and_only_then(rule: dict[str, Any], tmp_path: Path) -> None:
    """OPS-06: whoever has the fault gets it, after `for` and not before; who is well gets none."""
    trial = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": "1m",
        "tests": [tried(rule, CASES[rule["alert"]])],
    }
    path = tmp_path / "alerts.test.yaml"
    path.write_text(yaml.safe_dump(trial))
    promtool("test", "rules", str(path))
