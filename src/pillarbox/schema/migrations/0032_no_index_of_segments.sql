-- compatible since: 16
-- accepted removal: no statement of any release looks for it
-- No statement looks for the broadcasts of a segment: they read their segment by its key.

DROP INDEX broadcasts_segment;
