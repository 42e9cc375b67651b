-- What `q` finds (docs/decisions/run-list.md). A table of its own: a run's row changes often, its words do not.

SET LOCAL maintenance_work_mem = '256MB';

-- In any language, without endings or stop words. Punctuation parts them: PostgreSQL's parser would keep URLs, paths and versions whole.
CREATE FUNCTION search_words(of text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN tsvector_to_array(to_tsvector('simple'::regconfig, translate(of,
    $t$!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~‘’“”„«»–—…·•→$t$, repeat(' ', 45))));

-- Mondays at midnight, UTC.
CREATE FUNCTION search_week(at timestamptz) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN floor(extract(epoch FROM at - TIMESTAMPTZ '2000-01-03 00:00:00Z') / 604800)::integer;

-- Begins each of the parts of words of a team's runs of one week, six characters, so that the index keeps them together.
-- Teams are told apart by the random end of their id: where two have the same one, each finds some runs of the other and drops them.
CREATE FUNCTION search_mark(team_id uuid, week integer) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN left(encode(int4send(('x' || right(team_id::text, 8))::bit(32)::integer # week), 'base64'), 6);

-- What a run is found by, without the mark: `=` and a word; `~` and what is left of a word of title or skill without its first
-- letters; `?` and such a word, without digits, whole and with each of its letters left out, by which misspelt ones meet.
CREATE FUNCTION search_parts(title text, skill_spec text, prompt text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (
    WITH heading AS MATERIALIZED (
      SELECT left(word, 40) AS word, word !~ '\d' AND length(word) > 3 AS has_like
      FROM unnest(search_words(left(title, 500) || ' ' || coalesce(skill_spec, ''))) word
    )
    SELECT coalesce(array_agg(part), '{}') FROM (
      SELECT '=' || left(word, 40) AS part FROM unnest(search_words(left(prompt, 4000))) word
      UNION ALL SELECT '=' || word FROM heading
      UNION ALL SELECT '~' || substr(word, n) FROM heading, generate_series(2, length(word) - 2) n
      UNION ALL SELECT '?' || word FROM heading WHERE has_like
      UNION ALL SELECT '?' || overlay(word PLACING '' FROM n FOR 1) FROM heading, generate_series(1, length(word)) n WHERE has_like
    ) parts);

CREATE FUNCTION mark_parts(mark text, parts text[]) RETURNS tsvector
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN array_to_tsvector(ARRAY(SELECT mark || part FROM unnest(parts) part));

-- The long column is kept out of the row: the rows of many matches are read for their hour alone.
CREATE TABLE run_search (
  run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  team_id uuid NOT NULL,
  updated_hour timestamptz NOT NULL,
  -- Marked by team and week of `updated_hour`.
  parts tsvector NOT NULL
) WITH (fillfactor = 90, toast_tuple_target = 128);

INSERT INTO run_search (run_id, team_id, updated_hour, parts)
SELECT id, team_id, run_hour(updated_at),
  mark_parts(search_mark(team_id, search_week(run_hour(updated_at))), search_parts(title, skill_spec, prompt)) FROM runs;

-- Without a list of pending entries: each look at one of many weeks would read it from end to end.
CREATE INDEX run_search_parts ON run_search USING gin (parts) WITH (fastupdate = off);

-- Taking words apart costs more than creating a run, so it is done afterwards, in turns. At most 100 runs in a row.
CREATE TABLE run_search_waiting (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_ids uuid[] NOT NULL
);

CREATE FUNCTION await_run_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_search_waiting (run_ids)
  SELECT array_agg(id) FROM (SELECT id, (row_number() OVER () - 1) / 100 AS part FROM new_runs) waiting GROUP BY part;
  RETURN NULL;
END $$;
CREATE TRIGGER await_run_search AFTER INSERT ON runs REFERENCING NEW TABLE AS new_runs
  FOR EACH STATEMENT EXECUTE FUNCTION await_run_search();

-- Seldom, so at once: whoever takes apart the old words at the same time does not write over these.
CREATE FUNCTION index_run_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_search (run_id, team_id, updated_hour, parts)
  VALUES (NEW.id, NEW.team_id, run_hour(NEW.updated_at),
    mark_parts(search_mark(NEW.team_id, search_week(run_hour(NEW.updated_at))), search_parts(NEW.title, NEW.skill_spec, NEW.prompt)))
  ON CONFLICT (run_id) DO UPDATE SET updated_hour = excluded.updated_hour, parts = excluded.parts;
  RETURN NULL;
END $$;
CREATE TRIGGER index_run_words AFTER UPDATE OF title, skill_spec, prompt ON runs
  FOR EACH ROW WHEN ((OLD.title, OLD.skill_spec, OLD.prompt) IS DISTINCT FROM (NEW.title, NEW.skill_spec, NEW.prompt))
  EXECUTE FUNCTION index_run_words();

-- The parts of a run that changes after `before`: as they are, or in another week with another mark.
CREATE FUNCTION move_parts(parts tsvector, team_id uuid, before timestamptz, after timestamptz) RETURNS tsvector
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN search_week(before) = search_week(after) THEN parts ELSE
    mark_parts(search_mark(team_id, search_week(after)), ARRAY(SELECT substr(part, 7) FROM unnest(tsvector_to_array(parts)) part)) END;

CREATE OR REPLACE FUNCTION move_run_hour() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE run_search
  SET updated_hour = run_hour(NEW.updated_at), parts = move_parts(parts, team_id, updated_hour, run_hour(NEW.updated_at))
  WHERE run_id = NEW.id;
  UPDATE run_facets SET updated_hour = run_hour(NEW.updated_at) WHERE run_id = NEW.id;
  RETURN NULL;
END $$;
