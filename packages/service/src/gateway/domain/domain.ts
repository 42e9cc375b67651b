import type { Settings } from '@runyard/contract/settings';
import type { BodyBudget } from '../../bodies/body-budget.ts';
import type { CodeHosts } from '../../code-hosts/code-hosts.ts';
import type { Domain } from '../../domain.ts';
import { readRepositories } from '../../environments/repositories.ts';
import { authenticateWorkingRunToken } from '../../executions/run-tokens/sessions.ts';
import { readServerOfExecution } from '../../mcp/of-run.ts';
import type { Models } from '../../models/models.ts';
import { systemNames } from '../../names/resolver.ts';
import type { Vault } from '../../secrets/vault.ts';
import type { Database } from '../../store/database/database.ts';
import { recordUsage } from '../../usage/record-usage.ts';
import { registerGitGateway } from '../git/git.ts';
import { registerMcpGateway } from '../mcp/mcp.ts';
import { type AdmitModelRequest, type GatewayLog, registerGateway } from '../models/gateway.ts';

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

/** The ways of agents to model providers, code hosts and MCP servers. */
export const gatewayDomain = (deps: GatewayDomainDeps): Domain => ({
  name: 'gateway',
  routes: async (app) => {
    const { db, log, models, settings, bodies, admitModelRequest } = deps;
    const authenticateRunToken = (token: string) => authenticateWorkingRunToken(db, token);
    await registerGateway(app, {
      models,
      authenticateRunToken,
      recordUsage: (usage) => recordUsage(db, usage),
      ...(admitModelRequest ? { admit: admitModelRequest } : {}),
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
