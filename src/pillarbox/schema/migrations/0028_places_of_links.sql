-- compatible since: 16
-- Where the recipients' own links are in bodies that were rendered (docs/decisions/0077).

ALTER TABLE contents ADD COLUMN link_places json;
