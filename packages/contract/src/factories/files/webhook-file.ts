import { z } from 'zod';
import { faultOfProof, faultOfSignature, ruleMembers, shownHeader } from '../../webhooks/webhook-rules.ts';
import { SignatureSchemeName, WebhookAuthMode } from '../../webhooks/webhooks.ts';
import { signatureSchemeNames, unsignedSchemeNames } from '../../wire/choices.ts';
import { SecretName } from './execution.ts';
import { strictObject } from './strict-object.ts';

const authModes = WebhookAuthMode.options;
const signatureSchemes = SignatureSchemeName.options;
const signedSchemes = signatureSchemeNames.filter((name) => !unsignedSchemeNames.some((other) => other === name));

const Signature = strictObject({
  header: ruleMembers.header,
  prefix: ruleMembers.prefix.optional(),
  algorithm: ruleMembers.algorithm.optional(),
  encoding: ruleMembers.encoding.optional(),
  signed: ruleMembers.signed.optional(),
  idHeader: ruleMembers.idHeader.optional(),
  timestampHeader: ruleMembers.timestampHeader.optional(),
  maxAgeSeconds: ruleMembers.maxAgeSeconds.optional(),
}).superRefine(({ signed, idHeader, timestampHeader, maxAgeSeconds }, context) => {
  const message = faultOfSignature({
    signed,
    hasId: idHeader !== undefined,
    hasTimestamp: timestampHeader !== undefined,
    hasMaxAge: maxAgeSeconds !== undefined,
  });
  if (message !== undefined) context.addIssue({ code: 'custom', path: ['signed'], message });
});

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
    .describe(
      `Scheme of the signature; needed for \`authMode: signature\`. ${unsignedSchemeNames.map((name) => `\`${name}\``).join(', ')} sign nothing with a secret, and go with the other modes`,
    ),
  secretName: SecretName.describe(
    'Secret of the team with the token or the signing secret. For `url_token` it may contain only letters, digits, `-`, `.`, `_` and `~`',
  ),
  deliveryIdHeader: shownHeader
    .optional()
    .describe("Header with the sender's own id of a delivery; it is used to recognise repeats"),
  deliveryIdPath: ruleMembers.deliveryIdPath.optional(),
  eventHeader: ruleMembers.eventHeader.optional(),
  duplicateWindowSeconds: ruleMembers.duplicateWindowSeconds.optional(),
  signature: Signature.optional().describe('How the sender signs; only with `signatureScheme: hmac`'),
  enabled: z.boolean().optional().describe('False: senders get 404. Default true'),
})
  .superRefine(({ authMode = 'token', signatureScheme, signature }, context) => {
    if (authMode === 'signature' && signatureScheme === undefined) {
      context.addIssue({
        code: 'custom',
        message: `needs signatureScheme, because authMode is signature: ${signedSchemes.join(', ')}`,
      });
      return;
    }
    if (authMode !== 'signature' && signedSchemes.some((name) => name === signatureScheme)) {
      const message = 'is only for authMode: signature; set that mode, or leave this key out';
      context.addIssue({ code: 'custom', path: ['signatureScheme'], message });
      return;
    }
    const fault = faultOfProof({ mode: authMode, scheme: signatureScheme, hasSignature: signature !== undefined });
    if (!fault) return;
    const isMissing = fault.member === 'signature' && signature === undefined;
    context.addIssue({
      code: 'custom',
      path: isMissing ? [] : [fault.member === 'scheme' ? 'signatureScheme' : 'signature'],
      message: isMissing ? `signature ${fault.message}` : fault.message,
    });
  })
  .meta({
    if: { properties: { authMode: { const: 'signature' } }, required: ['authMode'] },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
    then: { required: ['signatureScheme'], properties: { signatureScheme: { enum: signedSchemes } } },
    else: { properties: { signatureScheme: { enum: [...unsignedSchemeNames] } } },
    allOf: [
      {
        if: { properties: { signatureScheme: { const: 'hmac' } }, required: ['signatureScheme'] },
        // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
        then: { required: ['signature'] },
        else: { not: { required: ['signature'] } },
      },
    ],
  });
