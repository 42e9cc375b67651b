/** Every endpoint of the API: the service registers from this table, the client is typed from it, the OpenAPI document is made from it. */
import { artifactRoutes } from './routes/artifacts.ts';
import { browserSessionRoutes } from './routes/browser-sessions.ts';
import { childRunRoutes } from './routes/child-runs.ts';
import { environmentRoutes } from './routes/environments.ts';
import { eventSubscriptionRoutes } from './routes/event-subscriptions.ts';
import { handoffRoutes } from './routes/handoff.ts';
import { harnessRoutes } from './routes/harness.ts';
import { redirectRoutes } from './routes/redirects.ts';
import { runRoutes } from './routes/runs.ts';
import { secretRoutes } from './routes/secrets.ts';
import { serviceRoutes } from './routes/service.ts';

export const routes = {
  ...runRoutes,
  ...redirectRoutes,
  ...artifactRoutes,
  ...environmentRoutes,
  ...secretRoutes,
  ...browserSessionRoutes,
  ...eventSubscriptionRoutes,
  ...serviceRoutes,
  ...handoffRoutes,
  ...harnessRoutes,
  ...childRunRoutes,
} as const;

/** Name of an endpoint: the operation id of the OpenAPI document, and the client's method. */
export type RouteName = keyof typeof routes;
