-- The oldest first, without looking through those that are kept.
CREATE INDEX pawl.schedule_slot_age ON schedule_slot (last_time);
