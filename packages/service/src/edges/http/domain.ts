import type { FastifyInstance } from 'fastify';
import type { Edge } from '../edge.ts';
import { registerBrowserSessionRoutes } from './api/browser-sessions.ts';
import { registerFactoryFileSchemas, registerOpenApiDocument } from './api/documents.ts';
import { registerBlobRoutes, registerWebhookPayloadRoutes } from './api/downloads.ts';
import { registerLiveRoutes } from './api/live.ts';
import { registerFileRoutes } from './files.ts';
import { registerIngress } from './ingress/webhooks.ts';
import { registerPages } from './pages/pages.ts';
import type { ServiceDeps } from './server/deps.ts';

/** The endpoints that work directly on the HTTP request and reply: pages, streams of events, bytes, and the ingress. */
export const httpDomain = (deps: ServiceDeps): Edge => ({
  name: 'http',
  endpoints: async (app: FastifyInstance) => {
    registerOpenApiDocument(app, deps);
    registerFactoryFileSchemas(app);
    await registerPages(app, deps);
    registerBrowserSessionRoutes(app, deps);
    registerBlobRoutes(app, deps);
    registerWebhookPayloadRoutes(app, deps);
    registerFileRoutes(app, deps);
    await registerLiveRoutes(app, deps);
    // If the ingress has a separate port, another app serves the ingress.
    if (deps.settings.RUNYARD_WEBHOOK_PORT === undefined) registerIngress(app, deps);
  },
});
