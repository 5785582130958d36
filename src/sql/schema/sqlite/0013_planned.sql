-- How many steps the job had when the execution began: without it nobody but the run
-- itself could tell that all of them are COMPLETED. NULL: begun before this was kept.
ALTER TABLE pawl.execution ADD COLUMN planned integer;
