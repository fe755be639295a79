-- compatible since: 16
-- accepted removal: the constraint is replaced at once by a wider one, of a small table; the previous release writes
-- none of the new status
-- accepted scan: the table is small
-- What the wizard keeps of an import: the file before its columns are mapped (status `uploaded`), who brought it and
-- where its people come from, and how far it is undone. The previous release neither reads nor writes these columns.
ALTER TABLE contact_imports DROP CONSTRAINT contact_imports_status_check;
ALTER TABLE contact_imports ADD CONSTRAINT contact_imports_status_check
    CHECK (status IN ('uploaded', 'queued', 'in_progress', 'completed', 'failed'));
ALTER TABLE contact_imports ADD COLUMN file_name text;
ALTER TABLE contact_imports ADD COLUMN created_by text;
ALTER TABLE contact_imports ADD COLUMN consent_note text;
ALTER TABLE contact_imports ADD COLUMN preview json;
ALTER TABLE contact_imports ADD COLUMN undo_requested_at timestamptz;
ALTER TABLE contact_imports ADD COLUMN undone_at timestamptz;
ALTER TABLE contact_imports ADD COLUMN undo_after uuid;
ALTER TABLE contact_imports ADD COLUMN undo_removed bigint NOT NULL DEFAULT 0;
ALTER TABLE contact_imports ADD COLUMN undo_kept bigint NOT NULL DEFAULT 0;
-- The import that made a contact, and when it last wrote it: while that is `updated_at`, nobody has changed it since.
ALTER TABLE contacts ADD COLUMN import_id uuid;
ALTER TABLE contacts ADD COLUMN imported_at timestamptz;
