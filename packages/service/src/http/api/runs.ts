import { routes } from '@runyard/contract/routes';
import type { RunAgentRequest, RunAgentResponse } from '@runyard/contract/run-request';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Principal } from '../../access/keys/principal.ts';
import { cancelRun } from '../../executions/cancel/cancel.ts';
import { interruptRun } from '../../executions/cancel/interrupt.ts';
import { readTimeline } from '../../executions/timeline/timeline.ts';
import { copyAttachments, discardAttachments, storeAttachments } from '../../files/attachments/request-attachments.ts';
import type { StoredAttachment } from '../../files/attachments/stored.ts';
import { findReplay } from '../../idempotency/once.ts';
import { listRuns } from '../../runs/list/list.ts';
import { type ReadContext, readRunItem } from '../../runs/read/read.ts';
import { isVisibleRun } from '../../runs/read/visible.ts';
import { createRun } from '../../runs/submit/create.ts';
import { checkRunRequest } from '../../runs/submit/request.ts';
import { readRerun } from '../../runs/submit/rerun.ts';
import { addRoute, type Call } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { invalid, notFound, Refusal, refuse } from '../server/problem.ts';
import { refusedChild } from '../server/refused-child.ts';
import { refusedRequest } from '../server/refused-request.ts';
import { idempotencyConflict, repeatable } from '../server/repeatable.ts';
import { sendFollowup } from './send-followup.ts';

/** When `POST /agent/run` was deprecated, in the form of RFC 9745: 2026-01-01. */
const deprecatedSince = '@1767225600';

/** Our CLI says so in its User-Agent; everyone else is the API. */
const sourceOf = (request: FastifyRequest) =>
  request.headers['user-agent']?.startsWith('runyard-cli') ? 'CLI' : 'API';

/** Registers create, rerun, read, list, cancel and timeline. */
export function registerRunRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db } = deps;

  const create = (call: SubmitCall & { readonly body: RunAgentRequest }) =>
    submitRun(deps, call, 'create run', async () => ({ request: call.body }));

  addRoute(app, routes.createRun, create);

  addRoute(app, routes.createRunDeprecated, (call) => {
    call.reply.header('deprecation', deprecatedSince);
    call.reply.header('link', `<${deps.baseUrl()}/api/v1/agent/runs>; rel="successor-version"`);
    return create(call);
  });

  addRoute(app, routes.rerunRun, (call) =>
    submitRun(deps, call, `rerun ${call.params.runId}`, async () => {
      const rerun = await readRerun(db, call.principal.teamId, call.params.runId, call.body ?? {});
      if (!rerun) return notFound('run');
      return { request: rerun.request, copyAttachments: () => copyAttachments(deps.blobs, rerun.attachments) };
    }),
  );

  addRoute(app, routes.getRun, async ({ params, principal }) => {
    return (await readRunItem(db, contextOf(deps, principal), params.runId)) ?? notFound('run');
  });

  addRoute(app, routes.listRuns, async ({ query, principal }) => {
    const outcome = await listRuns(db, deps.signing, contextOf(deps, principal), query);
    switch (outcome.kind) {
      case 'ok':
        return outcome.page;
      case 'invalid':
        return invalid(outcome.faults);
      case 'not_available':
        return refuse('feature_not_available', { detail: outcome.detail });
    }
  });

  addRoute(app, routes.cancelRun, async ({ params, principal }) => {
    if (!(await isVisibleRun(db, principal.teamId, params.runId))) return notFound('run');
    const outcome = await cancelRun(deps.engine, params.runId);
    switch (outcome) {
      case 'cancelled':
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
  });

  addRoute(app, routes.sendFollowup, (call) => sendFollowup(deps, call));

  addRoute(app, routes.interruptRun, async ({ params, principal }) => {
    if (!(await isVisibleRun(db, principal.teamId, params.runId))) return notFound('run');
    switch (await interruptRun(db, params.runId)) {
      case 'interrupted':
        return {};
      case 'blocked':
        return refuse('invalid_request', {
          detail: 'The run is BLOCKED: answer what it asks with a follow-up, or cancel it.',
        });
      case 'asks':
        return refuse('invalid_request', {
          detail: 'In the sandbox of the failed setup the agent waits for an answer: give it with a follow-up.',
        });
      case 'no_turn':
        return refuse('invalid_request', { detail: 'The run plays no turn at the moment.' });
    }
  });

  addRoute(app, routes.getRunTimeline, async ({ params, principal }) => {
    if (!(await isVisibleRun(db, principal.teamId, params.runId))) return notFound('run');
    return { events: await readTimeline(db, params.runId) };
  });
}

const contextOf = (deps: ServiceDeps, principal: Principal): ReadContext => ({
  teamId: principal.teamId,
  teamUid: principal.teamUid,
  baseUrl: deps.baseUrl(),
});

interface SubmitCall extends Pick<Call<typeof routes.createRun>, 'principal' | 'idempotencyKey' | 'request'> {
  readonly body: unknown;
}

/** The run to create. `copyAttachments`: those that are stored already; null: one is lost. */
interface Submission {
  readonly request: RunAgentRequest;
  readonly copyAttachments?: () => Promise<StoredAttachment[] | null>;
}

async function submitRun(
  deps: ServiceDeps,
  call: SubmitCall,
  operation: string,
  prepare: () => Promise<Submission | Refusal>,
): Promise<RunAgentResponse | Refusal> {
  const { principal } = call;
  const request = repeatable(call, { teamId: principal.teamId, principal: principal.keyId }, operation);
  if (request) {
    // Answered before: nothing is checked or stored again, even where the environment was deleted in between.
    const earlier = await findReplay<RunAgentResponse>(deps.db, request);
    if (earlier.kind === 'replayed') return earlier.response;
    if (earlier.kind === 'conflict') return idempotencyConflict();
  }
  const submission = await prepare();
  if (submission instanceof Refusal) return submission;
  const checked = await checkRunRequest(deps, principal, submission.request, sourceOf(call.request));
  if (checked.kind !== 'ok') return refusedRequest(checked);
  const attachments = submission.copyAttachments
    ? await submission.copyAttachments()
    : await storeAttachments(deps.blobs, checked.files);
  if (!attachments) {
    return refuse('conflict', {
      detail: 'A file that came with the run is lost; create a new run and send it again.',
    });
  }
  const outcome = await createRun(deps.engine, {
    ...checked.run,
    attachments,
    ...(request ? { idempotency: request } : {}),
  });
  if (outcome.kind === 'created') {
    const { runId, state, atCapacity } = outcome;
    return { run_id: runId, task_id: runId, state, at_capacity: atCapacity };
  }
  // Only here: after an error the run may be there all the same, and its files must be too.
  await discardAttachments(deps.blobs, attachments);
  switch (outcome.kind) {
    case 'replayed':
      return outcome.response as RunAgentResponse;
    case 'idempotency_conflict':
      return idempotencyConflict();
    case 'refused':
      return refusedChild(outcome.reason);
  }
}
