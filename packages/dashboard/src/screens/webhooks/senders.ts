/** The kinds of senders that a person can choose for a new webhook, each with the steps to set it up. */
import type { SignatureSchemeName, Webhook } from '@runyard/contract/webhooks/webhooks';
import { unsignedSchemeNames } from '@runyard/contract/wire/choices';

interface Sender {
  /** Text that says where in the sender's settings a person enters the address and the secret, and which events to choose. */
  readonly setup: string;
  /** True: the sender creates the secret, and a person copies it from the sender's page. */
  readonly makesSecret?: true;
}

/** A signature scheme, or a mode for senders without a scheme. */
export type SenderName = SignatureSchemeName | 'token' | 'url_token';

export const senders: Readonly<Record<SenderName, Sender>> = {
  standard_webhooks: {
    setup:
      'In the webhook settings of the sender, add an endpoint with the address, and choose only the events that you need. If the sender shows a signing secret (whsec_…), store that one here. Otherwise enter the secret of this webhook there.',
  },
  stripe: {
    setup:
      'In the Stripe dashboard, under Developers, add an event destination with the address, and choose events such as charge.dispute.created. Stripe then shows its signing secret (whsec_…): store it here.',
    makesSecret: true,
  },
  github: {
    setup:
      'In the settings of the repository or organization, under Webhooks, add a webhook. Payload URL: the address. Content type: application/json. Secret: the secret. Choose the events that your automations use, such as pushes or issues.',
  },
  sentry: {
    setup:
      'In the settings of the Sentry organization, create an internal integration. Webhook URL: the address. Subscribe it to issue. The client secret of the integration signs the events: store it here.',
    makesSecret: true,
  },
  pagerduty: {
    setup:
      'In PagerDuty, under Integrations, add a generic webhook (v3) with the address, and choose events such as incident.triggered. PagerDuty shows the secret only once: store it here at once.',
    makesSecret: true,
  },
  vercel: {
    setup:
      'In the settings of the Vercel team, under Webhooks, create a webhook with the address, and choose its projects and events such as deployment.error. Vercel shows the secret only once: store it here at once.',
    makesSecret: true,
  },
  slack: {
    setup:
      'Copy the signing secret of the Slack app (Basic Information) and store it here first. Then, under Event Subscriptions, enter the address as Request URL, which Slack checks at once, and subscribe to bot events such as app_mention.',
    makesSecret: true,
  },
  gitlab: {
    setup:
      'In the project or group: Settings, Webhooks, Add new webhook. URL: the address. Secret token: the secret. Choose the triggers that your automations use, such as push events or merge request events.',
  },
  bitbucket: {
    setup:
      'In the settings of the repository, under Webhooks, add a webhook. URL: the address. Secret: the secret. Choose the triggers that your automations use, such as an approved pull request.',
  },
  jira: {
    setup:
      'As an administrator of Jira, open the settings of the system and create a webhook there. URL: the address. Secret: the secret. Choose events such as created issues; a JQL filter limits them to your projects.',
  },
  linear: {
    setup:
      'In the settings of the workspace, under API, add a webhook with the address, and choose data changes such as issues. Linear shows the signing secret of the webhook: store it here.',
    makesSecret: true,
  },
  shopify: {
    setup:
      'In the settings of the shop, under Notifications, create a webhook with the address, the format JSON and an event such as the creation of an order. The same page shows the secret of the shop: store it here. The webhooks of an app are signed with the client secret of the app.',
    makesSecret: true,
  },
  intercom: {
    setup:
      'In the settings of your Intercom app, under Webhooks, enter the address as endpoint, and choose topics such as conversation.user.created. The client secret of the app signs them: store it here.',
    makesSecret: true,
  },
  zendesk: {
    setup:
      'In the Admin Center, create a webhook. Endpoint URL: the address. Method: POST. Format: JSON. Choose Zendesk events, or call it from a trigger. The page of the webhook shows its signing secret: store it here.',
    makesSecret: true,
  },
  grafana: {
    setup:
      'Under Alerting, add a contact point of the type Webhook. URL: the address. Secret in its HMAC settings: the secret; leave the header for the timestamp empty. A notification policy chooses the alerts that it gets.',
  },
  zoom: {
    setup:
      'Copy the secret token of the Zoom app and store it here first. Then, under Access, add an event subscription with the address, which Zoom checks at once, and choose events such as an ended meeting.',
    makesSecret: true,
  },
  hmac: {
    setup:
      'For a sender that is not in this list. Enter the address and the secret in its settings, and choose only the events that you need. Its documentation says how it signs: describe that below.',
  },
  event_grid: {
    setup:
      'In the Azure portal, add an event subscription to the topic. Endpoint type: Web Hook. Endpoint: the address, which contains the secret. Event schema: Event Grid Schema. Choose the event types, such as Blob Created. The check of the address is answered for you.',
  },
  microsoft_graph: {
    setup:
      'Create a subscription with POST /subscriptions. notificationUrl: the address, which contains the secret. resource and changeType choose the events, such as created messages. The check of the address is answered for you. Renew the subscription before it expires.',
  },
  sns: {
    setup:
      'On the topic, create a subscription. Protocol: HTTPS. Endpoint: the address, which contains the secret. A filter policy chooses the messages. The first delivery here asks for a confirmation: compare its TopicArn with your topic, then open its SubscribeURL.',
  },
  token: {
    setup:
      'Send each event as a POST with JSON to the address, with the header Authorization: Bearer and the secret. A sender that knows only user name and password sends the secret as the password, with any user name.',
  },
  url_token: {
    setup:
      'For a sender that can store only an address. It sends each event as a POST with JSON. The address contains the secret: treat the whole address as a secret.',
  },
};

export const isSenderName = (name: string): name is SenderName => Object.hasOwn(senders, name);

/** Returns the sender that a person chose when the webhook was created. */
export const senderOf = ({ signature_scheme: scheme, auth_mode: mode }: Webhook): SenderName =>
  scheme ?? (mode === 'token' ? 'token' : 'url_token');

/** Returns the authentication mode of a webhook for this sender, with the scheme if the sender has one. */
export function proofOf(name: SenderName) {
  if (name === 'token' || name === 'url_token') return { auth_mode: name };
  const isUnsigned = unsignedSchemeNames.some((each) => each === name);
  return { auth_mode: isUnsigned ? ('url_token' as const) : ('signature' as const), signature_scheme: name };
}

/**
 * Returns a new secret of 256 random bits for a sender that accepts any secret. Returns undefined if the sender or the service makes the
 * secret.
 */
export function newSecretFor(name: SenderName): string | undefined {
  const { auth_mode: mode } = proofOf(name);
  if (mode !== 'signature' || name === 'standard_webhooks' || senders[name].makesSecret) return undefined;
  return Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
