/** Routes that the agent inside a sandbox calls with the token of its execution. */

import { routes } from '@runyard/contract/routes';
import type { BodyBudget } from '../../platform/bodies/body-budget.ts';
import { invalid, notFound, refuse, tooBusy } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { ExecutionDeps } from '../executions/deps.ts';
import { AttemptOver, stoppingAttempt, supersededAttempt } from '../executions/run-tokens/attempt.ts';
import { serveRun } from '../executions/run-tokens/sessions.ts';
import { keepClientEvent } from './client-events.ts';
import { applyAgentEvents } from './events/apply-agent-events.ts';
import { finishTask, finishTaskWithEvents, reportExit } from './finish/finish-task.ts';
import { submitResult } from './finish/submit-result.ts';
import { holdConnection } from './hold-connection.ts';
import { waitForInbox } from './inbox.ts';
import { resolveTask } from './task/resolve-task.ts';

/** Error codes for runs whose task cannot be built, by reason. */
const codeOfUnresolved = {
  environment_gone: 'resource_not_found',
  mcp_server_gone: 'resource_not_found',
  mcp_server_sealed: 'integration_not_configured',
  policy_violation: 'content_policy_violation',
  no_access: 'external_authentication_required',
  secret_unusable: 'resource_not_found',
  model_disabled: 'feature_not_available',
  model_gone: 'integration_not_configured',
  model_unreachable: 'resource_unavailable',
  skill_unfit: 'invalid_request',
  skill_unavailable: 'resource_unavailable',
} as const;

type TaskDeps = Parameters<typeof resolveTask>[0];

export interface HarnessRouteDeps extends Omit<TaskDeps, 'db' | 'timing' | 'enterRead' | 'definedSkills'> {
  readonly executionDeps: ExecutionDeps;
  readonly blobs: BlobStore;
  readonly conversationReads: BodyBudget;
  /** Reads the skills whose text is part of a definition. */
  definedSkills(db: Database): TaskDeps['definedSkills'];
}

/** Handlers of resolve-prompt, events, inbox, finish-task and report-shutdown. */
export const harnessRoutes = (deps: HarnessRouteDeps): readonly ServedRoute[] => {
  const { executionDeps, models, conversationReads: reads } = deps;
  return [
    serveRun(routes.resolvePrompt, async ({ session, closed }) => {
      const over = closed();
      const enterRead = (bytes: number) => reads.enter(session, bytes, over);
      const resolved = await resolveTask(
        {
          db: executionDeps.db,
          timing: executionDeps.timing,
          models,
          settings: deps.settings,
          vault: deps.vault,
          signing: deps.signing,
          configSeal: deps.configSeal,
          enterRead,
          codeHosts: deps.codeHosts,
          skills: deps.skills,
          definedSkills: deps.definedSkills(executionDeps.db),
          filesOfEvent: deps.filesOfEvent,
          blobs: deps.blobs,
          ...(deps.contentPolicy ? { contentPolicy: deps.contentPolicy } : {}),
          baseUrl: deps.baseUrl,
        },
        session,
      );
      if (resolved.kind === 'task') return resolved.task;
      if (resolved.kind === 'busy') return tooBusy(resolved.detail);
      if (resolved.kind === 'not_found') return notFound('run');
      const code = codeOfUnresolved[resolved.kind];
      const error = { code, message: resolved.message, retried: true } as const;
      const detail = resolved.kind === 'no_access' ? { detail: resolved.detail } : {};
      await finishTask(executionDeps, session, { success: false, summary: resolved.message, error, ...detail });
      return supersededAttempt();
    }),

    serveRun(routes.reportEvents, async ({ session, body }) => {
      const outcome = await applyAgentEvents(executionDeps, session, body.events);
      return outcome === 'superseded' ? supersededAttempt() : outcome;
    }),

    serveRun(routes.readInbox, async ({ session, query, waiting }) => {
      const outcome = await waitForInbox(executionDeps, session, query, query.wait_ms, waiting());
      return outcome === 'superseded' ? supersededAttempt() : outcome;
    }),

    serveRun(routes.holdConnection, async ({ session, body, waiting }) => {
      try {
        return { decision: await holdConnection(executionDeps, session, body, waiting()) };
      } catch (error) {
        if (error instanceof AttemptOver) return error.why === 'stopping' ? stoppingAttempt() : supersededAttempt();
        throw error;
      }
    }),

    serveRun(routes.finishTask, async ({ session, body }) =>
      finishTaskWithEvents({ ...executionDeps, blobs: deps.blobs }, session, body),
    ),

    serveRun(routes.submitResult, async ({ session, body }) => {
      try {
        const outcome = await submitResult({ ...executionDeps, blobs: deps.blobs }, session, body);
        switch (outcome.kind) {
          case 'checked': {
            const { kind: _, ...answer } = outcome;
            return answer;
          }
          case 'no_schema':
            return invalid([{ path: 'result', message: 'the run has no output_schema, so it returns no result' }]);
          case 'no_artifact':
            return notFound('artifact');
          case 'too_large':
            return refuse('invalid_request', { status: 413, detail: outcome.detail });
          case 'busy':
            return tooBusy('Too many results wait for their check.');
        }
      } catch (error) {
        if (error instanceof AttemptOver) return error.why === 'stopping' ? stoppingAttempt() : supersededAttempt();
        throw error;
      }
    }),

    serveRun(routes.reportClientEvent, async ({ session, params, body }) => {
      if (params.runId !== session.runId) return notFound('run');
      await keepClientEvent(executionDeps, session, body);
      return {};
    }),

    serveRun(routes.reportShutdown, async ({ session, body, from }) => {
      await reportExit(executionDeps, session, body, from.requestId);
      return {};
    }),
  ];
};
