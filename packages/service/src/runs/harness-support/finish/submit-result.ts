/** Checks a result that an agent submits, and stores it until the turn ends. */
import { maxResultArtifactBytes, maxResultBytes } from '@runyard/contract/limits';
import type { SubmitResult, SubmitResultResponse } from '@runyard/contract/runs/results';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { lockWorkingAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { findArtifact } from '../../files/artifacts/read.ts';
import { readOutputSchema, type SubmittedValue, storeSubmitted } from '../../results/results.ts';
import { type SchemaThread, schemaThread } from '../../results/schema-thread.ts';

/** Outcome of a submission. The comment of each outcome begins with its HTTP status. */
export type SubmitResultOutcome =
  /** 200 */
  | ({ readonly kind: 'checked' } & SubmitResultResponse)
  /** 400: the run has no output schema. */
  | { readonly kind: 'no_schema' }
  /** 404: the run has no such artifact, or its bytes are missing. */
  | { readonly kind: 'no_artifact' }
  /** 413 */
  | { readonly kind: 'too_large'; readonly detail: string }
  /** 503 */
  | { readonly kind: 'busy' };

type Deps = ExecutionDeps & { readonly blobs: BlobStore; readonly schemas?: SchemaThread };

/**
 * Checks a value with the output schema of the run. If it fits, stores it as the value of the turn. Secrets are removed before the check,
 * so the stored value is the one that was checked. Throws `AttemptOver`.
 */
export async function submitResult(
  deps: Deps,
  session: RunSession,
  { turn, result, result_artifact_uid: artifactUid }: SubmitResult,
): Promise<SubmitResultOutcome> {
  const schema = await readOutputSchema(deps.db, session.runId);
  if (schema === undefined) return { kind: 'no_schema' };
  const read = artifactUid === undefined ? inline(deps, session, result) : await ofArtifact(deps, session, artifactUid);
  if ('kind' in read) return read;
  const { schemas = schemaThread } = deps;
  const verdict = await schemas.check(session.teamId, { schema: JSON.stringify(schema), value: read.json });
  switch (verdict.kind) {
    case 'busy':
      return { kind: 'busy' };
    case 'faults':
      return { kind: 'checked', accepted: false, faults: [...verdict.faults] };
    case 'too_slow':
      return refused('the check of this value with the schema takes too long: make the value smaller or simpler');
    case 'invalid_schema':
      return refused(`the output schema of the run cannot be used: ${verdict.message}`);
    case 'fits':
      break;
  }
  await deps.db.transaction(async (tx) => {
    await lockWorkingAttempt(tx, session);
    await storeSubmitted(tx, { runId: session.runId, executionId: session.executionId, turn }, read.stored);
  });
  return { kind: 'checked', accepted: true };
}

const refused = (message: string): SubmitResultOutcome => ({
  kind: 'checked',
  accepted: false,
  faults: [{ path: '', message }],
});

/** The JSON to check, and the form in which the value is stored. */
type ReadValue =
  | { readonly json: string; readonly stored: SubmittedValue }
  | Extract<SubmitResultOutcome, { readonly kind: 'too_large' | 'no_artifact' }>;

function inline(deps: Deps, session: RunSession, result: unknown): ReadValue {
  const json = JSON.stringify(withoutSecrets(deps, session, result));
  if (Buffer.byteLength(json) > maxResultBytes)
    return {
      kind: 'too_large',
      detail: `The result has more than ${maxResultBytes / 1024} KB: report it as an artifact.`,
    };
  return { json, stored: { json } };
}

/** Reads the value from an artifact of the run. The upload has removed the secrets from its bytes. */
async function ofArtifact(deps: Deps, session: RunSession, artifactUid: string): Promise<ReadValue> {
  const artifact = await findArtifact(deps.db, artifactUid);
  if (artifact?.runId !== session.runId || artifact.type !== 'FILE' || artifact.blobKey === null)
    return { kind: 'no_artifact' };
  if ((artifact.sizeBytes ?? 0) > maxResultArtifactBytes)
    return {
      kind: 'too_large',
      detail: `A result has at most ${maxResultArtifactBytes / 1024 / 1024} MB. Keep the rest as another artifact.`,
    };
  const blob = await deps.blobs.get(artifact.blobKey);
  if (blob === undefined) return { kind: 'no_artifact' };
  const bytes = Buffer.concat(await blob.stream.toArray());
  return { json: bytes.toString('utf8'), stored: { artifactId: artifact.id } };
}
