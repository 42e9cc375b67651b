/** The whole service in one process: the list of its domains, and their start and stop. */
import path from 'node:path';
import type { Settings } from '@runyard/contract/settings';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { accessDomain } from './access/domain/domain.ts';
import { automationsDomain } from './automations/domain.ts';
import { codeHostsDomain } from './code-hosts/domain.ts';
import { conversationsDomain } from './conversations/domain.ts';
import { definitionsDomain } from './definitions/source/domain.ts';
import type { Domain, Loop } from './domain.ts';
import { executionsDomain } from './executions/domain/domain.ts';
import { filesDomain } from './files/domain.ts';
import { gatewayDomain } from './gateway/domain/domain.ts';
import { registerChildRunRoutes } from './http/agent/child-runs.ts';
import { registerHarnessArtifactRoutes } from './http/agent/harness-artifacts.ts';
import { registerHarnessSnapshotRoutes } from './http/agent/harness-snapshots.ts';
import { registerHarnessSupport } from './http/agent/harness-support.ts';
import { registerHarnessWorkspaceRoutes } from './http/agent/harness-workspace.ts';
import { registerPullRequestRoutes } from './http/agent/pull-requests.ts';
import { registerRunMessageRoutes } from './http/agent/run-messages.ts';
import { registerAgentIdentityRoutes } from './http/api/agent-identities.ts';
import { registerAgentRoutes } from './http/api/agents.ts';
import { registerArtifactRoutes } from './http/api/artifacts.ts';
import { registerAuditRoutes } from './http/api/audit.ts';
import { registerAutomationRoutes } from './http/api/automations.ts';
import { registerBlobRoutes } from './http/api/blobs.ts';
import { registerBrowserSessionRoutes } from './http/api/browser-sessions.ts';
import { registerBudgetRoutes } from './http/api/budgets.ts';
import { registerCodeHostRoutes } from './http/api/code-hosts.ts';
import { registerConversationRoutes } from './http/api/conversations.ts';
import { registerDeleteRunRoute } from './http/api/delete-run.ts';
import { registerEnvironmentGuestRoutes } from './http/api/environment-guests.ts';
import { registerEnvironmentRoutes } from './http/api/environments.ts';
import { registerEventSubscriptionRoutes } from './http/api/event-subscriptions.ts';
import { registerFactoryRoutes } from './http/api/factories.ts';
import { registerFactoryDefinitionRoutes } from './http/api/factory-definitions.ts';
import { registerFactoryRunRoutes } from './http/api/factory-runs.ts';
import { registerFactorySourceRoutes } from './http/api/factory-sources.ts';
import { registerHandoffRoutes } from './http/api/handoff.ts';
import { registerKeyRoutes } from './http/api/keys.ts';
import { registerLiveRoutes } from './http/api/live.ts';
import { registerMcpServerRoutes } from './http/api/mcp-servers.ts';
import { registerModelSettingsRoutes } from './http/api/model-settings.ts';
import { registerRedirectRoutes } from './http/api/redirects.ts';
import { registerRunRoutes } from './http/api/runs.ts';
import { registerScheduleRoutes } from './http/api/schedules.ts';
import { registerSecretRoutes } from './http/api/secrets.ts';
import { registerServiceInfoRoutes } from './http/api/service-info.ts';
import { registerSimulationRoutes } from './http/api/simulations.ts';
import { registerTeamInvitationRoutes } from './http/api/team-invitations.ts';
import { registerTeamRoutes } from './http/api/teams.ts';
import { registerWebhookRoutes } from './http/api/webhooks.ts';
import { buildApp, buildIngressApp } from './http/app.ts';
import { registerIngress } from './http/ingress/webhooks.ts';
import { registerPages } from './http/pages/pages.ts';
import { authenticateWorker } from './http/server/authenticate-worker.ts';
import type { ServiceDeps } from './http/server/deps.ts';
import { idempotencyDomain } from './idempotency/domain.ts';
import { liveDomain } from './live/domain.ts';
import { mcpDomain } from './mcp/domain.ts';
import { repositoriesDomain } from './repositories/domain.ts';
import { retentionDomain } from './retention/domain.ts';
import { runsDomain } from './runs/domain.ts';
import { schedulesDomain } from './schedules/domain.ts';
import { skillsDomain } from './skills/domain.ts';
import { makeFindDue } from './start/find-due.ts';
import { startLoops } from './start/loops.ts';
import { openParts } from './start/open-parts.ts';
import { writeServiceFile } from './start/service-file.ts';
import { StartProblem } from './start/start-problem.ts';
import { storeDomain } from './start/store-domain.ts';
import { makeUndo, type Undo } from './start/undo.ts';
import { storedSecretsDomain, vaultDomain } from './stored-secrets/domain.ts';
import { subscriptionsDomain } from './subscriptions/domain.ts';
import { uploadsDomain } from './uploads/domain.ts';
import { webhooksDomain } from './webhooks/domain.ts';
import { workersDomain } from './workers/domain.ts';

/** Returns whether the ingress listens apart from the API. */
const hasOwnIngress = ({ RUNYARD_WEBHOOK_PORT }: Settings): boolean => RUNYARD_WEBHOOK_PORT !== undefined;

/**
 * Lists the domains in the order of their dependencies, the lowest first. The sweep of old runs calls them in this order, and they are
 * closed in the reverse order. A new domain is a folder and one line here. Listing them opens nothing.
 */
export function listDomains(deps: ServiceDeps): readonly Domain[] {
  type Register = (app: FastifyInstance, deps: ServiceDeps) => void | Promise<void>;
  /** Pairs a domain with its routes, which are in `http/` because domains do not import it. */
  const served = (domain: Domain, ...routes: readonly Register[]): Domain => ({
    ...domain,
    routes: async (app) => {
      for (const register of routes) await register(app, deps);
    },
  });
  const domains: readonly Domain[] = [
    storeDomain(deps),
    idempotencyDomain,
    uploadsDomain,
    served({ name: 'service information' }, registerServiceInfoRoutes, registerModelSettingsRoutes, registerPages),
    served(
      accessDomain(deps),
      registerKeyRoutes,
      registerBrowserSessionRoutes,
      registerTeamRoutes,
      registerTeamInvitationRoutes,
      registerAgentIdentityRoutes,
      registerAuditRoutes,
    ),
    served(storedSecretsDomain(deps), registerSecretRoutes),
    served({ name: 'usage' }, registerBudgetRoutes),
    served(codeHostsDomain(deps), registerCodeHostRoutes),
    served({ name: 'environments' }, registerEnvironmentRoutes, registerEnvironmentGuestRoutes),
    served(mcpDomain(deps), registerMcpServerRoutes),
    served(subscriptionsDomain(deps), registerEventSubscriptionRoutes),
    executionsDomain(deps),
    served(conversationsDomain, registerConversationRoutes),
    served(filesDomain, registerArtifactRoutes, registerBlobRoutes, registerHandoffRoutes),
    served(skillsDomain(deps), registerAgentRoutes),
    served(runsDomain(deps), registerRunRoutes, registerDeleteRunRoute, registerRedirectRoutes),
    served(schedulesDomain(deps), registerScheduleRoutes),
    served({ name: 'factories' }, registerFactoryRoutes, registerFactoryRunRoutes),
    served(webhooksDomain(deps), registerWebhookRoutes, ...(hasOwnIngress(deps.settings) ? [] : [registerIngress])),
    served(automationsDomain(deps), registerAutomationRoutes, registerSimulationRoutes),
    served(definitionsDomain(deps), registerFactoryDefinitionRoutes, registerFactorySourceRoutes),
    served(
      { name: 'agent files' },
      registerHarnessArtifactRoutes,
      registerHarnessWorkspaceRoutes,
      registerHarnessSnapshotRoutes,
    ),
    served(repositoriesDomain(deps.executionDeps), registerPullRequestRoutes),
    served({ name: 'agent runs' }, registerChildRunRoutes, registerRunMessageRoutes),
    served({ name: 'harness support' }, registerHarnessSupport),
    served(liveDomain, registerLiveRoutes),
    workersDomain(deps, (authorization) => authenticateWorker(deps.keys, authorization)),
    gatewayDomain(deps),
  ];
  return [...domains, vaultDomain(deps, domains), retentionDomain(deps, domains)];
}

export interface RunningService {
  /** Origin under which clients reach it. */
  readonly baseUrl: string;
  /** Milliseconds that each part of the start took. */
  readonly startedIn: Readonly<Record<string, number>>;
  stop(): Promise<void>;
}

/** Starts the service and resolves when it answers requests. When `signal` aborts, the start stops after its current part, closes everything and throws the reason. */
export async function startService(settings: Settings, log: Logger, signal: AbortSignal): Promise<RunningService> {
  const dataDir = path.resolve(settings.RUNYARD_DATA_DIR);
  const startedIn: Record<string, number> = {};
  let mark = performance.now();
  const took = (part: string) => {
    startedIn[part] = Math.round(performance.now() - mark);
    mark = performance.now();
    signal.throwIfAborted();
  };
  const undo = makeUndo(log);
  let baseUrl = settings.RUNYARD_BASE_URL ?? '';
  let webhookBaseUrl = settings.RUNYARD_WEBHOOK_BASE_URL ?? '';
  try {
    const deps = await openParts({
      settings,
      log,
      dataDir,
      baseUrl: () => baseUrl,
      webhookBaseUrl: () => webhookBaseUrl,
      took,
      undo,
    });
    const domains = listDomains(deps);
    const app = await buildApp(deps, domains);
    undo.add(() => app.close());
    for (const domain of domains) {
      undo.add(async () => await domain.close?.());
      await domain.open?.();
    }
    const ingressUrl = await listenApart(deps, undo);
    const listening = await listen(app, {
      host: settings.RUNYARD_HOST,
      port: settings.RUNYARD_PORT,
      setting: 'RUNYARD_PORT',
    });
    baseUrl ||= listening;
    webhookBaseUrl ||= ingressUrl ?? baseUrl;
    took('listen');

    const loops: Loop[] = [];
    for (const domain of domains) loops.push(...((await domain.loops?.()) ?? []));
    undo.add(startLoops(loops, { log, random: Math.random, makeFindDue: (due) => makeFindDue(deps.db, due) }));
    undo.add(await writeServiceFile(dataDir, baseUrl));
    log.info({ base_url: baseUrl, started_in_ms: startedIn }, 'service ready');
    return { baseUrl, startedIn, stop: () => undo.run() };
  } catch (error) {
    await undo.run();
    throw error;
  }
}

/** Opens the port of the ingress and returns its origin; null: senders use the port of the API. */
async function listenApart(deps: ServiceDeps, undo: Undo): Promise<string | null> {
  const { RUNYARD_WEBHOOK_HOST, RUNYARD_WEBHOOK_PORT: port, RUNYARD_HOST } = deps.settings;
  if (port === undefined) return null;
  const ingress = buildIngressApp(deps);
  undo.add(() => ingress.close());
  return await listen(ingress, { host: RUNYARD_WEBHOOK_HOST ?? RUNYARD_HOST, port, setting: 'RUNYARD_WEBHOOK_PORT' });
}

/** The address at which an app listens, and the setting for it. */
interface Place {
  readonly host: string;
  readonly port: number;
  readonly setting: 'RUNYARD_PORT' | 'RUNYARD_WEBHOOK_PORT';
}

async function listen(app: FastifyInstance, { host, port, setting }: Place): Promise<string> {
  return await app.listen({ host, port }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new StartProblem(
      `${setting}: port ${port} on ${host} is in use by another program; stop that or set another port.`,
    );
  });
}
