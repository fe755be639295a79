-- compatible since: 16
-- The route by which a process delivers, without credentials: `pillarbox doctor` judges by it, also on a machine where
-- no server runs.
ALTER TABLE processes ADD COLUMN route text;
