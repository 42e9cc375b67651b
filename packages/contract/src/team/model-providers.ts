import { z } from 'zod';
import { Text, Timestamp } from '../wire/primitives.ts';
import { UserProfile } from '../wire/profiles.ts';

/** Name of a provider: the part of a model id before the slash. */
export const ModelProviderName = z.enum(['anthropic', 'openai', 'google', 'local']).meta({
  id: 'ModelProviderName',
  description:
    'The part of a model id before the slash. `local`: an OpenAI-compatible endpoint of your own, such as Ollama or vLLM',
});
export type ModelProviderName = z.infer<typeof ModelProviderName>;

/** The place from which the service has the access to a provider. */
export const ModelProviderSource = z.enum(['settings', 'stored', 'none']).meta({
  id: 'ModelProviderSource',
  description:
    '`settings`: the settings of the service process, which have priority. `stored`: an owner stored it by the API or in the dashboard. `none`: there is no access, so runs cannot use its models',
});
export type ModelProviderSource = z.infer<typeof ModelProviderSource>;

/** The access to a provider, without its key. */
export const ModelProviderAccess = z
  .object({
    provider: ModelProviderName,
    source: ModelProviderSource,
    setting: z.string().describe('Setting of the service that gives the access instead, and has priority'),
    endpoint: z
      .string()
      .optional()
      .describe('Host and port to which the gateway sends requests; absent: there is no access'),
    base_url: z.string().optional().describe('Base URL that was stored; absent: that of the settings'),
    last_four: z
      .string()
      .optional()
      .describe('Last 4 characters of the stored key; absent: no key is stored, or it is shorter than 16 characters'),
    set_by: UserProfile.optional().describe('Person who stored it'),
    set_at: Timestamp.optional().describe('When it was stored, RFC 3339 in UTC'),
    problem: z
      .string()
      .optional()
      .describe('Why the stored key or base URL is not used; absent: it is used, or nothing is stored'),
  })
  .meta({ id: 'ModelProviderAccess', description: 'The access to a provider of models, without its key' });
export type ModelProviderAccess = z.infer<typeof ModelProviderAccess>;

export const ListModelProvidersResponse = z
  .object({ providers: z.array(ModelProviderAccess).describe('All providers that the service knows') })
  .meta({ id: 'ListModelProvidersResponse', description: 'The access of the installation to providers of models' });
export type ListModelProvidersResponse = z.infer<typeof ListModelProvidersResponse>;

const ProviderKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,4096}$/, { error: 'must be 1 to 4096 printable ASCII characters without spaces' });

/** Body of the request that stores the access to a provider. */
export const PutModelProviderRequest = z
  .object({
    key: ProviderKey.optional().describe('API key of the provider. Only `local` may have none'),
    base_url: Text.min(1)
      .max(500)
      .optional()
      .describe(
        'Base URL of the provider. `local` needs one, with its `/v1`. Absent: that of the settings. Its address must be public, or in RUNYARD_ALLOW_PRIVATE_NETWORKS',
      ),
  })
  .meta({
    id: 'PutModelProviderRequest',
    description: 'Replaces what is stored about the provider. No answer contains the key',
  });
export type PutModelProviderRequest = z.infer<typeof PutModelProviderRequest>;

export const TestModelProviderResponse = z
  .object({
    works: z.boolean().describe('True: the provider accepts the key, or needs none'),
    message: z.string().describe('The outcome as a sentence. It contains no text of the provider'),
  })
  .meta({ id: 'TestModelProviderResponse', description: 'The outcome of a test request to a provider' });
export type TestModelProviderResponse = z.infer<typeof TestModelProviderResponse>;
