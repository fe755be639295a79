-- compatible since: 16
-- Accounts that may see the screens of the installation. The previous release asks for no column of this name.
ALTER TABLE people ADD COLUMN is_operator boolean NOT NULL DEFAULT false;
