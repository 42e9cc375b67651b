/** Starts and stops the whole service in one process, and lists its domains. */

import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Settings } from '@runyard/contract/settings/settings';
import { stopsWithParent } from '@runyard/system/parent-input';
import { parentProcess, thisProcess } from '@runyard/system/process-identity';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { deliverToGithub } from './edges/channels/github/deliver.ts';
import { githubAnswersDomain } from './edges/channels/github/domain.ts';
import type { Edge } from './edges/edge.ts';
import { gatewayDomain } from './edges/gateway/domain.ts';
import { testProvider } from './edges/gateway/models/ask-provider.ts';
import { buildApp, buildIngressApp } from './edges/http/app.ts';
import { httpDomain } from './edges/http/domain.ts';
import { makeMetricsServer } from './edges/http/metrics.ts';
import { authenticateWorker } from './edges/http/server/authorize.ts';
import type { ServiceDeps } from './edges/http/server/deps.ts';
import { liveDomain } from './edges/live/domain.ts';
import { mcpServerDomain } from './edges/mcp/domain.ts';
import { retentionDomain } from './edges/retention/domain.ts';
import { searchDomain } from './edges/search/domain.ts';
import { makeFindDue, startLoops } from './edges/start/loops.ts';
import { makeUndo, openParts, StartProblem, storeDomain, type Undo } from './edges/start/open-parts.ts';
import { afterPause } from './edges/start/pause.ts';
import { makeWaiting } from './edges/start/until-usable.ts';
import { statusDomain } from './edges/status/domain.ts';
import { workersDomain } from './edges/workers/domain.ts';
import type { Loop } from './platform/domain.ts';
import { idempotencyDomain } from './platform/idempotency/domain.ts';
import { uploadsDomain } from './platform/uploads/domain.ts';
import { conversationsDomain } from './runs/conversations/domain.ts';
import { executionsDomain } from './runs/executions/domain.ts';
import { acceptConversation, listWaitingConversations } from './runs/executions/run-tokens/accept-conversation.ts';
import { filesDomain } from './runs/files/domain.ts';
import { storageUseOf } from './runs/files/stored-bytes.ts';
import { harnessSupportDomain } from './runs/harness-support/domain.ts';
import { budgetRules } from './runs/inbox/budgets.ts';
import { inboxDomain } from './runs/inbox/domain.ts';
import { repositoriesDomain } from './runs/repositories/domain.ts';
import { resultsDomain } from './runs/results/domain.ts';
import { runsDomain } from './runs/runs/domain.ts';
import { checkIdentityDefaults } from './runs/runs/submit/identity-defaults.ts';
import { subscriptionsDomain } from './runs/subscriptions/domain.ts';
import { acceptancesDomain } from './team/acceptances/domain.ts';
import { listAllWaiting } from './team/acceptances/waiting-all.ts';
import { accessDomain } from './team/access/domain.ts';
import { codeHostsDomain } from './team/code-hosts/domain.ts';
import { environmentsDomain } from './team/environments/domain.ts';
import { mcpDomain } from './team/mcp/domain.ts';
import { modelsDomain } from './team/models/domain.ts';
import { savedViewsDomain } from './team/saved-views/domain.ts';
import { skillsDomain } from './team/skills/domain.ts';
import { storedSecretsDomain, vaultDomain } from './team/stored-secrets/domain.ts';
import { checkEnvironmentSecrets } from './team/stored-secrets/environment-secrets.ts';
import { isTeamOutOfBudget } from './team/usage/budget/team-budget.ts';
import { usageDomain } from './team/usage/domain.ts';
import { automationsDomain } from './triggers/automations/domain.ts';
import { definitionsDomain } from './triggers/definitions/domain.ts';
import { definedSkillsWith } from './triggers/definitions/skills.ts';
import { listAgentsOfFactory } from './triggers/factories/agents-as-identities.ts';
import { factoriesDomain } from './triggers/factories/domain.ts';
import { readFactoryNames } from './triggers/factories/factories.ts';
import { factoryRunsDomain } from './triggers/factory-runs/domain.ts';
import { readTasksOfConversations } from './triggers/factory-runs/tasks/read.ts';
import { githubDomain } from './triggers/github/domain.ts';
import { filesOfPlace } from './triggers/github/place-files.ts';
import { moveStartToRetry } from './triggers/history/write.ts';
import { schedulesDomain } from './triggers/schedules/domain.ts';
import { writeDeliveries } from './triggers/starts/deliveries/start-deliveries.ts';
import { startsDomain } from './triggers/starts/domain.ts';
import { startMoves } from './triggers/starts/start-moves.ts';
import { findWaitingAfterChange } from './triggers/starts/waiting-starts.ts';
import { webhooksDomain } from './triggers/webhooks/domain.ts';
import { faultOfWebhookSecret } from './triggers/webhooks/ingest/secrets.ts';

/**
 * Lists the domains in the order of their dependencies: a domain comes after the domains that it uses. The sweep of old runs calls the
 * domains in this order, and they are closed in the reverse order. This function opens no resources. docs/architecture.md has the steps
 * for a new domain.
 */
export function listDomains(deps: ServiceDeps): readonly Edge[] {
  const { githubApi } = deps;
  const domains: readonly Edge[] = [
    storeDomain(deps),
    idempotencyDomain,
    uploadsDomain,
    accessDomain(deps, checkIdentityDefaults(deps.models), listAgentsOfFactory, findWaitingAfterChange),
    storedSecretsDomain(deps, faultOfWebhookSecret),
    modelsDomain(deps, isTeamOutOfBudget, testProvider),
    savedViewsDomain(deps),
    acceptancesDomain(deps, { list: listWaitingConversations, accept: acceptConversation }),
    usageDomain({
      ...deps,
      storageOf: (teamId) => storageUseOf(deps.executionDeps, teamId),
      factoryNamesOf: (teamId, uids) => readFactoryNames(deps.db, teamId, uids),
      rules: budgetRules,
    }),
    codeHostsDomain(deps),
    environmentsDomain(deps, checkEnvironmentSecrets, findWaitingAfterChange),
    mcpDomain({ ...deps, findWaiting: findWaitingAfterChange }),
    subscriptionsDomain(deps, { github: (delivery) => deliverToGithub({ ...deps, api: githubApi }, delivery) }),
    executionsDomain(deps),
    conversationsDomain,
    inboxDomain({
      ...deps,
      listWaiting: (person) => listAllWaiting(deps.db, { list: listWaitingConversations }, person, { isBrief: true }),
      tasksOf: (teamId, conversationIds) => readTasksOfConversations(deps.db, teamId, conversationIds),
    }),
    resultsDomain,
    filesDomain(deps),
    skillsDomain(deps),
    runsDomain({ ...deps, noteRetry: moveStartToRetry }),
    schedulesDomain(deps, findWaitingAfterChange),
    factoriesDomain(deps),
    factoryRunsDomain({ ...deps, startMoves }),
    webhooksDomain(deps),
    automationsDomain(deps, findWaitingAfterChange),
    definitionsDomain(deps, findWaitingAfterChange),
    githubDomain({
      ...deps,
      api: githubApi,
      followUps: deps,
      submit: deps,
      write: async (one) => (await writeDeliveries(deps, [one]))[0] ?? 'busy',
    }),
    startsDomain(deps),
    repositoriesDomain(deps),
    githubAnswersDomain({ ...deps, api: githubApi }),
    harnessSupportDomain(deps, definedSkillsWith, (run, known) =>
      filesOfPlace({ ...deps, api: githubApi }, run, known),
    ),
    liveDomain,
    workersDomain(deps, (authorization) => authenticateWorker(deps.keys, authorization)),
    gatewayDomain(deps),
    mcpServerDomain(deps),
    httpDomain(deps),
  ];
  return [
    ...domains,
    vaultDomain(deps, domains),
    retentionDomain(deps, domains),
    searchDomain(deps, domains),
    statusDomain(deps, domains),
  ];
}

export interface RunningService {
  /** Origin under which clients reach the service. */
  readonly baseUrl: string;
  /** How many milliseconds each part of the start took. */
  readonly startedIn: Readonly<Record<string, number>>;
  stop(): Promise<void>;
}

/**
 * Starts the service and resolves when it answers requests. If `signal` is aborted during the start, stops after the current part,
 * closes everything that was opened, and throws the reason of the signal.
 */
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
  // `service.json` is removed last, because the next service with this data folder waits until this service has stopped completely.
  const serviceFile = fileOfService(dataDir);
  undo.add(serviceFile.remove);
  let baseUrl = settings.RUNYARD_BASE_URL ?? '';
  let webhookBaseUrl = settings.RUNYARD_WEBHOOK_BASE_URL ?? '';
  const waiting = makeWaiting({
    host: settings.RUNYARD_HOST,
    port: settings.RUNYARD_PORT,
    log,
    signal,
    onOpen: (origin) => serviceFile.write(settings.RUNYARD_BASE_URL ?? origin),
  });
  undo.add(waiting.close);
  try {
    const deps = await openParts({
      settings,
      log,
      dataDir,
      baseUrl: () => baseUrl,
      webhookBaseUrl: () => webhookBaseUrl,
      took,
      undo,
      untilUsable: waiting.untilUsable,
    });
    const domains = listDomains(deps);
    const app = await buildApp(deps, domains);
    undo.add(() => app.close());
    for (const domain of domains) {
      undo.add(async () => await domain.close?.());
      await domain.open?.();
    }
    const ingressUrl = await listenApart(deps, undo);
    await waiting.close();
    await listenForMetrics(deps, undo);
    const listening = await listen(app, {
      host: settings.RUNYARD_HOST,
      port: waiting.port(),
      setting: 'RUNYARD_PORT',
    });
    baseUrl ||= listening;
    webhookBaseUrl ||= ingressUrl ?? baseUrl;
    took('listen');

    const startWork = async () => {
      const loops: Loop[] = [];
      for (const domain of domains) loops.push(...((await domain.loops?.()) ?? []));
      undo.add(startLoops(loops, { log, random: Math.random, makeFindDue: (due) => makeFindDue(deps.db, due) }));
    };
    undo.add(await afterPause(deps.pause, { db: deps.db, log }, startWork));
    await serviceFile.write(baseUrl);
    log.info({ base_url: baseUrl, started_in_ms: startedIn }, 'service ready');
    return { baseUrl, startedIn, stop: () => undo.run() };
  } catch (error) {
    await undo.run();
    throw error;
  }
}

/**
 * Opens the separate port for incoming webhook deliveries, and returns its origin. Returns null if there is no such port, so senders
 * use the port of the API.
 */
async function listenApart(deps: ServiceDeps, undo: Undo): Promise<string | null> {
  const { RUNYARD_WEBHOOK_HOST, RUNYARD_WEBHOOK_PORT: port, RUNYARD_HOST } = deps.settings;
  if (port === undefined) return null;
  const ingress = buildIngressApp(deps);
  undo.add(() => ingress.close());
  return await listen(ingress, { host: RUNYARD_WEBHOOK_HOST ?? RUNYARD_HOST, port, setting: 'RUNYARD_WEBHOOK_PORT' });
}

/** Opens the separate port for `/metrics`, if there is one. */
async function listenForMetrics({ metrics, settings, log }: ServiceDeps, undo: Undo): Promise<void> {
  const { RUNYARD_METRICS_LISTEN: place, RUNYARD_METRICS_TOKEN: token } = settings;
  if (!metrics || !place) return;
  const server = makeMetricsServer(metrics, token);
  undo.add(async () => {
    server.closeAllConnections();
    server.close();
  });
  const listening = new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(place.port, place.host, resolve);
  });
  await startingAt(listening, { ...place, setting: 'RUNYARD_METRICS_LISTEN' });
  log.info({ address: server.address() }, 'metrics are served');
}

/** The address at which an app listens, and the setting that names it. */
interface Place {
  readonly host: string;
  readonly port: number;
  readonly setting: 'RUNYARD_PORT' | 'RUNYARD_WEBHOOK_PORT' | 'RUNYARD_METRICS_LISTEN';
}

const listen = async (app: FastifyInstance, place: Place): Promise<string> =>
  await startingAt(app.listen({ host: place.host, port: place.port }), place);

/** If the port is in use, throws an error with a message for the operator. */
async function startingAt<T>(listening: Promise<T>, { host, port, setting }: Place): Promise<T> {
  return await listening.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new StartProblem(
      `${setting}: port ${port} on ${host} is in use by another program; stop that or set another port.`,
    );
  });
}

/** Returns the functions that write and remove `service.json`, which contains the address of the service. */
function fileOfService(dataDir: string) {
  const file = path.join(dataDir, 'service.json');
  let isOurs = false;
  return {
    async write(baseUrl: string): Promise<void> {
      const content = {
        ...thisProcess(),
        ...(stopsWithParent() ? { parent: parentProcess() } : {}),
        base_url: baseUrl,
        started_at: new Date().toISOString(),
      };
      await writeFile(`${file}.${process.pid}`, JSON.stringify(content));
      await rename(`${file}.${process.pid}`, file);
      isOurs = true;
    },
    remove: async (): Promise<void> => (isOurs ? await rm(file, { force: true }) : undefined),
  };
}
