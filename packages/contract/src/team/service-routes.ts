import { z } from 'zod';
import { administrators, teamReads } from '../wire/access.ts';
import type { Route } from '../wire/route.ts';
import { EgressRanges, ListConnectedSelfHostedWorkersResponse } from '../workers/workers.ts';
import { Installation } from './installation.ts';
import { ListModelsResponse, TeamModelSettings, UpdateTeamModelSettingsRequest } from './models.ts';

export const serviceRoutes = {
  listModels: {
    method: 'GET',
    path: '/agent/models',
    tag: 'models',
    summary: 'List models',
    allow: teamReads,
    answer: { status: 200, description: 'Models and the default one', schema: ListModelsResponse },
  },
  getModelSettings: {
    method: 'GET',
    path: '/agent/model-settings',
    tag: 'models',
    summary: "Read the team's choices about models",
    allow: teamReads,
    answer: { status: 200, description: 'Default, fallbacks and disabled models', schema: TeamModelSettings },
  },
  updateModelSettings: {
    method: 'PATCH',
    path: '/agent/model-settings',
    tag: 'models',
    summary: 'Choose default, fallbacks and disabled models of the team',
    description:
      "It takes effect at once: a disabled model is refused when a run is created, when a run begins, and at the run's next request to the model. Disabling and enabling change only the models that they name.",
    allow: administrators,
    body: UpdateTeamModelSettingsRequest,
    answer: { status: 200, description: 'The choices as they are now', schema: TeamModelSettings },
    errors: { 400: 'An unknown model, or a default or fallback that is disabled' },
  },
  listConnectedWorkers: {
    method: 'GET',
    path: '/agent/connected-self-hosted-workers',
    tag: 'workers',
    summary: 'List connected workers',
    description:
      "Presence comes from heartbeats and may be a minute old. With the operator's key, and in a browser session of the key's person, the workers of the service are also listed.",
    allow: teamReads,
    answer: { status: 200, description: 'By name', schema: ListConnectedSelfHostedWorkersResponse },
  },
  getInstallation: {
    method: 'GET',
    path: '/installation',
    tag: 'service',
    summary: 'Read how the programs of the installation are',
    description:
      'Service processes, workers, database, blobs and backups of the whole installation. A service or worker that is gone is listed with the reason.',
    allow: { user: 'owner', operatorTeam: true },
    answer: { status: 200, description: 'As it is now', schema: Installation },
    errors: { 403: "The caller is no owner of the team of the operator's key" },
  },
  getEgressRanges: {
    method: 'GET',
    path: '/networking/egress-ranges',
    tag: 'workers',
    summary: 'Read the addresses from which runs reach the internet',
    description:
      'For the firewalls of other systems. RUNYARD_EGRESS_RANGES names the networks of the installation; self-hosted workers of a team have other networks.',
    allow: teamReads,
    answer: { status: 200, description: 'The networks', schema: EgressRanges },
  },
  getOpenApi: {
    method: 'GET',
    path: '/openapi.json',
    tag: 'service',
    summary: 'Read this document',
    allow: { anyone: 'always' },
    answer: { status: 200, description: 'OpenAPI 3.1', schema: z.record(z.string(), z.unknown()) },
    tagged: true,
  },
} as const satisfies Record<string, Route>;
