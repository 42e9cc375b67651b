/**
 * Finds the people and keys whose texts may influence the agents of runs. A message between two runs must not give one run the rights of
 * the other.
 */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, json, nullable, uuid } from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { isSameActor, type RunContent, readContents, storedRevisionOf } from '../../../team/access/contents/content.ts';

/** The given runs, their ancestors, and the runs that sent a message to one of these runs, directly or through other runs. */
const readSteering = defineStatement({
  name: 'read_runs_that_steer',
  text: `
    WITH RECURSIVE steering (id) AS (
      SELECT unnest($1::uuid[])
      UNION
      SELECT x.id FROM steering s CROSS JOIN LATERAL (
        SELECT r.parent_run_id AS id FROM runs r WHERE r.id = s.id AND r.parent_run_id IS NOT NULL
        UNION ALL SELECT f.created_by_uid::uuid FROM followups f WHERE f.run_id = s.id AND f.created_by_kind = 'run') x
    )
    SELECT s.id, r.id IS NULL AS is_gone, coalesce(r.contents, '[]') AS contents,
      CASE WHEN r.id IS NOT NULL THEN jsonb_build_object('kind', r.executor_kind, 'uid', r.executor_uid) END AS executor,
      CASE WHEN r.rights IS NULL AND r.id IS NOT NULL
        THEN jsonb_build_object('kind', r.creator_kind, 'uid', r.creator_uid) END AS creator,
      coalesce((SELECT jsonb_agg(DISTINCT jsonb_build_object('kind', f.created_by_kind, 'uid', f.created_by_uid))
        FROM followups f WHERE f.run_id = s.id AND f.created_by_kind <> 'run'), '[]') AS writers
    FROM steering s LEFT JOIN runs r ON r.id = s.id`,
  row: {
    id: uuid,
    /** The run was deleted, so its authors are unknown. */
    is_gone: boolean,
    contents: json<RunContent[]>(),
    executor: nullable(json<RunActor>()),
    /** Is set only for a run that was created before runs had rights. */
    creator: nullable(json<RunActor>()),
    /** Authors of the follow-ups to the run. */
    writers: json<RunActor[]>(),
  },
});

/**
 * Returns the people and keys, other than `executor`, whose texts the agents of these runs may follow. These are the executors of the
 * runs, the authors of follow-ups to the runs, and the authors of contents that neither the run's executor nor `executor` accepted. A
 * null in the list: an author who is unknown.
 */
export async function readSteeringAuthors(
  db: Queryable,
  runIds: readonly string[],
  executor: RunActor,
): Promise<(RunActor | null)[]> {
  const runs = await db.query(readSteering, [runIds]);
  const open = runs.flatMap(({ contents }) => contents.filter(({ accepted }) => !accepted));
  const accepted = (await readContents(db, executor, open.flatMap(storedRevisionOf))).filter((each) => each.accepted);
  const isAccepted = (content: RunContent) =>
    accepted.some(
      (each) => each.kind === content.kind && each.uid === content.uid && each.revision === content.revision,
    );
  const authors = [
    ...runs.flatMap(({ is_gone, executor: own, creator, writers }) => [
      ...(is_gone ? [null] : []),
      ...[own, creator].filter((actor) => actor !== null),
      ...writers,
    ]),
    ...open.filter((content) => !isAccepted(content)).map(({ author }) => author),
  ].filter((author) => !isSameActor(author, executor));
  return [...new Map(authors.map((author) => [author && `${author.kind} ${author.uid}`, author])).values()];
}
