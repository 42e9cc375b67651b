import { z } from 'zod';
import { deliveryIdHeaderFault, headerNamePattern, SignatureSchemeName, WebhookAuthMode } from '../../webhooks.ts';
import { SecretName } from './execution.ts';
import { strictObject } from './strict-object.ts';

const authModes = WebhookAuthMode.options;
const signatureSchemes = SignatureSchemeName.options;

/** `webhooks/<name>.yaml`. */
export const WebhookFile = strictObject({
  authMode: z
    .enum(authModes)
    .optional()
    .describe(
      'How senders prove themselves, default token: `token` in the header Authorization, `url_token` in the path, or `signature` of the provider',
    ),
  signatureScheme: z
    .enum(signatureSchemes)
    .optional()
    .describe('Scheme of the signature; needed for `authMode: signature`, and only there'),
  secretName: SecretName.describe(
    'Secret of the team with the token or the signing secret. For `url_token` it may only have letters, digits, `-`, `.`, `_` and `~`',
  ),
  deliveryIdHeader: z
    .string()
    .superRefine((name, context) => {
      const message = deliveryIdHeaderFault(name);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .meta({ pattern: headerNamePattern.source })
    .optional()
    .describe("Header with the sender's own id of a delivery, by which repeats are recognised"),
  enabled: z.boolean().optional().describe('False: senders get 404. Default true'),
})
  .superRefine(({ authMode, signatureScheme }, context) => {
    if (authMode === 'signature' && signatureScheme === undefined)
      context.addIssue({
        code: 'custom',
        message: `needs signatureScheme, because authMode is signature: ${signatureSchemes.join(', ')}`,
      });
    if (authMode !== 'signature' && signatureScheme !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['signatureScheme'],
        message: 'is only for authMode: signature; set that, or leave this out',
      });
  })
  .meta({
    if: { properties: { authMode: { const: 'signature' } }, required: ['authMode'] },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
    then: { required: ['signatureScheme'] },
    else: { not: { required: ['signatureScheme'] } },
  });
