-- A row: an administrator asks over an api that this execution be ended, whose worker is
-- dead. A worker carries it out and takes the row away; so does who asked, when none came.
CREATE TABLE pawl.recovery (
    execution_id integer PRIMARY KEY,
    actor text NOT NULL,
    asked_at integer NOT NULL
) STRICT;
