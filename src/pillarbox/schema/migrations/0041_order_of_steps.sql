-- compatible since: 16
-- The place of a step among those of its contact (docs/decisions/0137). The previous release leaves it empty, and what
-- it adds gets its place from this one.
ALTER TABLE automation_work ADD COLUMN order_at timestamptz;
