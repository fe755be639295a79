-- compatible since: 16
-- Nothing changed in this step; its number is there so that the numbers have no gap.
SELECT 1;
