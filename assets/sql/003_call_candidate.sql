-- Which candidate's making a call was part of; NULL: no single one's (a plan), or not recorded.
ALTER TABLE call ADD COLUMN candidate INTEGER;
