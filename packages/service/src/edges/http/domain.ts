import type { FastifyInstance } from 'fastify';
import type { Edge } from '../edge.ts';
import { registerHarnessArtifactRoutes } from './agent/harness-artifacts.ts';
import { registerHarnessMemoryRoutes } from './agent/harness-memory.ts';
import { registerHarnessSnapshotRoutes } from './agent/harness-snapshots.ts';
import { registerHarnessWorkspaceRoutes } from './agent/harness-workspace.ts';
import { registerAttachmentRoutes } from './api/attachments.ts';
import { registerBlobRoutes } from './api/blobs.ts';
import { registerBrowserSessionRoutes } from './api/browser-sessions.ts';
import { registerFactoryFileSchemas } from './api/factory-file-schemas.ts';
import { registerLiveRoutes } from './api/live.ts';
import { registerServiceInfoRoutes } from './api/service-info.ts';
import { registerWebhookPayloadRoutes } from './api/webhook-payloads.ts';
import { registerIngress } from './ingress/webhooks.ts';
import { registerPages } from './pages/pages.ts';
import type { ServiceDeps } from './server/deps.ts';

/** The endpoints whose subject is the wire itself: pages, streams of events, bytes, and the ingress. */
export const httpDomain = (deps: ServiceDeps): Edge => ({
  name: 'http',
  endpoints: async (app: FastifyInstance) => {
    registerServiceInfoRoutes(app, deps);
    registerFactoryFileSchemas(app);
    registerAttachmentRoutes(app, deps);
    await registerPages(app, deps);
    registerBrowserSessionRoutes(app, deps);
    registerBlobRoutes(app, deps);
    registerWebhookPayloadRoutes(app, deps);
    registerHarnessArtifactRoutes(app, deps);
    registerHarnessWorkspaceRoutes(app, deps);
    registerHarnessSnapshotRoutes(app, deps);
    registerHarnessMemoryRoutes(app, deps);
    await registerLiveRoutes(app, deps);
    // With a port of its own, the ingress is in another app.
    if (deps.settings.RUNYARD_WEBHOOK_PORT === undefined) registerIngress(app, deps);
  },
});
