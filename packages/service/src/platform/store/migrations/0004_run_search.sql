-- The search index behind the parameter `q` of GET /agent/runs (docs/decisions/run-list.md).

-- Returns the words of a text in any language, with their endings and with stop words. Punctuation separates words: PostgreSQL's own
-- parser would keep URLs, paths and versions whole. A regular expression, because translate() compares each letter with all 45
-- characters, which doubles the time of the search index.
CREATE FUNCTION search_words(of text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN tsvector_to_array(to_tsvector('simple'::regconfig,
    regexp_replace(of, $re$[!-/:-@[-`{-~‘’“”„«»–—…·•→]+$re$, ' ', 'g')));

-- Returns the number of a week. Weeks begin on Mondays at midnight, UTC.
CREATE FUNCTION search_week(at timestamptz) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN floor(extract(epoch FROM at - TIMESTAMPTZ '2000-01-03 00:00:00Z') / 604800)::integer;

-- Returns the six characters with which each part of a team's runs of one week begins, so that the index keeps these parts
-- together. Teams differ by the random end of their id: two teams with the same end find some of each other's runs, and the
-- query drops those of the other team.
CREATE FUNCTION search_mark(team_id uuid, week integer) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN left(encode(int4send(('x' || right(team_id::text, 8))::bit(32)::integer # week), 'base64'), 6);

-- Returns the parts by which a search finds a run, without the mark:
-- `=` and a word;
-- `~` and the rest of a word of title or skill without its first letters;
-- `?` and a word of title or skill that has no digits: whole, and once without each of its letters, so that a misspelt word
-- shares a part with the right one.
-- PostgreSQL inlines it into the calling statement, which then has one plan for all runs.
CREATE FUNCTION each_search_part(title text, skill_spec text, prompt text) RETURNS SETOF text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    WITH heading AS MATERIALIZED (
      SELECT left(word, 40) AS word, word !~ '\d' AND length(word) > 3 AS has_like
      FROM unnest(search_words(left(title, 500) || ' ' || coalesce(skill_spec, ''))) word
    )
    SELECT '=' || left(word, 40) FROM unnest(search_words(left(prompt, 4000))) word
    UNION ALL SELECT '=' || word FROM heading
    UNION ALL SELECT '~' || substr(word, n) FROM heading, generate_series(2, length(word) - 2) n
    UNION ALL SELECT '?' || word FROM heading WHERE has_like
    UNION ALL SELECT '?' || overlay(word PLACING '' FROM n FOR 1) FROM heading, generate_series(1, length(word)) n WHERE has_like
  $$;

-- Returns each_search_part as an array. In PL/pgSQL with one plan for each connection: PostgreSQL plans an SQL function anew for each row,
-- which takes half of the time of the search index.
CREATE FUNCTION search_parts(title text, skill_spec text, prompt text) RETURNS text[]
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (SELECT coalesce(array_agg(part), '{}') FROM each_search_part(title, skill_spec, prompt) part);
END $$;

-- Puts the mark before each part. In PL/pgSQL for the same reason as search_parts.
CREATE FUNCTION mark_parts(mark text, parts text[]) RETURNS tsvector
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN array_to_tsvector(ARRAY(SELECT mark || part FROM unnest(parts) part));
END $$;

-- Returns the parts of a run that changed at `before` and again at `after`: in another week they have another mark.
CREATE FUNCTION move_parts(parts tsvector, team_id uuid, before timestamptz, after timestamptz) RETURNS tsvector
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN search_week(before) = search_week(after) THEN parts ELSE
    mark_parts(search_mark(team_id, search_week(after)), ARRAY(SELECT substr(part, 7) FROM unnest(tsvector_to_array(parts)) part)) END;

-- The parts of each run. A table of its own, because a run's row changes often and its words do not. The low
-- toast_tuple_target keeps `parts` out of the row: a search reads the rows of many matches only for their hour.
CREATE TABLE run_search (
  run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  team_id uuid NOT NULL,
  -- run_hour of the run.
  updated_hour timestamptz NOT NULL,
  -- search_parts with the mark of the team and of the week of `updated_hour`.
  parts tsvector NOT NULL
) WITH (fillfactor = 90, toast_tuple_target = 128);
-- New runs wait in the list of pending entries and are added to the index together: the background loop empties the list before it
-- commits (runs/list/search-index.ts). So a run writes 4 KB of log; added alone it would write 80 KB, because the words of all prompts of
-- a week have long lists of runs. The limit, in KB, bounds the pending entries that a search reads.
CREATE INDEX run_search_parts ON run_search USING gin (parts) WITH (fastupdate = on, gin_pending_list_limit = 1024);

-- New runs that are not in run_search yet, at most 100 per row. Computing their parts costs more than creating a run, so a
-- background loop does it.
CREATE TABLE run_search_waiting (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_ids uuid[] NOT NULL
);

-- Adds new runs to run_search_waiting.
CREATE FUNCTION await_run_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_search_waiting (run_ids)
  SELECT array_agg(id) FROM (SELECT id, (row_number() OVER () - 1) / 100 AS part FROM new_runs) waiting GROUP BY part;
  RETURN NULL;
END $$;
CREATE TRIGGER await_run_search AFTER INSERT ON runs REFERENCING NEW TABLE AS new_runs
  FOR EACH STATEMENT EXECUTE FUNCTION await_run_search();

-- Updates run_search when the words of a run change. Such changes are rare, so this happens at once: the background loop,
-- which may have read the old words, inserts no second row and does not overwrite this one.
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

-- Copies the hour of a run's last change to run_search and run_facets when a new hour begins.
CREATE FUNCTION move_run_hour() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE run_search
  SET updated_hour = run_hour(NEW.updated_at), parts = move_parts(parts, team_id, updated_hour, run_hour(NEW.updated_at))
  WHERE run_id = NEW.id;
  UPDATE run_facets SET updated_hour = run_hour(NEW.updated_at) WHERE run_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER move_run_hour AFTER UPDATE ON runs
  FOR EACH ROW WHEN (run_hour(OLD.updated_at) <> run_hour(NEW.updated_at)) EXECUTE FUNCTION move_run_hour();
