-- A record says which version of the list of fields it was written by (src/eval/record.def). Those
-- from before that was recorded are of version 1; every record of that time begins with its verdict.
UPDATE outcome SET record = '{"schema":1,' || substr(record, 2) WHERE record LIKE '{"verdict":%';
UPDATE meta SET value = '{"schema":1,' || substr(value, 2)
    WHERE (key LIKE 'confirmed!_%' ESCAPE '!' OR key LIKE 'watched!_%' ESCAPE '!')
      AND value LIKE '{"verdict":%';
