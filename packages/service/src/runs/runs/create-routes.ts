import { routes } from '@runyard/contract/routes';
import type { RunAgentResponse } from '@runyard/contract/runs/run-request';
import { notFound, type Refusal } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { serve, serveRepeatable } from '../../team/access/serve.ts';
import { isVisibleRun } from './read/read.ts';
import type { SubmitDeps } from './submit/prepare.ts';
import { rerunFailed } from './submit/rerun-failed.ts';
import { type SingleSubmission, submitRun } from './submit/submit.ts';
import { refusedSubmission, sourceOf } from './submit/translate.ts';

interface CreateRouteDeps extends SubmitDeps {
  baseUrl(): string;
}

/** Date on which `POST /agent/run` was deprecated, in the format of RFC 9745: 2026-01-01. */
const deprecatedSince = '@1767225600';

/** Routes that create and rerun runs. */
export function createRoutes(deps: CreateRouteDeps): readonly ServedRoute[] {
  const submit = async (submission: SingleSubmission): Promise<RunAgentResponse | Refusal> => {
    const outcome = await submitRun(deps, submission);
    return outcome.kind === 'submitted' ? outcome.response : refusedSubmission(outcome);
  };

  return [
    serveRepeatable(routes.createRun, ({ principal, body, once, from }) =>
      submit({ actor: principal, by: principal, request: body, source: sourceOf(from, principal), once }),
    ),

    serveRepeatable(routes.createRunDeprecated, ({ principal, body, once, from, setHeader }) => {
      setHeader('deprecation', deprecatedSince);
      setHeader('link', `<${deps.baseUrl()}/api/v1/agent/runs>; rel="successor-version"`);
      return submit({ actor: principal, by: principal, request: body, source: sourceOf(from, principal), once });
    }),

    serveRepeatable(routes.rerunRun, ({ principal, params, body, once, from }) =>
      submit({
        actor: principal,
        by: principal,
        request: { rerunOf: params.runId, instead: body ?? {} },
        source: sourceOf(from, principal),
        once,
      }),
    ),

    serve(routes.rerunFailedRuns, async ({ principal, params, from }) => {
      if (!(await isVisibleRun(deps.executionDeps.db, principal.teamId, params.runId))) return notFound('run');
      const submission = { actor: principal, by: principal, source: sourceOf(from, principal) };
      return await rerunFailed(deps, submission, params.runId);
    }),
  ];
}
