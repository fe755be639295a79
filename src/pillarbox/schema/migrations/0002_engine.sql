-- Outcomes are committed in larger batches: room on the page for a second version of nearly every row.
ALTER TABLE emails SET (fillfactor = 50);
ALTER TABLE recipients SET (fillfactor = 60);
