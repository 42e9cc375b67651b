/** Every endpoint of the API: the service registers from this table, the client is typed from it, the OpenAPI document is made from it. */
import { artifactRoutes } from './routes/artifacts.ts';
import { browserSessionRoutes } from './routes/browser-sessions.ts';
import { childRunRoutes } from './routes/child-runs.ts';
import { codeHostRoutes } from './routes/code-hosts.ts';
import { environmentGuestRoutes } from './routes/environment-guests.ts';
import { environmentRoutes } from './routes/environments.ts';
import { eventSubscriptionRoutes } from './routes/event-subscriptions.ts';
import { handoffRoutes } from './routes/handoff.ts';
import { harnessRoutes } from './routes/harness.ts';
import { mcpServerRoutes } from './routes/mcp-servers.ts';
import { redirectRoutes } from './routes/redirects.ts';
import { runRoutes } from './routes/runs.ts';
import { scheduleRoutes } from './routes/schedules.ts';
import { serviceRoutes } from './routes/service.ts';
import { webhookRoutes } from './routes/webhooks.ts';

export const routes = {
  ...runRoutes,
  ...redirectRoutes,
  ...artifactRoutes,
  ...environmentRoutes,
  ...scheduleRoutes,
  ...environmentGuestRoutes,
  ...codeHostRoutes,
  ...browserSessionRoutes,
  ...eventSubscriptionRoutes,
  ...mcpServerRoutes,
  ...webhookRoutes,
  ...serviceRoutes,
  ...handoffRoutes,
  ...harnessRoutes,
  ...childRunRoutes,
} as const;

/** Name of an endpoint: the operation id of the OpenAPI document, and the client's method. */
export type RouteName = keyof typeof routes;
