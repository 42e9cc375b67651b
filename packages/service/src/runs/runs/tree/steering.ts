/**
 * Finds the people and keys whose texts may influence the agents of runs. A message between two runs must not give one run the rights of
 * the other.
 */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, json, nullable, uuid } from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { isSameActor, type RunContent, readContents, storedRevisionOf } from '../../../team/access/contents/content.ts';
import { acceptorsOfText, authorsOfFollowup, excerptLength } from '../../executions/run-tokens/present-rights.ts';

/** An author whose texts the agents of runs may follow. */
interface SteeringText {
  /** null: not known */
  readonly author: RunActor | null;
  /** UIDs of the people who have accepted all of these texts. */
  readonly accepted_by: readonly string[];
  /** Beginning of one of the texts, if it is a follow-up. */
  readonly excerpt?: string;
}

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
    SELECT s.id, r.id IS NULL AS is_gone, coalesce(q.contents, '[]') AS contents, ${acceptorsOfText('s.id')} AS accepted_by,
      CASE WHEN r.id IS NOT NULL THEN jsonb_build_object('kind', r.executor_kind, 'uid', r.executor_uid) END AS executor,
      CASE WHEN q.rights IS NULL AND r.id IS NOT NULL
        THEN jsonb_build_object('kind', r.creator_kind, 'uid', r.creator_uid) END AS creator,
      coalesce((SELECT jsonb_agg(DISTINCT jsonb_build_object('author', w.author, 'excerpt', left(f.message, ${excerptLength}), 'accepted_by', ${acceptorsOfText('f.id')}))
        FROM followups f CROSS JOIN LATERAL jsonb_array_elements(${authorsOfFollowup('f')}) w (author)
        WHERE f.run_id = s.id), '[]') AS texts
    FROM steering s LEFT JOIN runs r ON r.id = s.id LEFT JOIN run_requests q ON q.run_id = r.id`,
  row: {
    id: uuid,
    /** The run was deleted, so its authors are unknown. */
    is_gone: boolean,
    contents: json<RunContent[]>(),
    executor: nullable(json<RunActor>()),
    /** Is set only for a run that was created before runs had rights. */
    creator: nullable(json<RunActor>()),
    /** People who accepted the conversation with the contents of the run. */
    accepted_by: json<string[]>(),
    /** Authors of the follow-ups to the run. */
    texts: json<SteeringText[]>(),
  },
});

/**
 * Returns the people and keys, other than `executor`, whose texts the agents of these runs may follow. These are the executors of the
 * runs, the authors of follow-ups to the runs, and the authors of contents that neither the run's executor nor `executor` accepted. Texts
 * that `executor` accepted with their conversation do not count.
 */
export async function readSteeringTexts(
  db: Queryable,
  runIds: readonly string[],
  executor: RunActor,
): Promise<readonly SteeringText[]> {
  const runs = await db.query(readSteering, [runIds]);
  const open = runs.flatMap(({ contents }) => contents.filter(({ accepted }) => !accepted));
  const accepted = (await readContents(db, executor, open.flatMap(storedRevisionOf))).filter((each) => each.accepted);
  const isAccepted = (content: RunContent) =>
    accepted.some(
      (each) => each.kind === content.kind && each.uid === content.uid && each.revision === content.revision,
    );
  const texts = runs
    .flatMap(({ is_gone, executor: own, creator, contents, accepted_by, texts: ofFollowups }) => [
      ...(is_gone ? [{ author: null, accepted_by: [] }] : []),
      ...[own, creator].flatMap((author) => (author === null ? [] : [{ author, accepted_by }])),
      ...contents
        .filter((content) => !content.accepted && !isAccepted(content))
        .map(({ author }) => ({ author, accepted_by })),
      ...ofFollowups,
    ])
    .filter(({ author }) => !isSameActor(author, executor))
    .filter((text) => executor.kind !== 'user' || !text.accepted_by.includes(executor.uid));
  const byAuthor = Map.groupBy(texts, ({ author }) => author && `${author.kind} ${author.uid}`);
  return [...byAuthor.values()].flatMap(([first, ...others]) =>
    first === undefined
      ? []
      : [
          {
            ...first,
            accepted_by: first.accepted_by.filter((uid) => others.every((text) => text.accepted_by.includes(uid))),
          },
        ],
  );
}

/** Returns the authors of `readSteeringTexts`. A null in the list: an author who is unknown. */
export const readSteeringAuthors = async (
  db: Queryable,
  runIds: readonly string[],
  executor: RunActor,
): Promise<(RunActor | null)[]> => (await readSteeringTexts(db, runIds, executor)).map(({ author }) => author);
