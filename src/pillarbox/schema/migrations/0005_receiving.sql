-- Receiving: what inbound mail asks of the database.
SELECT 1;
