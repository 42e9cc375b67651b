import { z } from 'zod';
import { signatureSchemeNames, webhookAuthModes } from '../wire/choices.ts';
import { pageMembers } from '../wire/pages.ts';
import { NonBlank, Text, Timestamp, Uuid } from '../wire/primitives.ts';
import { PageInfo } from '../wire/profiles.ts';
import { failedChecks } from './checks.ts';
import { HmacSignature, ruleMembers, shownHeader } from './webhook-rules.ts';

export const WebhookAuthMode = z.enum(webhookAuthModes).meta({
  id: 'WebhookAuthMode',
  description:
    'token: the sender sends the secret as Authorization: Bearer, or as the password of Authorization: Basic. url_token: the secret is the last segment of the URL. signature: the sender signs each request as signature_scheme defines',
});
export type WebhookAuthMode = z.infer<typeof WebhookAuthMode>;

export const SignatureSchemeName = z.enum(signatureSchemeNames).meta({
  id: 'SignatureSchemeName',
  description:
    'The sender; it decides how requests are signed and which header has the name of the event. hmac: as the member signature defines. event_grid, microsoft_graph and sns do not sign with a secret, so they need auth_mode url_token or token',
});
export type SignatureSchemeName = z.infer<typeof SignatureSchemeName>;

const maxGraceSeconds = 24 * 60 * 60;

const name = NonBlank.max(100).describe('Name for people, at most 100 characters');
const secret = Text.min(1)
  .max(1_000)
  .describe(
    'Secret of the provider; for token and url_token at least 16 characters. It is sealed. Only the answers of create and rotate contain it',
  );
const secretName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, {
    error: 'must be 1 to 100 characters of [A-Za-z0-9_], and not begin with a digit',
  })
  .describe(
    "The secret of the team with this name is the secret of the webhook: a change of it takes effect at once, and its deletion disables the webhook. If the team has no such secret, the webhook has its own secret, and this is only the secret's name",
  );

const deliveryIdHeader = shownHeader.describe("Header with the sender's own id of a delivery");
const { deliveryIdPath, eventHeader, duplicateWindowSeconds } = ruleMembers;

/** Members of a request that define how deliveries are read. */
const requestedRules = {
  delivery_id_path: deliveryIdPath.optional(),
  event_header: eventHeader.optional(),
  duplicate_window_seconds: duplicateWindowSeconds.optional(),
  signature: HmacSignature.optional(),
};

/** A URL that receives deliveries of one sender. */
export const Webhook = z
  .object({
    uid: z.string().describe('UID of the webhook, 22 characters'),
    name: z.string().describe('Name for people'),
    auth_mode: WebhookAuthMode,
    signature_scheme: SignatureSchemeName.optional(),
    secret_name: z.string().describe('Name of its secret'),
    secret_of_team: z
      .boolean()
      .optional()
      .describe("True: the webhook uses the team's secret with the name secret_name. Absent: it has its own"),
    delivery_id_header: z.string().optional().describe("Header with the sender's own id of a delivery"),
    delivery_id_path: z.string().optional().describe("Member of the body with the sender's own id of a delivery"),
    event_header: z.string().optional().describe('Header that names the event; absent: the header of the scheme'),
    duplicate_window_seconds: z
      .int()
      .optional()
      .describe(
        'How long equal signed bytes count as a duplicate, if the signature does not cover the id; absent: 300',
      ),
    signature: HmacSignature.optional(),
    enabled: z.boolean().describe('False: senders get 404'),
    disabled_reason: z.string().optional().describe('Why the service disabled it; absent: it did not'),
    url: z
      .string()
      .describe(
        'URL to which the sender sends its POST requests. For a url_token webhook, only the answers of create and rotate show the token in it',
      ),
    created_at: Timestamp.describe('When it was created, RFC 3339 in UTC'),
  })
  .meta({ id: 'Webhook', description: 'A URL that receives deliveries of one sender' });
export type Webhook = z.infer<typeof Webhook>;

/** A webhook with its secret. No other answer contains the secret. */
export const WebhookWithSecret = Webhook.extend({
  secret: z.string().optional().meta({
    description:
      'Shown only once. Absent: the webhook uses a secret of the team, or the secret of the provider was not stored yet',
  }),
}).meta({ id: 'WebhookWithSecret', description: 'A webhook with its secret' });
export type WebhookWithSecret = z.infer<typeof WebhookWithSecret>;

export const CreateWebhookRequest = z
  .object({
    name,
    auth_mode: WebhookAuthMode.default('token'),
    signature_scheme: SignatureSchemeName.optional(),
    secret: secret.optional(),
    secret_name: secretName.optional(),
    delivery_id_header: deliveryIdHeader.optional(),
    ...requestedRules,
    enabled: z.boolean().default(true).describe('False: it starts disabled'),
  })
  .meta({ id: 'CreateWebhookRequest', description: 'A webhook to create' });
export type CreateWebhookRequest = z.infer<typeof CreateWebhookRequest>;

export const UpdateWebhookRequest = z
  .object({
    name: name.optional(),
    secret_name: secretName.optional(),
    delivery_id_header: deliveryIdHeader
      .nullable()
      .optional()
      .describe("Header with the sender's own id of a delivery; null: none"),
    delivery_id_path: deliveryIdPath
      .nullable()
      .optional()
      .describe("Member of the body with the sender's own id of a delivery; null: the member that the scheme names"),
    event_header: eventHeader
      .nullable()
      .optional()
      .describe('Header that names the event; null: the header of the scheme'),
    duplicate_window_seconds: duplicateWindowSeconds
      .nullable()
      .optional()
      .describe('How long equal signed bytes count as a duplicate; null: 300'),
    signature: HmacSignature.optional(),
    enabled: z.boolean().optional().describe('False: senders get 404 at once'),
  })
  .meta({
    id: 'UpdateWebhookRequest',
    description: 'Absent members stay unchanged; null sets the default, and no header',
  });
export type UpdateWebhookRequest = z.infer<typeof UpdateWebhookRequest>;

export const RotateWebhookSecretRequest = z
  .object({
    secret: secret.optional(),
    grace_seconds: z
      .int()
      .min(0)
      .max(maxGraceSeconds)
      .default(0)
      .describe('How long the old secret is also accepted, at most a day; 0: it stops working at once'),
  })
  .default({ grace_seconds: 0 })
  .meta({ id: 'RotateWebhookSecretRequest', description: 'The new secret; without one it is generated' });
export type RotateWebhookSecretRequest = z.infer<typeof RotateWebhookSecretRequest>;

export const ListWebhooksResponse = z
  .object({
    webhooks: z.array(Webhook).describe('Webhooks of the factory, oldest first'),
    page_info: PageInfo,
  })
  .meta({ id: 'ListWebhooksResponse', description: 'Webhooks of a factory' });
export type ListWebhooksResponse = z.infer<typeof ListWebhooksResponse>;

export const WebhookDeliveryLabel = z
  .enum(['ACCEPTED', 'DUPLICATE', 'REJECTED_AUTH', 'REJECTED_INVALID_JSON', 'REJECTED_TOO_LARGE'])
  .meta({
    id: 'WebhookDeliveryLabel',
    description:
      'ACCEPTED: evaluated. DUPLICATE: its identity was accepted before, so it started nothing. All others were refused',
  });
export type WebhookDeliveryLabel = z.infer<typeof WebhookDeliveryLabel>;

/** The outcome of a delivery for one automation. */
export const AutomationOutcome = z
  .object({
    automation_id: z.string().describe('Automation that selects the webhook'),
    matched: z.boolean().describe('True: one of its triggers matched'),
    reason: z.string().optional().describe('Why it started no run'),
    checks: failedChecks.describe(
      `${failedChecks.description}. Pages of deliveries omit it; read the delivery to get it`,
    ),
    run_id: z.string().optional().describe('Run that it started'),
  })
  .meta({ id: 'AutomationOutcome', description: 'The outcome of an automation for a delivery' });
export type AutomationOutcome = z.infer<typeof AutomationOutcome>;

export const WebhookDelivery = z
  .object({
    delivery_id: Uuid.describe('Id of the delivery, as its sender got it'),
    label: WebhookDeliveryLabel,
    size_bytes: z
      .int()
      .describe(
        'Bytes of the body: after decompression if it was accepted, or as its sender announced them if it was too large',
      ),
    received_at: Timestamp.describe('When it was received, RFC 3339 in UTC'),
    identity: z.string().optional().describe("The sender's own id, or sha256: and the hash of the body"),
    event: z.string().optional().describe('Name of the event, from the header that the webhook or its scheme names'),
    reason: z
      .string()
      .optional()
      .describe(
        'Why it was refused or counts as a duplicate, and what a person can do, unless the label already says so',
      ),
    replay_of: z.string().optional().describe('Delivery that it repeats'),
    runs: z.array(z.string()).optional().describe('Runs that it started'),
    automations: z
      .array(AutomationOutcome)
      .optional()
      .describe('The outcome of each automation that selects the webhook'),
  })
  .meta({ id: 'WebhookDelivery', description: 'An entry of the log of a webhook' });
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;

export const WebhookDeliveryWithPayload = WebhookDelivery.extend({
  headers: z
    .record(z.string(), z.string())
    .optional()
    .describe(
      'Headers that identify the event, with names in lower case: content type, ids and names of events, never a credential or a signature',
    ),
  payload: z
    .unknown()
    .optional()
    .describe('JSON that was received. Absent: the delivery was not accepted, or the payload is no longer stored'),
}).meta({ id: 'WebhookDeliveryWithPayload', description: 'An entry of the log of a webhook, with its payload' });
export type WebhookDeliveryWithPayload = z.infer<typeof WebhookDeliveryWithPayload>;

export const ListWebhookDeliveriesQuery = z.object({
  ...pageMembers('Deliveries'),
  label: WebhookDeliveryLabel.optional(),
});
export type ListWebhookDeliveriesQuery = z.infer<typeof ListWebhookDeliveriesQuery>;

export const ListWebhookDeliveriesResponse = z
  .object({
    deliveries: z.array(WebhookDelivery).describe('Deliveries, newest first'),
    page_info: PageInfo,
  })
  .meta({ id: 'ListWebhookDeliveriesResponse', description: 'A page of the log of a webhook' });
export type ListWebhookDeliveriesResponse = z.infer<typeof ListWebhookDeliveriesResponse>;
