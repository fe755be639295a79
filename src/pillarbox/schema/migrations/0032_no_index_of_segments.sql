-- compatible since: 16
-- No statement looks for the broadcasts of a segment: they read their segment by its key.

DROP INDEX broadcasts_segment;
