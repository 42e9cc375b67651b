-- A search looks into the latest days first: which matches of a word are of those days is known from the index alone.

SET LOCAL maintenance_work_mem = '256MB';

CREATE FUNCTION run_day(hour timestamptz) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN floor(extract(epoch FROM hour - TIMESTAMPTZ '2000-01-01 00:00:00Z') / 86400)::integer;

-- Day, and block of 32 days, of a team's run. Teams are told apart by the random end of their id: where two have the same
-- one, each finds some runs of the other and drops them.
CREATE FUNCTION run_days(team_id uuid, hour timestamptz) RETURNS integer[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ARRAY[
    ('x' || right(team_id::text, 8))::bit(32)::integer # run_day(hour),
    ('x' || right(team_id::text, 8))::bit(32)::integer # (65536 + (run_day(hour) >> 5))];

-- What `run_days` of a run overlaps where it changed last in these days: whole blocks, and the days beside them.
CREATE FUNCTION run_days_between(team_id uuid, first timestamptz, last timestamptz) RETURNS integer[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (
    WITH blocks AS (
      SELECT b, b << 5 >= run_day(first) AND (b << 5) + 31 <= run_day(last) AS whole
      FROM generate_series(run_day(first) >> 5, run_day(last) >> 5) b
    ), marks AS (
      SELECT 65536 + b AS mark FROM blocks WHERE whole
      UNION ALL
      SELECT d FROM generate_series(run_day(first), run_day(last)) d JOIN blocks ON b = d >> 5 WHERE NOT whole
    )
    SELECT coalesce(array_agg(('x' || right(team_id::text, 8))::bit(32)::integer # mark), '{}') FROM marks);

DROP INDEX run_search_words, run_search_heading;
ALTER TABLE run_search ADD COLUMN days integer[] NOT NULL GENERATED ALWAYS AS (run_days(team_id, updated_hour)) STORED;
-- One for all, so that words, parts of titles and days are brought together within it.
CREATE INDEX run_search_find ON run_search USING gin (words, heading gin_trgm_ops, days);
