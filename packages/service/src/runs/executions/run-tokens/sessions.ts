import type { Database } from '../../../platform/store/database/database.ts';
import {
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
import { hashRunToken } from '../queue/assign.ts';
import type { Phase } from '../transitions/transition.ts';
import { type Attempt, isAttempt } from './attempt.ts';
import { mayUsePersonalCredentials } from './turn-authors.ts';

/** The execution that a run token belongs to. */
export interface RunSession extends Attempt {
  /** 1, 2, … in the run */
  readonly executionNumber: number;
  readonly teamId: string;
  /** The runs above it, parent first. */
  readonly ancestorIds: readonly string[];
  readonly creator: RunActor;
  readonly executor: RunActor;
  /** Owner of the code hosts' credentials that the run uses now: its executor, or only the team. */
  readonly codeHostActor: RunActor;
  readonly conversationId: string;
  readonly modelId: string;
  readonly environmentId: string | null;
  readonly phase: Phase;
  /** Raw token, for redaction. */
  readonly token: string;
  /** Values that the run's sandboxes got, for redaction. */
  readonly grantedSecrets: readonly SealedValue[];
}

const readSession = defineStatement({
  name: 'read_run_session',
  text: `
    SELECT r.id AS "runId", e.id AS "executionId", e.number AS "executionNumber", r.team_id AS "teamId",
      r.ancestor_ids AS "ancestorIds", jsonb_build_object('kind', r.creator_kind, 'uid', r.creator_uid) AS creator,
      jsonb_build_object('kind', r.executor_kind, 'uid', r.executor_uid) AS executor,
      CASE WHEN ${mayUsePersonalCredentials('r', 'e')} THEN jsonb_build_object('kind', r.executor_kind, 'uid', r.executor_uid)
        ELSE '{"kind": "service_account", "uid": ""}'::jsonb END AS "codeHostActor",
      r.conversation_id AS "conversationId", r.model_id AS "modelId", r.environment_id AS "environmentId", e.phase,
      ${sealedSecretsOf('r.id')} AS sealed
    FROM executions e JOIN runs r ON r.id = e.run_id
    WHERE ${isAttempt('e', '$1')}`,
  row: {
    runId: uuid,
    executionId: uuid,
    executionNumber: integer,
    teamId: uuid,
    ancestorIds: uuids,
    creator: json<RunActor>(),
    executor: json<RunActor>(),
    codeHostActor: json<RunActor>(),
    conversationId: uuid,
    modelId: text(),
    environmentId: nullable(text()),
    phase: text<Phase>(),
    sealed: json<SealedSecrets>(),
  },
});

/**
 * Returns the session of a run token; null if the token is unknown, or its execution has ended or was assigned again. The look-up uses
 * the SHA-256 of 32 random bytes, so its duration reveals nothing about other tokens.
 */
export async function authenticateRunToken(db: Database, token: string): Promise<RunSession | null> {
  if (!token.startsWith('ryr_') || token.length > 200) return null;
  const tokenHash = hashRunToken(token);
  const [row] = await db.query(readSession, [tokenHash]);
  if (!row) return null;
  const { sealed, ...session } = row;
  return { ...session, token, tokenHash, grantedSecrets: toSealedValues(sealed) };
}

/** Does the same, but also returns null for a stopping execution: its agent needs no model and no repository to report its end. */
export async function authenticateWorkingRunToken(db: Database, token: string): Promise<RunSession | null> {
  const session = await authenticateRunToken(db, token);
  return session?.phase === 'stopping' ? null : session;
}
