import { routes } from '@runyard/contract/routes';
import type { RunAgentResponse } from '@runyard/contract/run-request';
import type { FastifyInstance } from 'fastify';
import { invalid, notFound, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { cancelRun } from '../../../runs/executions/cancel/cancel.ts';
import { interruptRun } from '../../../runs/executions/cancel/interrupt.ts';
import { readTimeline } from '../../../runs/executions/timeline/timeline.ts';
import { listRuns } from '../../../runs/runs/list/list.ts';
import { readRunItem } from '../../../runs/runs/read/read.ts';
import type { ReadContext } from '../../../runs/runs/read/run-items.ts';
import { isVisibleRun } from '../../../runs/runs/read/visible.ts';
import { refusedSubmission } from '../../../runs/runs/submit/refused.ts';
import { sourceOf } from '../../../runs/runs/submit/source-of.ts';
import { type SingleSubmission, submitRun } from '../../../runs/runs/submit/submit.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { addRoute, type Call } from '../server/add-route.ts';
import { originOf } from '../server/authorize.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { sendFollowup } from './send-followup.ts';

/** When `POST /agent/run` was deprecated, in the form of RFC 9745: 2026-01-01. */
const deprecatedSince = '@1767225600';

type CreateInput = 'principal' | 'body' | 'once' | 'request';

/** Registers create, rerun, read, list, cancel and timeline. */
export function registerRunRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db } = deps;

  const submit = async (submission: SingleSubmission): Promise<RunAgentResponse | Refusal> => {
    const outcome = await submitRun(deps, submission);
    return outcome.kind === 'submitted' ? outcome.response : refusedSubmission(outcome);
  };

  const create = ({ principal, body, once, request }: Pick<Call<typeof routes.createRun>, CreateInput>) =>
    submit({ actor: principal, request: body, source: sourceOf(originOf(request)), once });

  addRoute(app, routes.createRun, create);

  addRoute(app, routes.createRunDeprecated, (call) => {
    call.reply.header('deprecation', deprecatedSince);
    call.reply.header('link', `<${deps.baseUrl()}/api/v1/agent/runs>; rel="successor-version"`);
    return create(call);
  });

  addRoute(app, routes.rerunRun, ({ principal, params, body, once, request }) =>
    submit({
      actor: principal,
      request: { rerunOf: params.runId, instead: body ?? {} },
      source: sourceOf(originOf(request)),
      once,
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
    const outcome = await cancelRun(deps.executionDeps, params.runId, principal);
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
        return refuse('invalid_request', { detail: 'The run has no turn in progress.' });
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
