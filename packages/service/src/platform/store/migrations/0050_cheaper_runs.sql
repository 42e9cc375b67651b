-- Less work for each new run and each delivery that starts one.

-- The words of a text, as before. translate() compares each letter with all 45 characters: it took half of the time of the search index.
CREATE OR REPLACE FUNCTION search_words(of text) RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN tsvector_to_array(to_tsvector('simple'::regconfig,
    regexp_replace(of, $re$[!-/:-@[-`{-~‘’“”„«»–—…·•→]+$re$, ' ', 'g')));

-- Returns the parts of search_parts one by one. PostgreSQL takes it into the statement that calls it, which so has one plan for all runs.
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
CREATE OR REPLACE FUNCTION search_parts(title text, skill_spec text, prompt text) RETURNS text[]
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN (SELECT coalesce(array_agg(part), '{}') FROM each_search_part(title, skill_spec, prompt) part);
END $$;

-- New runs are added to the index together: index_run_words empties the list of pending entries before it commits
-- (runs/list/search-index.ts). Added one by one, each run wrote 80 KB of log, because the words of all prompts of a week have long
-- lists of runs; so it writes 4 KB. The limit bounds what a search reads besides, in KB.
ALTER INDEX run_search_parts SET (fastupdate = on, gin_pending_list_limit = 1024);

-- Like executions and run_events, these tables have no foreign key to runs: each of their rows is written by a statement that inserts or
-- locks the row of its run. The checks took a seventh of a create.
ALTER TABLE run_facets DROP CONSTRAINT run_facets_run_id_fkey;
ALTER TABLE attachments DROP CONSTRAINT attachments_run_id_fkey;
CREATE OR REPLACE FUNCTION delete_parts_of_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM run_events WHERE run_id IN (SELECT id FROM deleted_runs);
  DELETE FROM executions WHERE run_id IN (SELECT id FROM deleted_runs);
  DELETE FROM run_facets WHERE run_id IN (SELECT id FROM deleted_runs);
  DELETE FROM attachments WHERE run_id IN (SELECT id FROM deleted_runs);
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION truncate_parts_of_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  TRUNCATE run_events, executions, run_facets, attachments CASCADE;
  RETURN NULL;
END $$;
