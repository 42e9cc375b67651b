import { maxWaitingFollowups } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { RunFollowupResponse } from '@runyard/contract/runs/run-request';
import type { Logger } from 'pino';
import { idempotencyConflict } from '../../platform/idempotency/once.ts';
import { invalid, notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { serve, serveRepeatable } from '../../team/access/serve.ts';
import type { CodeHosts } from '../../team/code-hosts/code-hosts.ts';
import { refusedByPolicy } from '../../team/content-policy/content-policy.ts';
import { readLatestRunId } from '../conversations/read.ts';
import { cancelRun, interruptRun } from '../executions/cancel/cancel.ts';
import { deleteBlobs, deleteRun } from './delete.ts';
import { type EditOutcome, editFollowup, withdrawFollowup } from './follow-ups/change.ts';
import { type FollowupSubmission, type SendOutcome, sendFollowup } from './follow-ups/send.ts';
import { isVisibleRun } from './read/read.ts';
import type { SubmitDeps } from './submit/prepare.ts';

interface RunRouteDeps extends SubmitDeps {
  readonly log: Logger;
  readonly codeHosts: CodeHosts;
}

type Refused = Exclude<SendOutcome | EditOutcome, { kind: 'sent' | 'edited' }>;

function refusedFollowup(outcome: Refused): Refusal {
  switch (outcome.kind) {
    case 'not_yours':
      return refuse('not_authorized', {
        detail:
          outcome.needs === 'author'
            ? 'Another caller sent this follow-up. Only its author can change it.'
            : 'Another caller sent this follow-up. Its author can withdraw it, and an owner or administrator of the team.',
      });
    case 'taken':
      return refuse('conflict', {
        detail: 'The agent already has this follow-up, so it cannot be changed or withdrawn. Send another one.',
      });
    case 'needed':
      return refuse('conflict', {
        detail: 'The run was queued again only for this follow-up. Cancel the run instead.',
      });
    case 'idempotency_conflict':
      return idempotencyConflict();
    case 'invalid':
      return invalid(outcome.faults);
    case 'not_found':
      return notFound('run');
    case 'no_followup':
      return notFound('follow-up');
    case 'policy_violation':
    case 'policy_unavailable':
      return refusedByPolicy(outcome);
    case 'may_not_answer':
      return refuse('not_authorized', {
        detail:
          'A person must answer the question of this run. An agent key can answer only if config.approvals_from of the run has the UID of its agent.',
      });
    case 'lacks_right':
      return refuse('not_authorized', {
        detail: `The sandbox of the run holds the value of the secret ${outcome.secret}, which you may not use. Repeat the run as your own with POST /agent/runs/{runId}/rerun (bin/runyard rerun), or have its executor create it with "followups_from": "team" in its configuration.`,
      });
    case 'lacks_repository':
      return refuse('not_authorized', {
        detail: `The workspace of the run has a clone of the private repository ${outcome.repository}, and you have no credential that can read it. Store one with bin/runyard code-hosts add, or repeat the run as your own with POST /agent/runs/{runId}/rerun (bin/runyard rerun), or have its executor create it with "followups_from": "team" in its configuration.`,
      });
    case 'storage_full':
      return refuse('invalid_request', { status: 413, detail: outcome.detail });
    case 'unknown_attachment': {
      const message = `${outcome.attachmentId} names no file that you have prepared for this run and uploaded. Prepare it again.`;
      return refuse('invalid_request', {
        status: 422,
        errors: [{ path: 'attachments', message }],
        detail: `attachments: ${message}`,
      });
    }
    case 'refused':
      return invalid([{ path: outcome.path, message: outcome.reason }]);
    case 'is_check':
      return refuse('operation_not_supported', {
        detail:
          'This run only executes a check of its parent run, and no agent works in it. Send the message to the parent run.',
      });
    case 'full':
      return invalid([
        {
          path: '',
          message: `${maxWaitingFollowups} follow-ups are waiting for the agent; send another one after the agent has taken some`,
        },
      ]);
    case 'empty': {
      const message = 'must not be empty, because the run has no saved conversation and the request has no decision';
      return invalid([{ path: 'message', message }]);
    }
  }
}

/** Routes that send follow-ups to runs and conversations, interrupt the turns of runs and conversations, and cancel or delete runs. */
export function runRoutes(deps: RunRouteDeps): readonly ServedRoute[] {
  const { executionDeps, blobs, log } = deps;
  const { db } = executionDeps;

  const latestRunOf = async (teamId: string, conversationId: string): Promise<string | undefined> =>
    isUuid(conversationId) ? await readLatestRunId(db, teamId, conversationId) : undefined;

  const followUp = async (submission: FollowupSubmission): Promise<RunFollowupResponse | Refusal> => {
    const outcome = await sendFollowup(deps, submission);
    return outcome.kind === 'sent' ? outcome.answer : refusedFollowup(outcome);
  };

  /** Returns null if the agent was notified, otherwise the refusal. */
  const interrupt = async (runId: string, principal: Principal): Promise<Refusal | null> => {
    if (!(await isVisibleRun(db, principal.teamId, runId))) return notFound('run');
    switch (await interruptRun(db, runId, principal)) {
      case 'interrupted':
        return null;
      case 'blocked':
        return refuse('invalid_request', {
          detail: 'The run is BLOCKED: answer its question with a follow-up, or cancel it.',
        });
      case 'asks':
        return refuse('invalid_request', {
          detail: 'In the sandbox of the failed setup the agent waits for an answer: send it as a follow-up.',
        });
      case 'no_turn':
        return refuse('invalid_request', { detail: 'The run has no turn in progress.' });
    }
  };

  return [
    serve(routes.cancelRun, async ({ params, principal }) => {
      if (!(await isVisibleRun(db, principal.teamId, params.runId))) return notFound('run');
      const outcome = await cancelRun(executionDeps, params.runId, principal);
      switch (outcome) {
        case 'cancelled':
        case 'wait_ended':
          return params.runId;
        case 'already_ended':
          return refuse('invalid_request', { detail: 'The run has ended already.' });
        case 'pending':
          return refuse('conflict', {
            detail: 'The run is PENDING; try again in some seconds.',
            headers: { 'retry-after': '1' },
          });
        case 'not_supported':
          return refuse('operation_not_supported', {
            detail: 'Self-hosted, local and GitHub Action runs cannot be cancelled over the API.',
          });
        case 'not_found':
          return notFound('run');
      }
    }),

    serveRepeatable(routes.sendFollowup, ({ params, principal, body, once }) =>
      followUp({ actor: principal, runId: params.runId, request: body, once }),
    ),

    serve(routes.editFollowup, async ({ params: { runId, followupId }, principal, body }) => {
      const outcome = await editFollowup(deps, { principal, runId, followupId }, body.message);
      return outcome.kind === 'edited' ? {} : refusedFollowup(outcome);
    }),

    serve(routes.withdrawFollowup, async ({ params: { runId, followupId }, principal }) => {
      const outcome = await withdrawFollowup(deps, { principal, runId, followupId });
      return outcome.kind === 'withdrawn' ? { success: true as const } : refusedFollowup(outcome);
    }),

    serveRepeatable(routes.sendConversationFollowup, async ({ params, principal, body, once }) => {
      const runId = await latestRunOf(principal.teamId, params.conversationId);
      if (runId === undefined) return notFound('conversation');
      return await followUp({ actor: principal, runId, request: body, once });
    }),

    serve(routes.interruptRun, async ({ params, principal }) => (await interrupt(params.runId, principal)) ?? {}),

    serve(routes.interruptConversation, async ({ params, principal }) => {
      const runId = await latestRunOf(principal.teamId, params.conversationId);
      if (runId === undefined) return notFound('conversation');
      return (await interrupt(runId, principal)) ?? { run_id: runId };
    }),

    serve(routes.deleteRun, async ({ params, principal }) => {
      const outcome = await deleteRun(executionDeps, principal.teamId, params.runId, undefined, principal);
      switch (outcome.kind) {
        case 'not_found':
          return notFound('run');
        case 'not_ended':
          return refuse('conflict', {
            detail: `The run is ${outcome.state}. ${outcome.canBeCancelled ? 'Cancel it, or wait' : 'Wait'} for its end, then delete it.`,
          });
        case 'sandbox_running':
          return refuse('conflict', {
            detail:
              'The run has ended, but its sandbox, or a run that it started, is still ending; try again in some seconds.',
            headers: { 'retry-after': '5' },
          });
        case 'deleted':
          await deleteBlobs({ blobs, log }, outcome.blobKeys);
          return { success: true as const };
      }
    }),
  ];
}
