-- compatible since: 16
-- A team's choices for its page to unsubscribe: title, texts, logo and colours. The previous release neither reads
-- nor writes it, and shows the page as it was.
ALTER TABLE teams ADD COLUMN unsubscribe_page jsonb;
