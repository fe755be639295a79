-- compatible since: 16
-- The document that a template's or a broadcast's HTML was made of, and how a team's mail looks (docs/decisions/0183).
-- The previous release neither reads nor writes them: a document counts only beside the HTML that it made.
ALTER TABLE template_versions ADD COLUMN source json;
ALTER TABLE template_versions ADD COLUMN published_at timestamptz;
ALTER TABLE broadcasts ADD COLUMN source json;
ALTER TABLE teams ADD COLUMN mail_theme jsonb;
