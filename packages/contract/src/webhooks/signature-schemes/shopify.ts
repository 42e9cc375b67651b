import type { SignatureScheme } from './scheme.ts';

/**
 * https://shopify.dev/docs/apps/build/webhooks/subscribe/https#step-2-validate-the-origin-of-your-webhook. The id is that of the
 * delivery and not that of the event, because several deliveries can share the id of an event.
 */
export const shopify: SignatureScheme = {
  headers: [{ signature: 'x-shopify-hmac-sha256', id: 'x-shopify-webhook-id' }],
  algorithm: 'sha256',
  encoding: 'base64',
  prefix: '',
  signed: ['{body}'],
  key: 'text',
  eventHeader: 'x-shopify-topic',
  otherHeaders: ['x-shopify-event-id', 'x-shopify-shop-domain', 'x-shopify-triggered-at', 'x-shopify-api-version'],
};
