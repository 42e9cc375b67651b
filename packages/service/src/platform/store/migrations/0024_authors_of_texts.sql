-- Who wrote each text of a content (docs/decisions/rights.md), the executor of schedules and automations, and the connectors of a pool of
-- workers as part of its revision.

-- For each text of the content, and for each list or map that was written empty, lost an entry or got another order:
-- {key: {since, authors}}. `since`: the revision since which it is unchanged. `authors`: [{kind, uid} or null for an unknown one].
-- The key of a text is its path as a JSON list. The key of a list or map is '-' and its path.
ALTER TABLE content_revisions ADD COLUMN texts jsonb NOT NULL DEFAULT '{}';

-- Returns a principal as `texts` names it; JSON null if it is not known.
CREATE FUNCTION actor_of(kind text, uid text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN kind IS NULL OR uid IS NULL THEN 'null'::jsonb ELSE jsonb_build_object('kind', kind, 'uid', uid) END
$$;

-- Returns whether the members of this object have fixed names: the content itself, and a configuration of runs in it.
CREATE FUNCTION has_fixed_members(path text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT cardinality(path) = 0
    OR (cardinality(path) = 1 AND path[1] IN ('config', 'agent_config', 'agent_defaults'))
    OR (cardinality(path) = 3 AND path[1] = 'agents' AND path[3] = 'config')
$$;

-- Returns the members of an object and the entries of a list. The name of an entry is its own name or path if all entries have different
-- ones; otherwise it is a hash of the entry, which is then one text (`is_whole`).
CREATE FUNCTION members_of(path text[], holder jsonb)
RETURNS TABLE (name text, member jsonb, place bigint, is_whole boolean) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  -- The times of a trigger are no text.
  without text := CASE WHEN path = ARRAY['triggers'] THEN 'schedule' ELSE '' END;
BEGIN
  IF jsonb_typeof(holder) = 'object' THEN
    RETURN QUERY SELECT m.key, m.value, 0::bigint, false FROM jsonb_each(holder) m
      WHERE m.value <> 'null' AND NOT (has_fixed_members(path) AND m.key IN ('name', 'description', 'icon', 'enabled'))
        -- The person of a personal schedule; the variables of an MCP server are in `env`.
        AND NOT (cardinality(path) = 0 AND m.key IN ('owner', 'env_names', 'env_number'));
  ELSIF jsonb_typeof(holder) <> 'array' THEN
    RETURN;
  ELSIF (SELECT count(DISTINCT k.name) = count(*) AND count(k.name) = count(*) FROM (
      SELECT CASE WHEN jsonb_typeof(e) <> 'object' THEN NULL
        WHEN jsonb_typeof(e->'name') = 'string' THEN e->>'name'
        WHEN coalesce(e->'name', 'null') = 'null' AND jsonb_typeof(e->'path') = 'string' THEN e->>'path' END AS name
      FROM jsonb_array_elements(holder) e) k) THEN
    RETURN QUERY SELECT coalesce(e->>'name', e->>'path'), e, n, false FROM jsonb_array_elements(holder) WITH ORDINALITY AS l (e, n);
  ELSE
    RETURN QUERY SELECT '=' || h.hash || CASE h.nth WHEN 1 THEN '' ELSE '#' || h.nth END, h.e, h.n, true FROM (
      SELECT k.hash, k.e, k.n, row_number() OVER (PARTITION BY k.hash ORDER BY k.n) AS nth FROM (
        SELECT left(encode(sha256(convert_to((CASE jsonb_typeof(e) WHEN 'object' THEN e - without ELSE e END)::text, 'UTF8')), 'hex'), 32) AS hash,
          CASE jsonb_typeof(e) WHEN 'object' THEN e - without ELSE e END AS e, n
        FROM jsonb_array_elements(holder) WITH ORDINALITY AS l (e, n)) k) h;
  END IF;
END $$;

-- Returns the content as a tree. `is_text`: a text; otherwise a list or map. null is no node.
CREATE FUNCTION nodes_of(content jsonb)
RETURNS TABLE (path text[], value jsonb, place bigint, is_text boolean) LANGUAGE sql IMMUTABLE AS $$
  WITH RECURSIVE node (path, value, place, is_text) AS (
    SELECT '{}'::text[], content, 0::bigint, false
    UNION ALL
    SELECT n.path || m.name, m.member, m.place,
      m.is_whole OR jsonb_typeof(m.member) NOT IN ('object', 'array')
    FROM node n CROSS JOIN LATERAL members_of(n.path, n.value) m WHERE NOT n.is_text
  )
  SELECT * FROM node
$$;

-- Returns the authors of the texts of a content after a change (`content_revisions.texts`).
-- `texts_before`: those of the content before the change. `accepted`: those of the revision that the sender has accepted, or NULL.
-- An unchanged text keeps its authors. A changed or new text has the sender as author, and so has a list or map that was written empty,
-- lost an entry or got another order. A changed text also keeps those earlier authors whom the sender has not accepted, and so does a
-- new entry of a list or map that lost another entry in the same change, because it may be this entry in a changed form.
-- `keeps_earlier`: false leaves out these earlier authors.
CREATE FUNCTION texts_after_change(
  before jsonb, texts_before jsonb, accepted jsonb, after jsonb, number integer, sender jsonb, keeps_earlier boolean)
RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  WITH old AS MATERIALIZED (SELECT * FROM nodes_of(before) WHERE before IS NOT NULL),
  new AS MATERIALIZED (SELECT * FROM nodes_of(after)),
  known AS MATERIALIZED (SELECT k.key, k.value FROM jsonb_each(texts_before) k),
  held AS MATERIALIZED (SELECT k.key, k.value->'since' AS since FROM jsonb_each(accepted) k),
  -- The earlier authors of each text whom the sender has not accepted.
  earlier AS MATERIALIZED (
    SELECT k.key, a.author FROM known k CROSS JOIN LATERAL jsonb_array_elements(k.value->'authors') AS a (author)
    WHERE keeps_earlier AND a.author <> sender AND NOT EXISTS (SELECT FROM held h WHERE h.key = k.key AND h.since = k.value->'since')
  ),
  -- Texts and empty lists that are gone, and new texts: with the longest part of their path that the other content has.
  lost AS MATERIALIZED (
    SELECT CASE WHEN o.is_text THEN '' ELSE '-' END || to_jsonb(o.path)::text AS key, o.path[1:max(g)] AS holder FROM old o
    CROSS JOIN LATERAL generate_series(0, cardinality(o.path)) g JOIN new n ON n.path = o.path[1:g]
    WHERE (o.is_text OR o.value IN ('[]', '{}')) AND NOT EXISTS (SELECT FROM new x WHERE x.path = o.path AND x.is_text = o.is_text)
    GROUP BY o.path, o.is_text
  ),
  made AS MATERIALIZED (
    SELECT n.path, n.path[1:max(g)] AS holder FROM new n
    CROSS JOIN LATERAL generate_series(0, cardinality(n.path)) g LEFT JOIN old o ON o.path = n.path[1:g]
    WHERE n.is_text AND NOT EXISTS (SELECT FROM old x WHERE x.path = n.path AND x.is_text) AND (g = 0 OR o.path IS NOT NULL)
    GROUP BY n.path
  ),
  same AS (
    SELECT n.path, o.value = n.value AS is_same FROM new n JOIN old o ON o.path = n.path AND o.is_text WHERE n.is_text
  ),
  -- Lists whose entries have another order.
  moved AS (
    SELECT n.path[1:cardinality(n.path) - 1] AS path FROM new n JOIN old o ON o.path = n.path WHERE n.place > 0 AND o.place > 0
    GROUP BY 1 HAVING array_agg(n.path[cardinality(n.path)] ORDER BY n.place) <> array_agg(n.path[cardinality(n.path)] ORDER BY o.place)
  ),
  changed_holders AS (
    SELECT n.path FROM new n LEFT JOIN old o ON o.path = n.path AND jsonb_typeof(o.value) = jsonb_typeof(n.value)
    WHERE NOT n.is_text AND ((o.path IS NULL AND (n.value IN ('[]', '{}') OR (n.path = '{}' AND (SELECT count(*) FROM new) = 1)))
      OR n.path IN (SELECT holder FROM lost UNION ALL SELECT path FROM moved))
  ),
  changed (key, earlier_key) AS (
    SELECT to_jsonb(path)::text, to_jsonb(path)::text FROM same WHERE NOT is_same
    UNION ALL SELECT to_jsonb(m.path)::text, l.key FROM made m
      LEFT JOIN lost l ON l.holder = m.holder AND NOT has_fixed_members(l.holder)
    UNION ALL SELECT '-' || to_jsonb(path)::text, '-' || to_jsonb(path)::text FROM changed_holders
  ),
  result (key, value) AS (
    SELECT c.key, jsonb_build_object('since', number, 'authors',
      jsonb_build_array(sender) || coalesce(jsonb_agg(DISTINCT e.author) FILTER (WHERE e.author IS NOT NULL), '[]'))
    FROM changed c LEFT JOIN earlier e ON e.key = c.earlier_key GROUP BY c.key
    UNION ALL
    SELECT to_jsonb(s.path)::text, coalesce(k.value, jsonb_build_object('since', number, 'authors', jsonb_build_array(sender)))
    FROM same s LEFT JOIN known k ON k.key = to_jsonb(s.path)::text WHERE s.is_same
    UNION ALL
    SELECT k.key, k.value FROM new n JOIN known k ON k.key = '-' || to_jsonb(n.path)::text
    WHERE NOT n.is_text AND NOT EXISTS (SELECT FROM changed_holders h WHERE h.path = n.path)
  )
  SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM result
$$;

-- Returns the texts of a revision that have another value in `base`: the texts of another revision of the content, or NULL.
CREATE FUNCTION texts_that_differ(texts jsonb, base jsonb) RETURNS TABLE (key text, since jsonb, authors jsonb) LANGUAGE sql IMMUTABLE AS $$
  SELECT t.key, t.value->'since', t.value->'authors' FROM jsonb_each(texts) t
  WHERE NOT EXISTS (SELECT FROM jsonb_each(base) b WHERE b.key = t.key AND b.value->'since' = t.value->'since')
$$;

-- Returns the authors of those texts of a revision that the principal has neither written nor accepted. `author`: NULL for an unknown one.
-- `accepted_by`: UIDs of other people who have accepted all these texts of the author.
CREATE FUNCTION open_authors(kind_of text, uid_of text, texts_of jsonb, principal_kind text, principal_uid text)
RETURNS TABLE (author jsonb, accepted_by text[], texts text[]) LANGUAGE sql STABLE COST 5000 ROWS 2 AS $$
  WITH own AS MATERIALIZED (
    SELECT t.key, nullif(a.author, 'null') AS author, t.since FROM texts_that_differ(texts_of, (
      SELECT r.texts FROM acceptances a JOIN content_revisions r USING (kind, uid, revision)
      WHERE a.user_uid = principal_uid AND a.kind = kind_of AND a.uid = uid_of AND principal_kind = 'user')) t
    CROSS JOIN LATERAL jsonb_array_elements(t.authors) AS a (author)
    WHERE a.author IS DISTINCT FROM jsonb_build_object('kind', principal_kind, 'uid', principal_uid)
    -- Every revision has texts. Without them, the authors are not known.
    UNION ALL SELECT '', NULL, NULL WHERE texts_of = '{}'
  ),
  others AS MATERIALIZED (
    SELECT a.user_uid, t.key, t.value->'since' AS since FROM acceptances a JOIN content_revisions r USING (kind, uid, revision)
    CROSS JOIN LATERAL jsonb_each(r.texts) t
    WHERE a.kind = kind_of AND a.uid = uid_of AND NOT (principal_kind = 'user' AND a.user_uid = principal_uid) AND EXISTS (SELECT FROM own)
  ),
  found AS (
    SELECT o.key, o.author, coalesce((SELECT array_agg(x.user_uid ORDER BY x.user_uid) FROM others x
      WHERE x.key = o.key AND x.since = o.since), '{}') AS accepted_by FROM own o
  )
  SELECT author, accepted_by, array_agg(key ORDER BY key) FROM found GROUP BY author, accepted_by ORDER BY author->>'uid', accepted_by
$$;

-- Writes a revision if the content differs from the present one, and returns the number of the present one. Of the earlier revisions it
-- keeps the last hundred, up to 4 MB as stored but at least five, and all revisions that a person has accepted or a run in progress
-- executes.
CREATE OR REPLACE FUNCTION write_revision(kind_of text, uid_of text, team uuid, author_kind_of text, author_uid_of text, content_of jsonb)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  last content_revisions;
  accepted jsonb;
  number integer;
  earlier bigint;
  bytes bigint;
BEGIN
  SELECT * INTO last FROM content_revisions c WHERE c.kind = kind_of AND c.uid = uid_of ORDER BY c.revision DESC LIMIT 1;
  IF last.content = content_of AND last.superseded_at IS NULL THEN
    RETURN last.revision;
  END IF;
  number := coalesce(last.revision, 0) + 1;
  IF last.superseded_at IS NOT NULL THEN
    -- The content was deleted, and this is another one under its UID.
    last := NULL;
  END IF;
  SELECT r.texts INTO accepted FROM acceptances a JOIN content_revisions r USING (kind, uid, revision)
    WHERE author_kind_of = 'user' AND a.user_uid = author_uid_of AND a.kind = kind_of AND a.uid = uid_of;
  UPDATE content_revisions c SET superseded_at = clock_timestamp()
    WHERE c.kind = kind_of AND c.uid = uid_of AND c.revision = last.revision AND c.superseded_at IS NULL;
  INSERT INTO content_revisions (kind, uid, revision, team_id, author_kind, author_uid, content, texts)
    VALUES (kind_of, uid_of, number, team, author_kind_of, author_uid_of, content_of, texts_after_change(
      last.content, last.texts, accepted, content_of, number, actor_of(author_kind_of, author_uid_of), true));
  IF number <= 6 THEN
    RETURN number;
  END IF;
  -- A look at the revisions in need reads all runs in progress, so some more than a hundred may gather between two of them.
  SELECT count(*), sum(pg_column_size(c.content)) INTO earlier, bytes FROM content_revisions c
    WHERE c.kind = kind_of AND c.uid = uid_of AND c.revision < number;
  IF earlier >= 120 OR (earlier > 5 AND bytes > 8 * 1024 * 1024) THEN
    DELETE FROM content_revisions c USING (
      SELECT k.revision, row_number() OVER later AS rank, sum(pg_column_size(k.content)) OVER later AS bytes
      FROM content_revisions k WHERE k.kind = kind_of AND k.uid = uid_of AND k.revision < number
      WINDOW later AS (ORDER BY k.revision DESC)
    ) k
    WHERE c.kind = kind_of AND c.uid = uid_of AND c.revision = k.revision
      AND (k.rank > 100 OR (k.rank > 5 AND k.bytes > 4 * 1024 * 1024))
      AND NOT EXISTS (SELECT FROM acceptances a WHERE a.kind = kind_of AND a.uid = uid_of AND a.revision = c.revision)
      AND c.revision NOT IN (
        SELECT (e->>'revision')::integer FROM runs r CROSS JOIN jsonb_array_elements(r.contents) e
        WHERE r.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED')
          AND e->>'kind' = kind_of AND e->>'uid' = uid_of AND e->>'revision' IS NOT NULL);
  END IF;
  RETURN number;
END $$;

-- The values of a server are sealed. A revision has a number for each, which changes with the value.

-- {name: number}: the state of `values_number` when the value was last changed.
ALTER TABLE mcp_servers ADD COLUMN value_numbers jsonb NOT NULL DEFAULT '{}';

CREATE OR REPLACE FUNCTION revise_mcp_server() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Code that does not know value_numbers has replaced all values.
  IF TG_OP = 'UPDATE' THEN
    IF NEW.values_number <> OLD.values_number AND NEW.value_numbers = OLD.value_numbers THEN
      NEW.value_numbers := '{}';
    END IF;
  END IF;
  NEW.value_numbers := (SELECT coalesce(jsonb_object_agg(n, coalesce(NEW.value_numbers->n, to_jsonb(NEW.values_number))), '{}')
    FROM unnest(NEW.value_names) n);
  NEW.revision := write_revision('mcp_server', NEW.id::text, NEW.team_id, NEW.editor_kind, NEW.editor_uid, jsonb_build_object(
    'name', NEW.name, 'command', NEW.command, 'args', NEW.args, 'env_names', NEW.value_names, 'env_number', NEW.values_number,
    'env', NEW.value_numbers));
  RETURN NEW;
END $$;

UPDATE content_revisions c SET content = c.content || jsonb_build_object('env', (
    SELECT coalesce(jsonb_object_agg(n, c.content->'env_number'), '{}') FROM jsonb_array_elements_text(c.content->'env_names') n))
  WHERE c.kind = 'mcp_server' AND jsonb_typeof(c.content->'env_names') = 'array';
UPDATE mcp_servers SET value_numbers = (SELECT coalesce(jsonb_object_agg(n, values_number), '{}') FROM unnest(value_names) n);

-- The author of a text is that of the oldest stored revision since which the value is unchanged.
DO $$
DECLARE
  c record;
  before content_revisions;
  texts_of_it jsonb;
BEGIN
  FOR c IN SELECT kind, uid, revision FROM content_revisions ORDER BY kind, uid, revision LOOP
    DECLARE
      present content_revisions;
    BEGIN
      SELECT * INTO present FROM content_revisions r WHERE r.kind = c.kind AND r.uid = c.uid AND r.revision = c.revision;
      IF before.kind IS DISTINCT FROM c.kind OR before.uid IS DISTINCT FROM c.uid THEN
        before := NULL;
      END IF;
      texts_of_it := texts_after_change(before.content, before.texts, NULL, present.content, present.revision,
        actor_of(present.author_kind, present.author_uid), false);
      UPDATE content_revisions r SET texts = texts_of_it WHERE r.kind = c.kind AND r.uid = c.uid AND r.revision = c.revision;
      before := present;
      before.texts := texts_of_it;
    END;
  END LOOP;
END $$;

-- The runs of a schedule or an automation act as its executor. An edit does not change it. Before, it was the last editor.
ALTER TABLE schedules ADD COLUMN executor_kind text CHECK (executor_kind IN ('user', 'service_account'));
ALTER TABLE schedules ADD COLUMN executor_uid text;
ALTER TABLE automations ADD COLUMN executor_kind text CHECK (executor_kind IN ('user', 'service_account'));
ALTER TABLE automations ADD COLUMN executor_uid text;
UPDATE schedules SET executor_kind = editor_kind, executor_uid = editor_uid;
UPDATE automations SET executor_kind = editor_kind, executor_uid = editor_uid;

CREATE FUNCTION set_executor() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.executor_kind := coalesce(NEW.executor_kind, NEW.editor_kind);
  NEW.executor_uid := coalesce(NEW.executor_uid, NEW.editor_uid);
  RETURN NEW;
END $$;
CREATE TRIGGER set_executor BEFORE INSERT ON schedules FOR EACH ROW EXECUTE FUNCTION set_executor();
CREATE TRIGGER set_executor BEFORE INSERT ON automations FOR EACH ROW EXECUTE FUNCTION set_executor();

-- The connectors of a pool are entries of its content: the machines of each see the secrets of the runs. The author of an entry is who
-- added the connector.

ALTER TABLE worker_pool_connectors ADD COLUMN added_by_kind text CHECK (added_by_kind IN ('user', 'service_account'));

-- Writes the present revision of a pool.
CREATE FUNCTION write_pool_revision(p worker_pools, sender_kind text, sender_uid text) RETURNS integer LANGUAGE sql AS $$
  SELECT write_revision('worker_pool', p.uid, p.team_id, sender_kind, sender_uid, jsonb_build_object(
    'name', p.name, 'owner_kind', p.owner_kind, 'owner_uid', p.owner_uid) || (
      SELECT CASE count(*) WHEN 0 THEN '{}' ELSE jsonb_build_object('connectors',
        jsonb_agg(jsonb_build_object('kind', c.kind, 'uid', c.uid) ORDER BY c.added_at, c.uid)) END
      FROM worker_pool_connectors c WHERE c.team_id = p.team_id AND c.pool = p.name))
$$;

CREATE OR REPLACE FUNCTION revise_worker_pool() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM write_pool_revision(NEW, NEW.owner_kind, NEW.owner_uid);
  RETURN NULL;
END $$;

-- Old code does not set added_by_kind: only an owner of the pool can be a service account.
CREATE FUNCTION set_kind_of_adder() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.added_by_kind := coalesce(NEW.added_by_kind, (SELECT p.owner_kind FROM worker_pools p
    WHERE p.team_id = NEW.team_id AND p.name = NEW.pool AND p.owner_uid = NEW.added_by_uid), 'user');
  RETURN NEW;
END $$;
CREATE TRIGGER set_kind_of_adder BEFORE INSERT ON worker_pool_connectors FOR EACH ROW EXECUTE FUNCTION set_kind_of_adder();

-- Locks the pool, so that two changes do not write the same revision. A removed connector leaves nothing behind, so the removal counts
-- as the owner's. Without the pool, its connectors are deleted with it.
CREATE FUNCTION revise_connectors() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  p worker_pools;
BEGIN
  IF TG_OP = 'INSERT' THEN
    SELECT * INTO p FROM worker_pools w WHERE w.team_id = NEW.team_id AND w.name = NEW.pool FOR UPDATE;
    PERFORM write_pool_revision(p, NEW.added_by_kind, NEW.added_by_uid);
  ELSE
    SELECT * INTO p FROM worker_pools w WHERE w.team_id = OLD.team_id AND w.name = OLD.pool FOR UPDATE;
    IF FOUND THEN
      PERFORM write_pool_revision(p, p.owner_kind, p.owner_uid);
    END IF;
  END IF;
  RETURN NULL;
END $$;

-- The connectors of before: those that were added, and the principals whose workers connected in the last 30 days.
DO $$
DECLARE
  added record;
BEGIN
  CREATE TEMPORARY TABLE connectors_before ON COMMIT DROP AS SELECT * FROM worker_pool_connectors;
  INSERT INTO connectors_before (team_id, pool, kind, uid, added_by_uid, added_by_kind, added_at)
    SELECT DISTINCT ON (p.team_id, p.name, k.uid) p.team_id, p.name, k.kind, k.uid, k.uid, k.kind, w.connected_at
    FROM worker_pools p JOIN worker_connections w ON w.team_id = p.team_id AND w.worker_id = p.name AND w.last_seen_at > now() - interval '30 days'
    CROSS JOIN LATERAL (
      SELECT CASE a.kind WHEN 'agent' THEN 'service_account' ELSE 'user' END AS kind,
        CASE a.kind WHEN 'agent' THEN coalesce(a.agent_uid, a.id::text) ELSE u.uid END AS uid
      FROM api_keys a LEFT JOIN users u ON u.id = a.user_id WHERE a.id = w.key_id) k
    WHERE k.uid IS NOT NULL AND (k.kind, k.uid) <> (p.owner_kind, p.owner_uid)
      AND NOT EXISTS (SELECT FROM worker_pool_connectors c WHERE c.team_id = p.team_id AND c.pool = p.name AND c.uid = k.uid)
    ORDER BY p.team_id, p.name, k.uid, w.connected_at;
  DELETE FROM worker_pool_connectors;
  CREATE TRIGGER revise_connectors AFTER INSERT OR DELETE ON worker_pool_connectors FOR EACH ROW EXECUTE FUNCTION revise_connectors();
  FOR added IN SELECT * FROM connectors_before ORDER BY added_at, uid LOOP
    INSERT INTO worker_pool_connectors (team_id, pool, kind, uid, added_by_uid, added_by_kind, added_at)
      VALUES (added.team_id, added.pool, added.kind, added.uid, added.added_by_uid, added.added_by_kind, added.added_at);
  END LOOP;
END $$;
