import { z } from 'zod';
import { teamReads } from '../access.ts';
import { ListModelsResponse } from '../models.ts';
import type { Route } from '../route.ts';
import { ListConnectedSelfHostedWorkersResponse } from '../workers.ts';

export const serviceRoutes = {
  listModels: {
    method: 'GET',
    path: '/agent/models',
    tag: 'models',
    summary: 'List models',
    allow: teamReads,
    answer: { status: 200, description: 'Models and the default one', schema: ListModelsResponse },
  },
  listConnectedWorkers: {
    method: 'GET',
    path: '/agent/connected-self-hosted-workers',
    tag: 'workers',
    summary: 'List connected self-hosted workers',
    description: 'Presence comes from heartbeats and may be a minute old.',
    allow: teamReads,
    answer: { status: 200, description: 'By name', schema: ListConnectedSelfHostedWorkersResponse },
  },
  getOpenApi: {
    method: 'GET',
    path: '/openapi.json',
    tag: 'service',
    summary: 'This document',
    allow: { anyone: 'always' },
    answer: { status: 200, description: 'OpenAPI 3.1', schema: z.record(z.string(), z.unknown()) },
    tagged: true,
  },
} as const satisfies Record<string, Route>;
