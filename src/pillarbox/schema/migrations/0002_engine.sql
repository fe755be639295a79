-- Engine: what delivering asks of the database beyond the first migration.
SELECT 1;
