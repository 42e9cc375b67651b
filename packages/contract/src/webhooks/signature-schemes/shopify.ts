import type { SignatureScheme } from './scheme.ts';

/**
 * https://shopify.dev/docs/apps/build/webhooks/subscribe/https#step-2-validate-the-origin-of-your-webhook. Several deliveries can share the id of an
 * event, so the id of the delivery is used.
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
