import type { Settings } from '@runyard/contract/settings';
import type { BodyBudget } from '../../bodies/body-budget.ts';
import type { CodeHosts } from '../../code-hosts/code-hosts.ts';
import type { Domain } from '../../domain.ts';
import { readRepositories } from '../../environments/repositories.ts';
import { authenticateWorkingRunToken } from '../../executions/run-tokens/sessions.ts';
import { readServerOfExecution } from '../../mcp/of-run.ts';
import type { Models } from '../../models/models.ts';
import { beginOutage, claimOutageProbes, endOutage } from '../../models/outages.ts';
import type { ProviderName } from '../../models/providers.ts';
import { systemNames } from '../../names/resolver.ts';
import { readRunModels } from '../../runs/model-in-use/read-run-models.ts';
import { switchModel } from '../../runs/model-in-use/switch-model.ts';
import type { Vault } from '../../secrets/vault.ts';
import type { Database } from '../../store/database/database.ts';
import { recordUsage } from '../../usage/record-usage.ts';
import { registerGitGateway } from '../git/git.ts';
import { openModelHealth } from '../health/health.ts';
import { probeProvider } from '../health/probe.ts';
import { registerMcpGateway } from '../mcp/mcp.ts';
import { type AdmitModelRequest, type GatewayLog, registerGateway } from '../models/gateway.ts';
import type { ModelRouting } from '../models/route-request.ts';

interface GatewayDomainDeps {
  readonly db: Database;
  readonly log: GatewayLog;
  readonly models: Models;
  readonly settings: Pick<Settings, 'RUNYARD_CODE_HOST_URL' | 'RUNYARD_ALLOW_PRIVATE_NETWORKS'>;
  readonly vault: Vault;
  readonly codeHosts: CodeHosts;
  readonly bodies: BodyBudget;
  readonly admitModelRequest?: AdmitModelRequest;
}

/** Time between two looks for outages whose provider has to be probed. */
const probeEveryMs = 5_000;

/** The ways of agents to model providers, code hosts and MCP servers. */
export const gatewayDomain = (deps: GatewayDomainDeps): Domain => ({
  name: 'gateway',
  loops: async () => [{ name: 'probing model providers', everyMs: probeEveryMs, work: () => probeOutages(deps) }],
  routes: async (app) => {
    const { db, log, models, settings, bodies, admitModelRequest } = deps;
    const authenticateRunToken = (token: string) => authenticateWorkingRunToken(db, token);
    await registerGateway(app, {
      models,
      authenticateRunToken,
      recordUsage: (usage) => recordUsage(db, usage),
      ...(admitModelRequest ? { admit: admitModelRequest } : {}),
      routing: routingOf(deps),
      log,
      bodies,
    });
    await registerMcpGateway(app, {
      allowedNetworks: settings.RUNYARD_ALLOW_PRIVATE_NETWORKS,
      authenticateRunToken,
      serverOf: (executionId, name) => readServerOfExecution(deps, executionId, name),
      resolve: systemNames.resolve,
      bodies,
      log,
    });
    await registerGitGateway(app, {
      codeHostUrl: settings.RUNYARD_CODE_HOST_URL,
      authenticateRunToken,
      repositoriesOf: (executionId) => readRepositories(db, executionId),
      credentialFor: deps.codeHosts.credentialFor,
      log,
    });
  },
});

type HealthDeps = Pick<GatewayDomainDeps, 'db' | 'log' | 'models'>;

async function probe({ models }: HealthDeps, provider: ProviderName): Promise<boolean> {
  const upstream = models.upstreams[provider];
  return upstream !== undefined && (await probeProvider(provider, upstream));
}

function routingOf(deps: HealthDeps): ModelRouting {
  const { db, log } = deps;
  const { worked, failed } = openModelHealth({
    begin: (provider, reason) => beginOutage(db, provider, reason),
    end: (outage) => endOutage(db, outage),
    probe: (provider) => probe(deps, provider),
    log,
    now: () => performance.now(),
  });
  return { read: (holder) => readRunModels(db, holder), worked, failed, switched: (change) => switchModel(db, change) };
}

/** Probes the providers whose turn it is, and ends their outages if they work. Of several processes one probes. */
export async function probeOutages(deps: HealthDeps): Promise<void> {
  const { db, log, models } = deps;
  const claimed = await claimOutageProbes(db, Object.keys(models.upstreams) as ProviderName[]);
  await Promise.all(
    claimed.map(async (outage) => {
      if (!(await probe(deps, outage.provider)) || !(await endOutage(db, outage))) return;
      log.info({ provider: outage.provider }, 'a model provider works again');
    }),
  );
}
