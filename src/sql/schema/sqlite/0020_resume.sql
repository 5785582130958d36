-- Going on with an instance. confirmed: one of its parameters was good for its own
-- request only, so it is never gone on with. resumed_from: the execution that this one
-- went on from.
ALTER TABLE pawl.instance ADD COLUMN confirmed integer NOT NULL DEFAULT 0
    CHECK (confirmed IN (0, 1));
ALTER TABLE pawl.execution ADD COLUMN resumed_from integer;
