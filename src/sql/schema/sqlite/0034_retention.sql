-- What is removed when its time is over. The rows of results stay and say since when the
-- file is gone.
CREATE INDEX pawl.outcome_result ON outcome (finished_at)
    WHERE result_path IS NOT NULL AND result_gone_at IS NULL;
