/** Finds the contents that the run of a request executes, with their authors. */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, text } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import {
  type ContentRevision,
  isSameActor,
  type RunContent,
  readContents,
} from '../../../team/access/contents/content.ts';
import type { Attempt } from '../../executions/run-tokens/attempt.ts';
import { isOfTurnByOther } from '../../executions/run-tokens/turn-authors.ts';

/** The parts of a request that lead to contents. */
export interface ContentsOfRequest {
  readonly teamId: string;
  readonly creator: RunActor;
  readonly executor: RunActor;
  /** Stored contents that the request was made from, such as a schedule; the environment and the agent identity among them. */
  readonly revisions: readonly ContentRevision[];
  /** The run that is repeated, unless the request replaces its prompt and its configuration. */
  readonly rerunOf?: string | undefined;
  readonly parentRunId?: string | undefined;
  /** The execution whose agent sent the request. */
  readonly turn?: Pick<Attempt, 'runId' | 'executionId'> | undefined;
  readonly conversationId?: string | undefined;
}

const readSource = defineStatement({
  name: 'read_contents_of_run',
  text: `
    SELECT contents, jsonb_build_object('kind', creator_kind, 'uid', creator_uid) AS creator,
      jsonb_build_object('kind', executor_kind, 'uid', executor_uid) AS executor FROM runs WHERE id = $1`,
  row: { contents: json<RunContent[]>(), creator: json<RunActor>(), executor: json<RunActor>() },
});

/** The authors of what a conversation has: of its prompts, and of the follow-ups that did not come from a run. */
const readWriters = defineStatement({
  name: 'read_writers_of_conversation',
  text: `
    SELECT creator_kind AS kind, creator_uid AS uid FROM runs WHERE conversation_id = $1 AND team_id = $2
    UNION
    SELECT f.created_by_kind, f.created_by_uid FROM followups f JOIN runs r ON r.id = f.run_id
    WHERE r.conversation_id = $1 AND r.team_id = $2 AND f.created_by_kind <> 'run'`,
  row: { kind: text<RunActor['kind']>(), uid: text() },
});

/** The other authors of the turn in which an agent starts a run. */
const readTurnAuthors = defineStatement({
  name: 'read_other_authors_of_turn',
  text: `
    SELECT DISTINCT f.created_by_kind AS kind, f.created_by_uid AS uid FROM followups f, runs r, executions e
    WHERE r.id = $1 AND e.id = $2 AND ${isOfTurnByOther('r', 'e')}`,
  row: { kind: text<RunActor['kind']>(), uid: text() },
});

/** Contents that a repeated run reads again in their present revision. */
const readAgain: readonly RunContent['kind'][] = ['environment', 'agent_identity'];

/** Returns the contents of a run to create. */
export async function contentsOfRequest(db: Queryable, request: ContentsOfRequest): Promise<RunContent[]> {
  const { creator, executor, rerunOf, parentRunId, conversationId } = request;
  const stored = await readContents(db, executor, request.revisions);
  const prompt = promptOf(creator, executor, stored);
  const repeated = rerunOf === undefined ? [] : await contentsOfRun(db, executor, rerunOf, readAgain);
  const above = parentRunId === undefined ? [] : await contentsOfRun(db, executor, parentRunId);
  const isConversation = conversationId !== undefined && isUuid(conversationId);
  const written = !isConversation ? [] : await writersOf(db, request.teamId, executor, conversationId);
  const { turn } = request;
  const asked = turn ? await db.query(readTurnAuthors, [turn.runId, turn.executionId]) : [];
  const ofTurn = asked.map((author): RunContent => ({ kind: 'conversation', author, accepted: false }));
  return [...prompt, ...stored, ...repeated, ...above, ...written, ...ofTurn];
}

/**
 * Returns the prompt of the request if another principal than the executor wrote it. A person accepts what the keys of an identity write by
 * accepting the identity.
 */
function promptOf(creator: RunActor, executor: RunActor, stored: readonly RunContent[]): RunContent[] {
  if (isSameActor(creator, executor)) return [];
  const accepted = stored.some((each) => each.kind === 'agent_identity' && each.uid === creator.uid && each.accepted);
  return [{ kind: 'prompt', author: creator, accepted }];
}

/** Returns what a run was made from, as another run with this executor executes it. */
async function contentsOfRun(
  db: Queryable,
  executor: RunActor,
  runId: string,
  without: readonly RunContent['kind'][] = [],
): Promise<RunContent[]> {
  const [run] = await db.query(readSource, [runId]);
  if (!run) return [];
  const { creator } = run;
  const made: RunContent = { kind: 'run', uid: runId, author: creator, accepted: isSameActor(creator, executor) };
  const own = run.contents.filter(({ kind }) => !without.includes(kind));
  // The prompt of another creator is among the contents of a run with the same executor.
  if (isSameActor(run.executor, executor)) return own;
  const accepted = await readContents(db, executor, own.flatMap(revisionOf));
  const contents = own.map((content): RunContent => {
    const found = accepted.find(({ kind, uid }) => kind === content.kind && uid === content.uid);
    return { ...content, accepted: found?.accepted ?? isSameActor(content.author, executor) };
  });
  return [...(made.accepted ? [] : [made]), ...contents];
}

const revisionOf = ({ kind, uid, revision }: RunContent): ContentRevision[] =>
  uid === undefined || revision === undefined || kind === 'prompt' || kind === 'run' || kind === 'conversation'
    ? []
    : [{ kind, uid, revision }];

async function writersOf(
  db: Queryable,
  teamId: string,
  executor: RunActor,
  conversationId: string,
): Promise<RunContent[]> {
  const writers = await db.query(readWriters, [conversationId, teamId]);
  return writers
    .filter((writer) => !isSameActor(writer, executor))
    .map((author) => ({ kind: 'conversation', uid: conversationId, author, accepted: false }));
}
