/**
 * Decides which rights a run has at this moment. The rights of a run are decided when it is created (`runs/submit/request-rights.ts`).
 * Later they become fewer: texts of other people run in its sandbox, and people lose their role.
 */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, json, nullable, uuid } from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { isSameActor, type RunContent } from '../../../team/access/contents/content.ts';
import { explainWithheld } from '../../../team/access/contents/describe-withheld.ts';
import { decideGatewayRights, type GatewayRights } from '../../../team/access/contents/gateway-rights.ts';
import type {
  ExplainedWithheld,
  RightDecision,
  RunRights,
  Withheld,
} from '../../../team/access/contents/run-rights.ts';
import { unexpectedPool } from '../../../team/access/worker-pools/pools.ts';
import { type CodeHostUser, readStoredKinds } from '../../../team/code-hosts/code-hosts.ts';

/**
 * SQL: the authors of the follow-up `f`, as a JSON list. An unknown author is null. An approval or a choice among the offered answers has
 * no author. Follow-ups that are older than the column `authors` count as written by their sender.
 */
export const authorsOfFollowup = (f: string): string => `coalesce(${f}.authors, CASE
  WHEN ${f}.created_by_kind <> 'run' THEN jsonb_build_array(jsonb_build_object('kind', ${f}.created_by_kind, 'uid', ${f}.created_by_uid))
  WHEN ${f}.has_other_authors THEN '[null]' ELSE '[]' END)`;

/** SQL: a JSON list of the UIDs of the people who have accepted the text with this id, which is the prompt of a run or a follow-up. */
export const acceptorsOfText = (textId: string): string =>
  `(SELECT coalesce(jsonb_agg(a.user_uid), '[]') FROM conversation_acceptances a WHERE a.text_id = ${textId})`;

/** SQL: number of texts in a conversation: the prompts of its runs and the follow-ups, also those of deleted runs. */
export const turnOfConversation = (conversationId: string): string => `(
  SELECT count(*) + coalesce(sum((SELECT count(*) FROM followups f WHERE f.run_id = c.id)), 0)
    + coalesce((SELECT d.turns FROM deleted_turns d WHERE d.conversation_id = ${conversationId}), 0)
  FROM runs c WHERE c.conversation_id = ${conversationId})::int`;

/**
 * SQL: number of the last execution that began with only the stored changes of the run; 0 if there is none. `upTo`: number of the execution
 * that asks. The sandbox of an earlier execution may still work when a run begins anew.
 */
export const lastFresh = (runId: string, upTo: string): string =>
  `coalesce((SELECT max(x.number) FROM executions x WHERE x.run_id = ${runId} AND x.number <= ${upTo} AND x.is_fresh), 0)`;

/**
 * SQL: the text of the follow-up `f` has run in the present sandbox of the run, or in an earlier sandbox whose files the present sandbox
 * has. This includes processes that the text started, files that it wrote, and settings and hooks of git. It also includes follow-ups
 * that wait for the first prompt of the execution. `run` and `execution` are the SQL names of rows of `runs` and `executions`.
 */
export const hasLeftTraces = (run: string, execution: string): string => `(
  f.run_id = ${run}.id AND CASE WHEN f.execution_id IS NULL THEN ${execution}.started_at IS NULL
    ELSE coalesce((SELECT t.number FROM executions t WHERE t.id = f.execution_id), ${execution}.number) >= ${lastFresh(`${run}.id`, `${execution}.number`)} END)`;

/** Number of characters of a text that a reason shows. */
export const excerptLength = 100;

const readPresent = defineStatement({
  name: 'read_present_contents_of_execution',
  text: `
    SELECT r.id AS run_id, r.team_id, r.conversation_id, q.rights, q.contents, ${unexpectedPool('r', 'e')} AS pool,
      jsonb_build_object('kind', r.executor_kind, 'uid', r.executor_uid) AS executor, ${lastFresh('r.id', 'e.number')} > 0 AS is_fresh,
      ${turnOfConversation('r.conversation_id')} AS turn, ${acceptorsOfText('r.id')} AS accepted_by,
      (SELECT coalesce(jsonb_agg(jsonb_build_object('author', w.author, 'excerpt', left(f.message, ${excerptLength}), 'accepted_by', ${acceptorsOfText('f.id')})), '[]')
        FROM followups f CROSS JOIN LATERAL jsonb_array_elements(${authorsOfFollowup('f')}) w (author)
        WHERE ${hasLeftTraces('r', 'e')}) AS texts
    FROM executions e JOIN runs r ON r.id = e.run_id JOIN run_requests q ON q.run_id = r.id WHERE e.id = $1`,
  row: {
    run_id: uuid,
    team_id: uuid,
    conversation_id: uuid,
    /** NULL if the run was created before runs had rights. */
    rights: nullable(json<RunRights>()),
    contents: json<RunContent[]>(),
    pool: nullable(json<readonly RunContent[]>()),
    executor: json<RunActor>(),
    is_fresh: boolean,
    turn: integer,
    accepted_by: json<string[]>(),
    texts: json<Pick<Required<RunContent>, 'author' | 'accepted_by' | 'excerpt'>[]>(),
  },
});

/** The contents of a run at this moment: those with which it was created, and the texts that have left traces in its sandbox. */
export interface PresentContents {
  readonly runId: string;
  readonly teamId: string;
  readonly executor: RunActor;
  readonly rights: RunRights | null;
  readonly contents: readonly RunContent[];
}

/** Reads the contents of an execution's run at this moment; null if there is no such execution. */
export async function readPresentContents(db: Queryable, executionId: string): Promise<PresentContents | null> {
  const [row] = await db.query(readPresent, [executionId]);
  if (!row) return null;
  const { run_id: runId, team_id: teamId, conversation_id: uid, executor, rights, pool, is_fresh, accepted_by } = row;
  const isAcceptedBy = (people: readonly string[]) => executor.kind === 'user' && people.includes(executor.uid);
  const ofRun = row.contents.flatMap((content): RunContent[] => {
    if (content.kind !== 'conversation' || content.accepted) return [content];
    // A fresh sandbox has neither the files nor the text of the conversation that the run continued. The conversation of the run that started
    // this run still counts, because the agent there wrote the prompt.
    return is_fresh && content.uid === uid ? [] : [{ ...content, accepted: isAcceptedBy(accepted_by), accepted_by }];
  });
  const ofTexts = row.texts
    .filter(({ author }) => !isSameActor(author, executor))
    .map(
      (text): RunContent => ({
        kind: 'conversation',
        uid,
        revision: row.turn,
        author: text.author,
        accepted: isAcceptedBy(text.accepted_by),
        accepted_by: text.accepted_by,
        excerpt: text.excerpt,
      }),
    );
  return { runId, teamId, executor, rights, contents: [...ofRun, ...(pool ?? []), ...ofTexts] };
}

/** Decides which rights behind the gateway the run of the execution has at this moment. */
export async function readGatewayRights(
  db: Queryable,
  executionId: string,
): Promise<(PresentContents & GatewayRights) | null> {
  const present = await readPresentContents(db, executionId);
  return present && (await decideRights(db, present));
}

async function decideRights(db: Queryable, present: PresentContents): Promise<PresentContents & GatewayRights> {
  const { personal, team } = await decideGatewayRights(db, present);
  const lacking: RightDecision = { kind: 'lacking' };
  return {
    ...present,
    // A right that the run did not have when it was created stays withheld.
    personal: present.rights?.personal_credentials === false && personal.kind === 'held' ? lacking : personal,
    team: present.rights?.team_credentials === false && team.kind === 'held' ? lacking : team,
  };
}

/**
 * Returns whether a withheld right is checked again at each use. This is so if a conversation withholds the right, because a person may
 * have accepted the conversation after the run was created.
 */
export const isDecidedLater = ({ right, content }: Withheld): boolean =>
  content?.kind === 'conversation' && (right === 'code_host_credentials' || right === 'team_credentials');

/** Returns the rights behind the gateway that the execution's run had when it was created, and that are withheld from it now. */
export async function readLaterWithheld(db: Queryable, executionId: string): Promise<ExplainedWithheld[]> {
  const run = await readGatewayRights(db, executionId);
  if (!run || (run.personal.kind !== 'withheld' && run.team.kind !== 'withheld')) return [];
  const { teamId, executor, personal, team } = run;
  const stored = await readStoredKinds(db, { teamId, actor: executor });
  const later: ExplainedWithheld[] = [];
  for (const [right, decision, isStored] of [
    ['code_host_credentials', personal, stored.personal],
    ['team_credentials', team, stored.team],
  ] as const) {
    const isKnown = run.rights?.withheld.some((each) => each.right === right && !isDecidedLater(each));
    if (decision.kind !== 'withheld' || !isStored || isKnown) continue;
    const lost = { right, content: decision.content };
    later.push({ ...lost, reason: await explainWithheld(db, teamId, executor, lost) });
  }
  return later;
}

/** The execution for which the gateway acts. */
interface GatewaySession {
  readonly executionId: string;
  readonly teamId: string;
  readonly executor: RunActor;
}

/** Returns the user of code hosts as whom the gateway acts for the execution's run at this moment, with the credentials that are withheld. */
export const readCodeHostUser = async (db: Queryable, session: GatewaySession): Promise<CodeHostUser> =>
  await codeHostUserOf(db, session, await readPresentContents(db, session.executionId));

/** Like `readCodeHostUser`, with the present contents of the run; null: there is no such execution. */
export async function codeHostUserOf(
  db: Queryable,
  { teamId, executor }: GatewaySession,
  present: PresentContents | null,
): Promise<CodeHostUser> {
  const found = present && (await decideRights(db, present));
  const reasonOf = async (
    right: Withheld['right'],
    decision: RightDecision | undefined,
  ): Promise<string | undefined> => {
    if (decision?.kind === 'held') return undefined;
    const stored = found?.rights?.withheld.find((each) => each.right === right);
    if (decision?.kind !== 'withheld' && stored) return stored.reason;
    const content = decision?.kind === 'withheld' ? { content: decision.content } : {};
    return await explainWithheld(db, teamId, executor, { right, ...content });
  };
  const personal = await reasonOf('code_host_credentials', found?.personal);
  const team = await reasonOf('team_credentials', found?.team);
  return {
    teamId,
    actor: executor,
    without: { ...(personal === undefined ? {} : { personal }), ...(team === undefined ? {} : { team }) },
  };
}
