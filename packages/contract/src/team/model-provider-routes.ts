import { z } from 'zod';
import type { Allow } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  ListModelProvidersResponse,
  ModelProviderAccess,
  ModelProviderName,
  PutModelProviderRequest,
  TestModelProviderResponse,
} from './model-providers.ts';

const reads = { user: 'owner', operatorTeam: true } as const satisfies Allow;
/** A stolen session could send all prompts to another server, so a change needs a recent sign-in. */
const changes = { ...reads, session: 'recent' } as const satisfies Allow;
const notOwner = "The caller is no owner of the team of the operator's key";
const params = z.object({ provider: ModelProviderName.describe('Name of the provider') });

/** The access to providers is the same for all teams of the installation, so only owners of the operator's team see and change it. */
export const modelProviderRoutes = {
  listModelProviders: {
    method: 'GET',
    path: '/model-providers',
    tag: 'models',
    summary: 'List the access to providers of models',
    description: 'For the whole installation. No answer contains a key.',
    allow: reads,
    answer: { status: 200, description: 'The providers', schema: ListModelProvidersResponse },
    errors: { 403: notOwner },
  },
  putModelProvider: {
    method: 'PUT',
    path: '/model-providers/{provider}',
    tag: 'models',
    summary: 'Store the key of a provider of models',
    description:
      'Replaces what was stored for it. All service processes use it from then on, without a restart; runs of all teams may use its models. The key is stored encrypted, only the gateway uses it, and no answer contains it.',
    allow: changes,
    params,
    body: PutModelProviderRequest,
    answer: { status: 200, description: 'Stored', schema: ModelProviderAccess },
    errors: {
      400: 'A key or a base URL is missing, or the base URL is not allowed',
      403: notOwner,
      409: 'The settings of the service give the access, and they have priority',
    },
  },
  deleteModelProvider: {
    method: 'DELETE',
    path: '/model-providers/{provider}',
    tag: 'models',
    summary: 'Delete the stored key of a provider of models',
    description: 'Requests of runs that begin later are refused, unless the settings of the service have a key.',
    allow: changes,
    params,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { 403: notOwner, 404: 'Nothing is stored for this provider' },
  },
  testModelProvider: {
    method: 'POST',
    path: '/model-providers/{provider}/test',
    tag: 'models',
    summary: 'Test the access to a provider of models',
    description:
      'The gateway asks the provider for its list of models, which costs nothing, with the key that runs use. Waits at most 10 seconds.',
    allow: reads,
    params,
    answer: { status: 200, description: 'The outcome', schema: TestModelProviderResponse },
    errors: { 403: notOwner, 404: 'There is no access to this provider' },
  },
} as const satisfies Record<string, Route>;
