import type { RunFollowupRequest, RunFollowupResponse } from '@runyard/contract/runs/run-request';
import type { Fault } from '../../../platform/fault.ts';
import { findReplay, once, type RepeatableRequest } from '../../../platform/idempotency/once.ts';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { type Author, recordAction } from '../../../team/access/audit/record.ts';
import type { CodeHosts } from '../../../team/code-hosts/code-hosts.ts';
import type { ContentPolicy, PolicyVerdict } from '../../../team/content-policy/content-policy.ts';
import { byteMaskOf, withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { readGrantedSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { endWait } from '../../executions/idle/idle.ts';
import { hasMoreClones, readPersonalClones } from '../../executions/run-tokens/personal-clones.ts';
import { decodeAttachments } from '../../files/attachments/decode.ts';
import { holdPrepared } from '../../files/attachments/prepare.ts';
import { discardAttachments, storeAttachments } from '../../files/attachments/store.ts';
import { type StorageRefusal, takeRoomForRequest } from '../../files/stored-bytes.ts';
import { isVisibleRun } from '../read/read.ts';
import { acceptFollowup, type FollowupOutcome } from './accept.ts';
import { findLackingRepository, findLackingRight } from './lacking-right.ts';

/** A follow-up that a person or a service account sends to a run. */
export interface FollowupSubmission {
  readonly actor: Author & { readonly creator: RunActor & { readonly displayName?: string } };
  readonly runId: string;
  readonly request: RunFollowupRequest;
  /** Identifies a request that the sender may repeat, so that the run gets the follow-up only once. */
  readonly once?: RepeatableRequest | undefined;
}

type FollowupRefusal = Extract<
  FollowupOutcome,
  { readonly kind: 'not_found' | 'is_check' | 'empty' | 'full' | 'refused' | 'may_not_answer' }
>;

interface UnknownAttachment {
  readonly kind: 'unknown_attachment';
  readonly attachmentId: string;
}

/** The sandbox got further repositories after the check whether the author can read all its repositories. */
interface MoreClones {
  readonly kind: 'more_clones';
}

/** Why the author may send no text to the run. The comment of each reason begins with its HTTP status. */
export type SenderRefusal =
  /** 404 */
  | { readonly kind: 'not_found' }
  /** 403: the sandbox contains the value of this secret, and the author may not use the secret. */
  | { readonly kind: 'lacks_right'; readonly secret: string }
  /** 403: the workspace contains this repository (`owner/repo`), and the author may not read it. */
  | { readonly kind: 'lacks_repository'; readonly repository: string };

/** The parts of the service that a follow-up needs. */
export interface SendDeps {
  readonly executionDeps: ExecutionDeps;
  readonly blobs: BlobStore;
  readonly codeHosts: Pick<CodeHosts, 'findUnreadable'>;
  readonly contentPolicy?: ContentPolicy;
}

/**
 * Checks whether the author may send text to a run of the team. `clones`: the repositories that were considered; `hasMoreClones` must find
 * no further one in the transaction that stores the text. `grantedSecrets`: the values to remove from the text.
 */
export async function checkSender(
  { executionDeps: { db }, codeHosts }: Pick<SendDeps, 'executionDeps' | 'codeHosts'>,
  { teamId, creator }: FollowupSubmission['actor'],
  runId: string,
) {
  if (!(await isVisibleRun(db, teamId, runId))) return { kind: 'not_found' as const };
  const clones = await readPersonalClones(db, runId);
  const secret = await findLackingRight(db, teamId, runId, creator);
  if (secret !== null) return { kind: 'lacks_right' as const, secret };
  const repository = await findLackingRepository({ db, codeHosts }, teamId, runId, creator);
  if (repository !== null) return { kind: 'lacks_repository' as const, repository };
  return { kind: 'may_send' as const, clones, grantedSecrets: await readGrantedSecrets(db, runId) };
}

/** Outcome of sending a follow-up. The comment of each outcome begins with its HTTP status. */
export type SendOutcome =
  /** 200, also for a repeated request. */
  | { readonly kind: 'sent'; readonly answer: RunFollowupResponse }
  /** 409: the Idempotency-Key was used with another request. */
  | { readonly kind: 'idempotency_conflict' }
  | SenderRefusal
  /** 400 */
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] }
  /** 403 `content_policy_violation`; 503 if the policy cannot be checked now. */
  | Exclude<PolicyVerdict, { kind: 'allowed' }>
  | StorageRefusal
  /** 422: no file has this id, or the sender did not prepare it for the run, or has not uploaded it. */
  | UnknownAttachment
  | FollowupRefusal;

/**
 * Sends a follow-up to a run of the actor's team. Stores its files before the transaction that refers to them. After an error the files
 * stay, because the transaction may have been committed. If it was not committed, the sweep deletes the files.
 */
export async function sendFollowup(deps: SendDeps, submission: FollowupSubmission): Promise<SendOutcome> {
  const { actor, runId, request: asked, once: repeatable } = submission;
  const { executionDeps, blobs, contentPolicy } = deps;
  const { db } = executionDeps;
  const sender = await checkSender(deps, actor, runId);
  if (sender.kind !== 'may_send') return sender;
  const { clones, grantedSecrets } = sender;
  const { attachments: files, ...written } = asked;
  const request = {
    ...withoutSecrets(executionDeps, { grantedSecrets }, written),
    ...(files ? { attachments: files } : {}),
  };
  if (repeatable && request.attachments?.length) {
    // If the request is a repetition, do not store its files again.
    const earlier = await findReplay<RunFollowupResponse>(db, repeatable);
    if (earlier.kind === 'replayed') return { kind: 'sent', answer: earlier.response };
    if (earlier.kind === 'conflict') return { kind: 'idempotency_conflict' };
  }
  const decoded = decodeAttachments(request.attachments ? { attachments: request.attachments } : {});
  if (decoded.faults.length > 0) return { kind: 'invalid', faults: decoded.faults };
  const texts = [{ kind: 'prompt' as const, text: request.message ?? '' }];
  const verdict = await contentPolicy?.check(actor.teamId, texts);
  if (verdict && verdict.kind !== 'allowed') return verdict;
  const isFull = await takeRoomForRequest(executionDeps, undefined, actor.teamId, {
    texts: [request.message ?? ''],
    fileBytes: decoded.attachments.map(({ bytes }) => bytes.length),
  });
  if (isFull) return isFull;
  const mask = byteMaskOf(executionDeps, { grantedSecrets });
  const stored = await storeAttachments(
    blobs,
    decoded.attachments.map((file) => ({ ...file, bytes: mask.whole(file.bytes) })),
  );
  const named = (request.attachments ?? []).flatMap(({ attachment_id: attachmentId, file_name: fileName }) =>
    attachmentId === undefined ? [] : [{ attachmentId, fileName }],
  );
  let isAccepted = false;
  const outcome = await once<RunFollowupResponse, FollowupRefusal | UnknownAttachment | MoreClones>(
    db,
    repeatable,
    async (tx) => {
      if (await hasMoreClones(tx, runId, clones)) return { kind: 'failed', failure: { kind: 'more_clones' } };
      const prepared = await holdPrepared(tx, actor, runId, named);
      if ('unknown' in prepared)
        return { kind: 'failed', failure: { kind: 'unknown_attachment', attachmentId: prepared.unknown } };
      const attachments = [...stored, ...prepared.attachments];
      const accepted = await acceptFollowup(tx, runId, { ...request, attachments, from: actor.creator });
      switch (accepted.kind) {
        case 'empty':
        case 'full':
        case 'not_found':
        case 'is_check':
        case 'refused':
        case 'may_not_answer':
          return { kind: 'failed', failure: accepted };
        case 'joined':
        case 'resumed':
        case 'debugging':
        case 'continued':
          isAccepted = true;
          // A run that begins anew leaves its waiting sandbox. The new execution starts when this sandbox has ended.
          if (request.workspace) await endWait(tx, runId, executionDeps.timing.leaveSeconds);
          await prepared.use();
          await recordAction(tx, actor, {
            action: accepted.answers === undefined ? 'run.follow_up' : `run.${request.decision ?? 'answer'}`,
            subject: { type: 'run', uid: runId },
            after: {
              follow_up_id: accepted.id,
              ...(accepted.answers === undefined ? {} : { request_id: accepted.answers }),
            },
          });
          return { kind: 'done', response: { followup_id: accepted.id, outcome: accepted.routing, run_id: runId } };
      }
    },
  );
  if (!isAccepted) await discardAttachments(blobs, stored);
  if (outcome.kind === 'conflict') return { kind: 'idempotency_conflict' };
  if (outcome.kind === 'done') return { kind: 'sent', answer: outcome.response };
  return outcome.failure.kind === 'more_clones' ? await sendFollowup(deps, submission) : outcome.failure;
}
