/** Examples of the operations on factories and webhooks. */
import { type Example, exampleIds, exampleTimes } from '../wire/example.ts';

const factory = {
  uid: exampleIds.FACTORY_UID,
  name: 'Billing',
  alias: 'billing',
  description: null,
  team_uid: exampleIds.TEAM_UID,
  repositories: [{ owner: 'acme', repo: 'billing' }],
  agent_defaults: { model_id: 'runbook', default_runner_uid: '', mcp_servers: {}, secrets: [], worker_host: '' },
  default_environment: null,
  default_model: 'runbook',
  code_forge: 'GITHUB',
  code_forges: ['GITHUB'],
  credential_strategy: 'EXECUTOR',
  integrations: null,
  scoring: {},
  scorer_defaults: {},
  created_at: exampleTimes.created,
  updated_at: exampleTimes.created,
};

const agents = [{ name: 'foreman', agent_type: 'FOREMAN', prompt: '', config: {} }];

export const exampleWebhook = {
  uid: exampleIds.WEBHOOK_UID,
  name: 'Alerts',
  auth_mode: 'token',
  secret_name: 'WEBHOOK_ALERTS',
  enabled: true,
  url: `https://runyard.example.com/webhooks/w/${exampleIds.WEBHOOK_UID}`,
  created_at: exampleTimes.created,
};
const secret = 'q7ZpV1xT0mWc5yRbN4kLdJ2sHg9KuE6aFo8iXtMvQ3w';

export const exampleDelivery = {
  delivery_id: exampleIds.WEBHOOK_DELIVERY_ID,
  label: 'ACCEPTED',
  size_bytes: 20,
  received_at: exampleTimes.created,
  identity: 'alert-1',
};

export const webhookExamples = {
  listFactories: { query: { search: 'bill' }, answer: { factories: [factory], page_info: { has_next_page: false } } },
  createFactory: {
    body: {
      name: 'Billing',
      alias: 'billing',
      repositories: [{ owner: 'acme', repo: 'billing' }],
      agent_defaults: { model_id: 'runbook' },
    },
    answer: { ...factory, agents },
  },
  getFactory: { answer: { ...factory, agents } },
  deleteFactory: { answer: { success: true } },
  listWebhooks: { answer: { webhooks: [exampleWebhook], page_info: { has_next_page: false } } },
  createWebhook: { body: { name: 'Alerts', secret_name: 'WEBHOOK_ALERTS' }, answer: { ...exampleWebhook, secret } },
  getWebhook: { answer: exampleWebhook },
  updateWebhook: { body: { name: 'Alarms' }, answer: { ...exampleWebhook, name: 'Alarms' } },
  deleteWebhook: { answer: { success: true } },
  rotateWebhookSecret: { body: { grace_seconds: 3600 }, answer: { ...exampleWebhook, secret } },
  enableWebhook: { answer: exampleWebhook },
  disableWebhook: { answer: { ...exampleWebhook, enabled: false } },
  listWebhookDeliveries: { answer: { deliveries: [exampleDelivery], page_info: { has_next_page: false } } },
  getWebhookDelivery: {
    answer: {
      ...exampleDelivery,
      headers: { 'content-type': 'application/json', 'x-service-delivery-id': 'alert-1' },
      payload: { status: 'firing' },
    },
  },
  getWebhookDeliveryPayload: { answer: '{"status": "firing"}' },
  replayWebhookDelivery: {
    answer: {
      delivery_id: '019a1c54-2a3b-7d04-9c18-e5f6a7b80c95',
      label: 'ACCEPTED',
      size_bytes: 20,
      received_at: exampleTimes.ended,
      identity: `replay:${exampleIds.WEBHOOK_DELIVERY_ID}`,
      replay_of: exampleIds.WEBHOOK_DELIVERY_ID,
    },
  },
} as const satisfies Record<string, Example>;
