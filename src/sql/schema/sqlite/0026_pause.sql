-- Jobs and lanes that are paused: what waits of them stays where it is and is not
-- claimed. Nearly always empty, and read by every claim.
CREATE TABLE pawl.paused (
    kind text NOT NULL CHECK (kind IN ('job', 'lane')),
    name text NOT NULL,
    paused_by text NOT NULL,
    paused_at integer NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
