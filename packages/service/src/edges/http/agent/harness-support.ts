/** Routes that the agent inside a sandbox calls with the token of its execution. */
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { closedSignal } from '../../../platform/bodies/closed-signal.ts';
import { tooBusy } from '../../../platform/bodies/too-busy.ts';
import { notFound } from '../../../platform/serving/refusal.ts';
import { oneUpload } from '../../../platform/uploads/lease.ts';
import { applyAgentEvents } from '../../../runs/harness-support/events/apply-agent-events.ts';
import { finishTask, finishTaskWithEvents } from '../../../runs/harness-support/finish/finish-task.ts';
import { waitForInbox } from '../../../runs/harness-support/inbox/inbox.ts';
import { findMemory, keepMemory } from '../../../runs/harness-support/memory/memory.ts';
import { resolveTask } from '../../../runs/harness-support/task/resolve-task.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { definedSkillsWith } from '../../../triggers/definitions/skills.ts';
import { addRoute } from '../server/add-route.ts';
import { bytesOf, tooManyBytes, uploadBusy, withByteBodies } from '../server/byte-body.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { sendBytes } from '../server/download.ts';
import { supersededAttempt } from '../server/problem.ts';
import { waitingSignals } from '../server/waiting.ts';

/** Error codes of runs whose task cannot be built. */
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

/** Registers resolve-prompt, events, inbox, finish-task, memory and report-shutdown. */
export function registerHarnessSupport(app: FastifyInstance, deps: ServiceDeps): void {
  const { executionDeps, models, conversationReads: reads } = deps;
  const signalOf = waitingSignals(app);

  addRoute(app, routes.resolvePrompt, async ({ session, reply }) => {
    const over = closedSignal(reply.raw);
    const enterRead = (bytes: number) => reads.enter(session, bytes, over);
    const resolved = await resolveTask(
      {
        db: executionDeps.db,
        timing: executionDeps.timing,
        models,
        settings: deps.settings,
        vault: deps.vault,
        signing: deps.signing,
        enterRead,
        codeHosts: deps.codeHosts,
        skills: deps.skills,
        definedSkills: definedSkillsWith(executionDeps.db),
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
  });

  addRoute(app, routes.reportEvents, async ({ session, body }) => {
    const outcome = await applyAgentEvents(executionDeps, session, body.events);
    return outcome === 'superseded' ? supersededAttempt() : outcome;
  });

  addRoute(app, routes.readInbox, async ({ session, query, request }) => {
    const outcome = await waitForInbox(executionDeps, session, query, query.wait_ms, signalOf(request));
    return outcome === 'superseded' ? supersededAttempt() : outcome;
  });

  addRoute(app, routes.finishTask, async ({ session, body }) =>
    finishTaskWithEvents({ ...executionDeps, blobs: deps.blobs }, session, body),
  );

  addRoute(app, routes.readMemory, async ({ session, params, reply }) => {
    const key = await findMemory(deps.db, session, params.executionId);
    return key !== null && (await sendBytes(reply, deps.blobs, key, 'memory')) ? reply : notFound('memory');
  });

  withByteBodies(app, (scope) => {
    addRoute(scope, routes.keepMemory, async ({ session, query, request, reply }) => {
      const of = { turn: query.turn, requestId: query.request_id };
      const kind = { name: `memory/${session.executionId}`, most: 1 };
      const outcome = await oneUpload(deps.db, kind, bytesOf(request), (body) => keepMemory(deps, session, of, body));
      if (outcome === 'stored') return {};
      if (outcome === 'busy') return uploadBusy(reply, 'The execution uploads a memory already.');
      return tooManyBytes(reply, 'A memory has at most 32 MB.');
    });
  });

  addRoute(app, routes.reportShutdown, async ({ session, body, request }) => {
    const reason = withoutSecrets(executionDeps, session, body.reason);
    request.log.info({ run: session.runId, execution: session.executionId, reason }, 'agent leaves');
    return {};
  });
}
