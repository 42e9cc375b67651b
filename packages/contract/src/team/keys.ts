import { z } from 'zod';
import { keyLimits } from '../wire/access.ts';
import { keyKinds } from '../wire/choices.ts';
import { NonBlank, Text, Timestamp } from '../wire/primitives.ts';

export const KeyKind = z.enum(keyKinds).meta({
  id: 'KeyKind',
  description:
    'personal: acts as its user. agent: acts as a service account of the team. worker: connects workers of the hosted pool, which serve all teams, and gives no other access.',
});
export type KeyKind = z.infer<typeof KeyKind>;

/** The purpose to which an agent key is limited. */
export const KeyLimit = z.enum(keyLimits).meta({
  id: 'KeyLimit',
  description:
    'definition_plans: the key only checks and plans definitions of factories (`POST /factory/{factoryUid}/definition/plan`, `POST /factory-files/validate`), for programs that check a change before it is merged',
});

/** An API key without its raw text. */
export const ApiKey = z
  .object({
    uid: z.string().describe('UID of the key, used to delete it'),
    name: z.string().describe('Name for people'),
    kind: KeyKind,
    prefix: z.string().meta({ description: 'First characters of the raw key' }),
    last_four: z.string().describe('Last four characters of the raw key'),
    user_uid: z.string().optional().describe('UID of the person that a personal key acts as'),
    agent_uid: z.string().optional().describe('Agent identity that an agent key acts as'),
    limited_to: KeyLimit.optional(),
    is_current: z.literal(true).optional().describe('True: this request was sent with this key'),
    created_by_uid: z
      .string()
      .optional()
      .meta({ description: 'UID of the person who made an agent or worker key; absent: unknown' }),
    created_at: Timestamp.describe('When it was created, RFC 3339 in UTC'),
    expires_at: Timestamp.optional().meta({ description: 'Absent: never' }),
    last_used_at: Timestamp.optional().meta({ description: 'To the minute' }),
    is_session: z
      .literal(true)
      .optional()
      .describe('True: it is a browser session, and its deletion signs out the browser'),
  })
  .meta({ id: 'ApiKey', description: 'An API key without its secret part' });
export type ApiKey = z.infer<typeof ApiKey>;

export const ListKeysResponse = z
  .object({
    keys: z.array(ApiKey).describe('Keys, without their secret part'),
  })
  .meta({ id: 'ListKeysResponse', description: 'API keys' });

/** The time for which a key is valid. */
export const KeyLifetime = z
  .enum(['1d', '30d', '90d', 'never'])
  .meta({ id: 'KeyLifetime', description: 'How long a key works; d: days' });

export const CreateKeyRequest = z
  .object({
    name: NonBlank.max(200).describe('Name for people, at most 200 characters'),
    kind: KeyKind,
    agent_uid: Text.min(1).max(200).optional().meta({
      description: 'UID of the agent identity as which an agent key acts; absent: the key itself is a service account',
    }),
    limited_to: KeyLimit.optional(),
    expires_in: KeyLifetime.default('never'),
  })
  .refine((key) => key.kind === 'agent' || key.limited_to === undefined, {
    error: 'belongs to an agent key',
    path: ['limited_to'],
  })
  .refine((key) => key.kind === 'agent' || key.agent_uid === undefined, {
    error: 'belongs to an agent key',
    path: ['agent_uid'],
  })
  .meta({
    id: 'CreateKeyRequest',
    description: 'An API key to create',
    allOf: ['agent_uid', 'limited_to'].map((member) => ({
      anyOf: [{ properties: { kind: { const: 'agent' } } }, { not: { required: [member] } }],
    })),
  });
export type CreateKeyRequest = z.infer<typeof CreateKeyRequest>;

export const CreateKeyResponse = ApiKey.extend({
  key: z.string().meta({ description: 'The raw key. It is shown only once' }),
}).meta({ id: 'CreateKeyResponse', description: 'A new key, with its secret part' });
export type CreateKeyResponse = z.infer<typeof CreateKeyResponse>;
