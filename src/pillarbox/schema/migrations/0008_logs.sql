-- Request logs, what counts for quotas, and what the operator sets for one team or for the whole installation.

ALTER TABLE teams ADD COLUMN daily_quota bigint CHECK (daily_quota >= 0);
ALTER TABLE teams ADD COLUMN monthly_quota bigint CHECK (monthly_quota >= 0);
ALTER TABLE teams ADD COLUMN email_retention_days integer CHECK (email_retention_days >= 0);
ALTER TABLE teams ADD COLUMN log_retention_days integer CHECK (log_retention_days >= 0);
ALTER TABLE teams ADD COLUMN metrics_retention_days integer CHECK (metrics_retention_days >= 0);

-- One row per authenticated API request; the id is the answer's `x-request-id`. Bodies are masked and cut to
-- size. Where `refers` is true, numbers in the places of `html` and `text` of `request_body` stand for those of the
-- email at that place of `response_body`, whose content has them already.
CREATE TABLE logs (
    team_id         uuid        NOT NULL,
    id              uuid        NOT NULL,
    created_at      timestamptz NOT NULL,
    endpoint        text        NOT NULL,
    method          text        NOT NULL,
    response_status smallint    NOT NULL,
    user_agent      text,
    request_body    json,
    response_body   json,
    refers          boolean     NOT NULL,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);

-- What changes the units that a team has used beside the emails that it sent, which the rollups count: emails
-- received, and units given back because a scheduled email was canceled, under the UTC day it was accepted on.
CREATE TABLE usage_days (
    team_id  uuid   NOT NULL,
    day      date   NOT NULL,
    received bigint NOT NULL DEFAULT 0,
    returned bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, day)
) WITH (fillfactor = 50);

-- The units that its day and its month had with this email, where that was more than the quota. Written by
-- `usage` alone.
ALTER TABLE received_emails ADD COLUMN above_daily bigint;
ALTER TABLE received_emails ADD COLUMN above_monthly bigint;

-- Its one row is there while the installation is in maintenance. Global.
CREATE TABLE maintenance (
    id          smallint    NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    since       timestamptz NOT NULL,
    retry_after integer     NOT NULL CHECK (retry_after > 0)
);
