import type { Settings } from '@runyard/contract/settings/settings';
import { systemNames } from '@runyard/system/names/resolver';
import type { BodyBudget } from '../../platform/bodies/body-budget.ts';
import { count } from '../../platform/metrics/record.ts';
import type { ConfigSeal } from '../../platform/secrets/config-seal.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { readApprovalRules, waitForApproval } from '../../runs/executions/held-actions/held-actions.ts';
import { readAliveInstances } from '../../runs/executions/lease/heartbeat.ts';
import { whyRepositoriesStay } from '../../runs/executions/plan-mode.ts';
import { noteClones } from '../../runs/executions/run-tokens/personal-clones.ts';
import { readCodeHostUser } from '../../runs/executions/run-tokens/present-rights.ts';
import { authenticateWorkingRunToken } from '../../runs/executions/run-tokens/sessions.ts';
import { endOverBudget } from '../../runs/executions/transitions/transitions.ts';
import { heldPushOf } from '../../runs/repositories/pushes/held-push.ts';
import { beginPush, endPush, recordUpload } from '../../runs/repositories/pushes/record.ts';
import { noteRemovedMembers, type RunModels, readRunModels, switchModel } from '../../runs/runs/model-in-use.ts';
import { readServerOfExecution } from '../../runs/runs/read/mcp-server.ts';
import { readProtectedBranches, readRepositories } from '../../runs/runs/read/repositories.ts';
import { hasOneTeam } from '../../team/access/teams/one-team.ts';
import type { CodeHosts } from '../../team/code-hosts/code-hosts.ts';
import { isUnpriced } from '../../team/models/is-unpriced.ts';
import type { Models } from '../../team/models/models.ts';
import { beginOutage, claimOutageProbes, dueProbes, endOutage } from '../../team/models/outages.ts';
import type { ProviderName } from '../../team/models/providers.ts';
import { admitToBudgets } from '../../team/usage/budget/admit.ts';
import { oldRequests, recordLostRequests } from '../../team/usage/budget/lost-requests.ts';
import { hasCostLimit } from '../../team/usage/budget/read-budgets.ts';
import type { RunTokenHolder } from '../../team/usage/model-usage.ts';
import { makeUsageRecorder } from '../../team/usage/record-with-retries.ts';
import { isAnyBranchFollowed, readFollowedBranches } from '../../triggers/definitions/source/followed.ts';
import type { Edge } from '../edge.ts';
import { registerGitGateway } from './git/git.ts';
import { registerMcpGateway } from './mcp/mcp.ts';
import type { AdmitModelRequest } from './models/admission.ts';
import { probeProvider } from './models/ask-provider.ts';
import { registerGateway } from './models/gateway.ts';
import type { GatewayLog } from './models/handle-request.ts';
import { openModelHealth } from './models/model-health.ts';
import type { ModelRouting } from './models/route-request.ts';

interface GatewayDomainDeps {
  readonly db: Database;
  readonly executionDeps: Pick<ExecutionDeps, 'db' | 'notices' | 'secrets' | 'timing' | 'vault'>;
  readonly log: GatewayLog;
  readonly models: Models;
  readonly settings: Pick<Settings, 'RUNYARD_CODE_HOST_URL' | 'RUNYARD_ALLOW_PRIVATE_NETWORKS'>;
  readonly vault: Vault;
  readonly configSeal: ConfigSeal;
  readonly codeHosts: CodeHosts;
  readonly bodies: BodyBudget;
  /** UUID of this service process. */
  readonly serviceInstanceId: string;
  /** Default: checks the budgets of the run and of its team. */
  readonly admitModelRequest?: AdmitModelRequest;
}

/** Time between two searches for providers with an outage that are due for a probe. */
const probeEveryMs = 5_000;

/** Returns the admission that checks the budgets of the run and of its team, and ends a run whose budget is used up. */
function admitByBudgets(deps: GatewayDomainDeps): AdmitModelRequest {
  return async (holder, request) => {
    if (request.kind !== 'generate') return { ok: true };
    const admission = await admitToBudgets(deps, holder, request);
    switch (admission.kind) {
      case 'admitted':
        return { ok: true };
      case 'busy': {
        const message =
          'other requests of this run have reserved the rest of its budget; send this request again later';
        return { ok: false, status: 429, message, retryAfterSeconds: 5 };
      }
      case 'ended':
        return { ok: false, status: 401, message: 'the run of this sandbox has ended' };
      case 'several_answers': {
        const message =
          'this run has a limit, so a request may ask for only one answer: leave out n, candidateCount and best_of';
        return { ok: false, status: 400, message };
      }
      case 'over': {
        const { code, message } = admission;
        await endOverBudget(deps.executionDeps, holder, { code, message });
        return { ok: false, status: 403, message, code };
      }
    }
  };
}

/** The gateway: the routes through which agents reach model providers, code hosts and MCP servers. */
export const gatewayDomain = (deps: GatewayDomainDeps): Edge => {
  const { db, log } = deps;
  const recorder = makeUsageRecorder(db, log);
  return {
    name: 'gateway',
    endpoints: async (app) => {
      const { models, settings, bodies } = deps;
      const authenticateRunToken = async (token: string) => {
        const session = await authenticateWorkingRunToken(db, token);
        if (!session) count('runyard_authentication_failures_total', { credential: 'run_token' });
        return session;
      };
      await registerGateway(app, {
        models,
        authenticateRunToken,
        recordUsage: (usage) => recorder.record(usage),
        admit: deps.admitModelRequest ?? admitByBudgets(deps),
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
        allowedNetworks: settings.RUNYARD_ALLOW_PRIVATE_NETWORKS,
        resolve: systemNames.resolve,
        authenticateRunToken,
        repositoriesOf: (executionId) => readRepositories(db, executionId),
        credentialFor: async (session, repository) => {
          const chosen = await deps.codeHosts.credentialFor(await readCodeHostUser(db, session), repository);
          if (chosen.kind === 'credential' && chosen.isPersonal) await noteClones(db, session.runId, [repository]);
          return chosen;
        },
        pushes: {
          protectedBranchesOf: (executionId) => readProtectedBranches(db, executionId),
          isAnyBranchFollowed: () => isAnyBranchFollowed(db),
          followedBranchesOf: (pushed) => readFollowedBranches(db, pushed),
          begin: async (session, push) =>
            beginPush(deps.executionDeps, session, push, await readApprovalRules(db, session.runId)),
          answered: (session, id, signal) => waitForApproval(deps.executionDeps, session.runId, id, signal),
          areHeld: async (session, repository) => {
            const { rules } = await readApprovalRules(db, session.runId);
            return heldPushOf(rules, { repository, commands: [] }) !== undefined;
          },
          recordUpload: (session, repository, object) => recordUpload(db, session, repository, object),
          whyRepositoriesStay: (executionId) => whyRepositoriesStay(db, executionId),
          isAtWork: async ({ token }) => (await authenticateRunToken(token)) !== null,
          end: (session, push, numbers, report) => endPush(deps.executionDeps, session, push, numbers, report),
        },
        bodies,
        log,
      });
    },
    loops: async () => [
      { name: 'probing model providers', everyMs: probeEveryMs, due: [dueProbes], work: () => probeOutages(deps) },
      { name: 'recording model requests again', everyMs: 2_000, work: () => recorder.retry() },
      {
        name: 'model requests of dead processes',
        everyMs: 10_000,
        due: [oldRequests],
        work: async () => recordLostRequests(db, await readAliveInstances(db, 60)),
      },
    ],
  };
};

type HealthDeps = Pick<GatewayDomainDeps, 'db' | 'log' | 'models'>;

async function probe({ models }: HealthDeps, provider: ProviderName): Promise<boolean> {
  const upstream = models.upstreams[provider];
  return upstream !== undefined && (await probeProvider(provider, upstream));
}

/** Reads the models that a run may use. If a budget in dollars applies, models without a known price are left out. */
async function readUsableModels({ db, models }: HealthDeps, holder: RunTokenHolder): Promise<RunModels> {
  const run = await readRunModels(db, holder);
  const priced = run.otherIds.filter((id) => !isUnpriced(models, id));
  if (priced.length === run.otherIds.length || !(await hasCostLimit(db, holder))) return run;
  return { ...run, otherIds: priced };
}

/** A process remembers at most this many names of removed members that it has recorded, so that most requests need no SQL statement. */
const maxNoted = 10_000;

function routingOf(deps: HealthDeps): ModelRouting {
  const { db, log } = deps;
  const noted = new Set<string>();
  const { worked, failed } = openModelHealth({
    begin: (provider, reason) => beginOutage(db, provider, reason),
    end: (outage) => endOutage(db, outage, 'by_request'),
    probe: (provider) => probe(deps, provider),
    hasOneTeam: () => hasOneTeam(db),
    log,
    now: () => performance.now(),
  });
  return {
    read: (holder) => readUsableModels(deps, holder),
    worked,
    failed,
    switched: (change) => switchModel(db, change),
    removed: async ({ runId, executionId, modelId }, names) => {
      const isNew = names.filter((name) => !noted.has(`${runId} ${name}`));
      if (isNew.length === 0) return;
      await noteRemovedMembers(db, { runId, executionId, modelId, names: isNew });
      if (noted.size > maxNoted) noted.clear();
      for (const name of isNew) noted.add(`${runId} ${name}`);
    },
  };
}

/**
 * Probes the providers that are due for a probe. Ends the outage of each provider that works. If several processes try at once, only one
 * probes.
 */
export async function probeOutages(deps: HealthDeps): Promise<void> {
  const { db, log, models } = deps;
  const claimed = await claimOutageProbes(db, Object.keys(models.upstreams) as ProviderName[]);
  await Promise.all(
    claimed.map(async (outage) => {
      if (!(await probe(deps, outage.provider)) || !(await endOutage(db, outage, 'by_probe'))) return;
      log.info({ provider: outage.provider }, 'a model provider works again');
    }),
  );
}
