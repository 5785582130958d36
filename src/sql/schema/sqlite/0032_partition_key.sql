-- By which key a step was cut: its ranges mean nothing for another one.
ALTER TABLE pawl.step_partition ADD COLUMN cut_by text NOT NULL DEFAULT '';
