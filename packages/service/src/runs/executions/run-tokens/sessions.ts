import type { RunContentKind } from '@runyard/contract/runs/acceptances';
import type { RepeatableRequest } from '../../../platform/idempotency/once.ts';
import { serveFor } from '../../../platform/serving/served-route.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  text,
  uuid,
  uuids,
} from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import type { SealedValue } from '../../../team/redaction/agent-text.ts';
import { type SealedSecrets, sealedSecretsOf, toSealedValues } from '../../../team/stored-secrets/run-secrets.ts';
import { isFreshCheck } from '../fresh-checks/fresh-checks.ts';
import type { Phase } from '../phases.ts';
import { hashRunToken } from '../queue/assign.ts';
import { type Attempt, isAttempt } from './attempt.ts';

/** The execution that a run token belongs to, with the values that never change. */
export interface RunIdentity extends Attempt {
  /** 1, 2, … in the run */
  readonly executionNumber: number;
  readonly teamId: string;
  /** Ids of the run's ancestors, the parent first. */
  readonly ancestorIds: readonly string[];
  readonly creator: RunActor;
  readonly executor: RunActor;
  readonly conversationId: string;
  /** The raw run token, so that it can be redacted. */
  readonly token: string;
}

/** The execution that a run token belongs to, as it is at the authentication of a request. */
export interface RunSession extends RunIdentity {
  readonly modelId: string;
  readonly environmentId: string | null;
  /** The automation that started the run or one of its ancestors. */
  readonly automationUid: string | null;
  /** The factory whose definition the run executes. */
  readonly factoryUid: string | null;
  readonly phase: Phase;
  /** True if the execution runs a check and its setup has ended: the token then only serves to report. */
  readonly onlyReports: boolean;
  /** The assignment that the worker has not claimed yet; null: there is none. */
  readonly assignmentId: string | null;
  readonly workerId: string | null;
  /** Secret values that the run's sandboxes got, so that they can be redacted. */
  readonly grantedSecrets: readonly SealedValue[];
}

/** SQL: the UID of the first content of this kind that the run with the request `q` executes; NULL if there is none. */
const uidOfContent = (kind: RunContentKind): string =>
  `jsonb_path_query_first(q.contents, '$[*] ? (@.kind == "${kind}").uid') #>> '{}'`;

const readSession = defineStatement({
  name: 'read_run_session',
  text: `
    SELECT r.id AS "runId", e.id AS "executionId", e.number AS "executionNumber", r.team_id AS "teamId",
      r.ancestor_ids AS "ancestorIds", jsonb_build_object('kind', r.creator_kind, 'uid', r.creator_uid) AS creator,
      jsonb_build_object('kind', r.executor_kind, 'uid', r.executor_uid) AS executor,
      r.conversation_id AS "conversationId", r.model_id AS "modelId", r.environment_id AS "environmentId", e.phase,
      e.started_at IS NOT NULL AND ${isFreshCheck('r.id')} AS "onlyReports",
      CASE WHEN r.current_execution_id = e.id THEN r.assignment_id END AS "assignmentId", e.worker_id AS "workerId",
      ${uidOfContent('automation')} AS "automationUid", ${uidOfContent('definition')} AS "factoryUid",
      ${sealedSecretsOf('r.id')} AS sealed
    FROM executions e JOIN runs r ON r.id = e.run_id JOIN run_requests q ON q.run_id = r.id
    WHERE ${isAttempt('e', '$1')}`,
  row: {
    runId: uuid,
    executionId: uuid,
    executionNumber: integer,
    teamId: uuid,
    ancestorIds: uuids,
    creator: json<RunActor>(),
    executor: json<RunActor>(),
    conversationId: uuid,
    modelId: text(),
    environmentId: nullable(text()),
    automationUid: nullable(text()),
    factoryUid: nullable(text()),
    phase: text<Phase>(),
    onlyReports: boolean,
    assignmentId: nullable(uuid),
    workerId: nullable(text()),
    sealed: json<SealedSecrets>(),
  },
});

/**
 * Returns the session of a run token; null if the token is unknown, or its execution has ended or was assigned again.
 * The look-up uses the SHA-256 of 32 random bytes, so its duration reveals nothing about other tokens.
 */
export async function authenticateRunToken(db: Database, token: string): Promise<RunSession | null> {
  if (!token.startsWith('ryr_') || token.length > 200) return null;
  const tokenHash = hashRunToken(token);
  const [row] = await db.query(readSession, [tokenHash]);
  if (!row) return null;
  const { sealed, ...session } = row;
  remember(db, { ...session, token, tokenHash });
  return { ...session, token, tokenHash, grantedSecrets: toSealedValues(sealed) };
}

/** Number of tokens that a process remembers. */
const maxKnown = 10_000;

/** The identities of the tokens that this process has seen last, the last one at the end. */
const known = new WeakMap<Database, Map<string, RunIdentity>>();

function remember(db: Database, identity: RunIdentity): RunIdentity {
  const { runId, executionId, executionNumber, teamId, ancestorIds, creator, executor, conversationId } = identity;
  const { token, tokenHash } = identity;
  const run = { runId, executionId, executionNumber, teamId, ancestorIds, creator, executor, conversationId };
  const identities = known.get(db) ?? new Map<string, RunIdentity>();
  known.set(db, identities);
  identities.delete(token);
  identities.set(token, { ...run, token, tokenHash });
  const [oldest] = identities.keys();
  if (identities.size > maxKnown && oldest !== undefined) identities.delete(oldest);
  return identity;
}

/**
 * Returns the identity of a run token. A token that this process has seen lately is not looked up in the database, although the execution
 * may have ended or may have been assigned again since. So call this function only for requests whose statement checks the token again
 * (`isAttempt`).
 */
export async function identifyRunToken(db: Database, token: string): Promise<RunIdentity | null> {
  const identity = known.get(db)?.get(token);
  return identity ? remember(db, identity) : await authenticateRunToken(db, token);
}

/**
 * Like `authenticateRunToken`, but also returns null for a stopping execution, and for a check that has begun. Their agents only report, and
 * need neither a model nor a repository.
 */
export async function authenticateWorkingRunToken(db: Database, token: string): Promise<RunSession | null> {
  const session = await authenticateRunToken(db, token);
  return session?.phase === 'stopping' || session?.onlyReports ? null : session;
}

/** These functions pair each route that a run token authenticates with the handler of this route. */
export const {
  serve: serveRun,
  serveOnce: serveRunOnce,
  serveRepeatable: serveRunRepeatable,
} = serveFor<null, RunSession, RepeatableRequest, RunIdentity>();
