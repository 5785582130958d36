-- What a step was when it was begun: what has become another kind of step cannot be gone
-- on with. NULL: begun before this was noted.
ALTER TABLE pawl.step_execution ADD COLUMN kind text;
