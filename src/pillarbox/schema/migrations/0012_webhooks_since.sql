-- From when on a webhook has a row for every event of its kinds, for `pillarbox verify`. Of those that there are
-- nothing is known about the time before this step.

ALTER TABLE webhooks ADD COLUMN since timestamptz NOT NULL DEFAULT now();
