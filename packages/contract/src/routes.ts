/**
 * Every endpoint of the API. The service registers its routes from this table, and the client's types and the OpenAPI document are made
 * from it.
 */
import { acceptanceRoutes } from './routes/acceptances.ts';
import { agentIdentityRoutes } from './routes/agent-identities.ts';
import { agentRoutes } from './routes/agents.ts';
import { artifactRoutes } from './routes/artifacts.ts';
import { auditRoutes } from './routes/audit.ts';
import { automationRoutes } from './routes/automations.ts';
import { browserSessionRoutes } from './routes/browser-sessions.ts';
import { budgetRoutes } from './routes/budgets.ts';
import { childRunRoutes } from './routes/child-runs.ts';
import { codeHostRoutes } from './routes/code-hosts.ts';
import { conversationRoutes } from './routes/conversations.ts';
import { environmentGuestRoutes } from './routes/environment-guests.ts';
import { environmentRoutes } from './routes/environments.ts';
import { eventSubscriptionRoutes } from './routes/event-subscriptions.ts';
import { factoryRoutes } from './routes/factories.ts';
import { factoryTaskRoutes } from './routes/factory-tasks.ts';
import { handoffRoutes } from './routes/handoff.ts';
import { harnessRoutes } from './routes/harness.ts';
import { mcpServerRoutes } from './routes/mcp-servers.ts';
import { redirectRoutes } from './routes/redirects.ts';
import { runRoutes } from './routes/runs.ts';
import { scheduleRoutes } from './routes/schedules.ts';
import { secretRoutes } from './routes/secrets.ts';
import { serviceRoutes } from './routes/service.ts';
import { teamRoutes } from './routes/teams.ts';
import { webhookRoutes } from './routes/webhooks.ts';
import { workerPoolRoutes } from './routes/worker-pools.ts';

export const routes = {
  ...runRoutes,
  ...conversationRoutes,
  ...redirectRoutes,
  ...artifactRoutes,
  ...agentRoutes,
  ...environmentRoutes,
  ...scheduleRoutes,
  ...environmentGuestRoutes,
  ...codeHostRoutes,
  ...secretRoutes,
  ...acceptanceRoutes,
  ...browserSessionRoutes,
  ...teamRoutes,
  ...agentIdentityRoutes,
  ...auditRoutes,
  ...eventSubscriptionRoutes,
  ...mcpServerRoutes,
  ...budgetRoutes,
  ...webhookRoutes,
  ...factoryRoutes,
  ...factoryTaskRoutes,
  ...automationRoutes,
  ...serviceRoutes,
  ...workerPoolRoutes,
  ...handoffRoutes,
  ...harnessRoutes,
  ...childRunRoutes,
} as const;

/** Name of an endpoint: the operation id of the OpenAPI document, and the client's method. */
export type RouteName = keyof typeof routes;
