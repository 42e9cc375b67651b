/**
 * Every endpoint of the API. The service registers its routes from this table. The client's types and the OpenAPI document are generated
 * from it.
 */

import { freshCheckRoutes } from './agent/fresh-checks.ts';
import { harnessRoutes } from './agent/routes.ts';
import { automationRoutes } from './automations/routes.ts';
import { teamTriggerRoutes } from './automations/team-routes.ts';
import { environmentGuestRoutes } from './environments/guest-routes.ts';
import { environmentRoutes } from './environments/routes.ts';
import { factoryRoutes } from './factories/routes.ts';
import { factoryTaskRoutes } from './factories/task-routes.ts';
import { inboxRoutes } from './inbox/routes.ts';
import { acceptanceRoutes } from './runs/acceptance-routes.ts';
import { artifactRoutes } from './runs/artifact-routes.ts';
import { childRunRoutes } from './runs/child-run-routes.ts';
import { conversationRoutes } from './runs/conversation-routes.ts';
import { handoffRoutes } from './runs/handoff-routes.ts';
import { redirectRoutes } from './runs/redirect-routes.ts';
import { runRoutes } from './runs/routes.ts';
import { scheduleRoutes } from './schedules/routes.ts';
import { secretRoutes } from './secrets/routes.ts';
import { agentRoutes } from './team/agent-routes.ts';
import { auditRoutes } from './team/audit-routes.ts';
import { budgetRoutes } from './team/budget-routes.ts';
import { codeHostRoutes } from './team/code-host-routes.ts';
import { eventSubscriptionRoutes } from './team/event-subscription-routes.ts';
import { githubRoutes } from './team/github-routes.ts';
import { agentIdentityRoutes } from './team/identity-routes.ts';
import { keyRoutes } from './team/key-routes.ts';
import { mcpServerRoutes } from './team/mcp-server-routes.ts';
import { modelProviderRoutes } from './team/model-provider-routes.ts';
import { passkeyRoutes } from './team/passkey-routes.ts';
import { teamRoutes } from './team/routes.ts';
import { savedViewRoutes } from './team/saved-view-routes.ts';
import { searchRoutes } from './team/search-routes.ts';
import { serviceRoutes } from './team/service-routes.ts';
import { browserSessionRoutes } from './team/session-routes.ts';
import { webhookRoutes } from './webhooks/routes.ts';
import { workerPoolRoutes } from './workers/routes.ts';

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
  ...githubRoutes,
  ...keyRoutes,
  ...secretRoutes,
  ...acceptanceRoutes,
  ...inboxRoutes,
  ...browserSessionRoutes,
  ...passkeyRoutes,
  ...teamRoutes,
  ...savedViewRoutes,
  ...agentIdentityRoutes,
  ...auditRoutes,
  ...eventSubscriptionRoutes,
  ...mcpServerRoutes,
  ...budgetRoutes,
  ...webhookRoutes,
  ...factoryRoutes,
  ...factoryTaskRoutes,
  ...automationRoutes,
  ...teamTriggerRoutes,
  ...serviceRoutes,
  ...modelProviderRoutes,
  ...searchRoutes,
  ...workerPoolRoutes,
  ...handoffRoutes,
  ...harnessRoutes,
  ...childRunRoutes,
  ...freshCheckRoutes,
} as const;

/** Name of an endpoint: the operation id of the OpenAPI document, and the client's method. */
export type RouteName = keyof typeof routes;
