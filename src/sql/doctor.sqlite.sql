-- SQLite's settings.

-- name: doctor_pragmas () -> (version text, journal_mode text, synchronous bigint,
-- foreign_keys bigint)
SELECT sqlite_version() AS version,
    (SELECT journal_mode FROM pragma_journal_mode) AS journal_mode,
    (SELECT synchronous FROM pragma_synchronous) AS synchronous,
    (SELECT foreign_keys FROM pragma_foreign_keys) AS foreign_keys;
