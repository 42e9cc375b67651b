/** Members of a webhook that define how a sender signs deliveries and where their ids and events are. */
import { z } from 'zod';
import { signatureAlgorithms, signatureEncodings, unsignedSchemeNames } from '../wire/choices.ts';

/** Headers with credentials or signatures. Their values must not be in the log of deliveries. */
const credentialHeader =
  /^(?:(?:proxy-)?authorization|(?:set-)?cookie|(?:x-)?api[-_]?key|.*(?:signature|secret|token|credential|password|auth|session|jwt|key).*)$/i;
/** Headers whose names look like names of credentials, but which only identify a delivery or an event. */
const harmlessHeader = /^(?:idempotency-key|x-event-key)$/i;

/** Pattern of the name of an HTTP header. */
export const headerNamePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;

/** Returns the reason why the log cannot show the value of this header; undefined if it can show the value. */
export function shownHeaderFault(header: string): string | undefined {
  if (!headerNamePattern.test(header)) return 'must be the name of an HTTP header, at most 100 characters';
  return harmlessHeader.test(header) || !credentialHeader.test(header)
    ? undefined
    : 'must not be a header that carries a credential, because the log shows its value';
}

/** The name of a header whose value the log shows. */
export const shownHeader = z
  .string()
  .superRefine((header, context) => {
    const message = shownHeaderFault(header);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  })
  .meta({ pattern: headerNamePattern.source });

const headerName = z
  .string()
  .regex(headerNamePattern, { error: 'must be the name of an HTTP header, at most 100 characters' });

/** Pattern of the path to a member: names of members and numbers of list items, with dots between them. */
export const memberPathPattern = /^[^.\s]{1,100}(?:\.[^.\s]{1,100}){0,9}$/;

/** Text around a signature. It has no control characters, because it is part of a header. */
const printable = /^[\x20-\x7e]*$/;

/** Schemas of the members that this file describes. The API and definition files use these schemas under different names. */
export const ruleMembers = {
  deliveryIdPath: z
    .string()
    .regex(memberPathPattern, { error: 'must be the path of a member, such as id or event.id, of at most 10 names' })
    .describe(
      "Member of the body with the sender's own id of a delivery, as a path with dots; it counts where no header has an id. Default: the value of the scheme",
    ),
  eventHeader: shownHeader.describe('Header that names the event. Default: the value of the scheme'),
  duplicateWindowSeconds: z
    .int()
    .min(0)
    .max(24 * 60 * 60)
    .describe(
      'How long a delivery with the same signed bytes counts as a duplicate, if the signature does not cover its id; the headers do not matter. 0: such a delivery is no duplicate. Default: 300',
    ),
  header: headerName.describe('Header with the signature'),
  prefix: z
    .string()
    .max(50)
    .regex(printable, { error: 'must be printable ASCII' })
    .describe('Text before the signature, such as sha256='),
  algorithm: z.enum(signatureAlgorithms).describe('Hash of the HMAC. Default: sha256'),
  encoding: z.enum(signatureEncodings).describe('Form of the signature. Default: hex'),
  signed: z
    .string()
    .max(200)
    .regex(printable, { error: 'must be printable ASCII' })
    .describe(
      'Template of the signed text: {body}, {timestamp} and {id} are replaced by their values. Default: {body}',
    ),
  idHeader: shownHeader.describe("Header with the sender's own id of a delivery"),
  timestampHeader: headerName.describe('Header with the time of the signature: seconds since 1970, or RFC 3339'),
  maxAgeSeconds: z.int().min(1).max(86_400).describe('How old a signature may be. Default: 300'),
} as const;

/** The parts of a signature that depend on each other. */
interface SignatureParts {
  readonly signed?: string | undefined;
  readonly hasId: boolean;
  readonly hasTimestamp: boolean;
  readonly hasMaxAge: boolean;
}

/** Returns the reason why the parts of a signature contradict each other; undefined if they do not. */
export function faultOfSignature({
  signed = '{body}',
  hasId,
  hasTimestamp,
  hasMaxAge,
}: SignatureParts): string | undefined {
  const count = (part: string): number => signed.split(part).length - 1;
  if (count('{body}') !== 1 || count('{id}') > 1 || count('{timestamp}') > 1)
    return 'must have {body} once, and {timestamp} and {id} at most once';
  if (/\{id\}\{|\}\{id\}/.test(signed)) return 'needs a text between {id} and what is beside it';
  if (count('{id}') === 1 && !hasId) return 'has {id}, so the header with the id is needed';
  if ((count('{timestamp}') === 1) !== hasTimestamp)
    return hasTimestamp
      ? 'must have {timestamp}, because a time that is not signed proves nothing'
      : 'has {timestamp}, so the header with the timestamp is needed';
  return hasMaxAge && !hasTimestamp ? 'has no {timestamp}, so a signature has no age' : undefined;
}

const SignatureAlgorithm = z
  .enum(signatureAlgorithms)
  .meta({ id: 'SignatureAlgorithm', description: 'Hash of the HMAC. Default: sha256' });
const SignatureEncoding = z
  .enum(signatureEncodings)
  .meta({ id: 'SignatureEncoding', description: 'Form of the signature. Default: hex' });

/** Returns the JSON Schema of a text that contains this name in braces exactly once. */
const once = (name: string) => ({ pattern: `\\{${name}\\}`, not: { pattern: `\\{${name}\\}.*\\{${name}\\}` } });

export const HmacSignature = z
  .object({
    header: ruleMembers.header,
    prefix: ruleMembers.prefix.optional(),
    algorithm: SignatureAlgorithm.optional(),
    encoding: SignatureEncoding.optional(),
    signed: ruleMembers.signed.optional(),
    id_header: ruleMembers.idHeader.optional(),
    timestamp_header: ruleMembers.timestampHeader.optional(),
    max_age_seconds: ruleMembers.maxAgeSeconds.optional(),
  })
  .superRefine(({ signed, id_header, timestamp_header, max_age_seconds }, context) => {
    const message = faultOfSignature({
      signed,
      hasId: id_header !== undefined,
      hasTimestamp: timestamp_header !== undefined,
      hasMaxAge: max_age_seconds !== undefined,
    });
    if (message !== undefined) context.addIssue({ code: 'custom', path: ['signed'], message });
  })
  .meta({
    id: 'HmacSignature',
    description: 'How a sender of the scheme hmac signs',
    dependentRequired: { max_age_seconds: ['timestamp_header'], timestamp_header: ['signed'] },
    // The rules of `faultOfSignature` as JSON Schema.
    allOf: [
      { properties: { signed: once('body') } },
      {
        anyOf: [
          { required: ['timestamp_header'], properties: { signed: once('timestamp') } },
          { not: { required: ['timestamp_header'] }, properties: { signed: { not: { pattern: '\\{timestamp\\}' } } } },
        ],
      },
      {
        anyOf: [
          { required: ['id_header'], properties: { signed: once('id') } },
          { properties: { signed: { not: { pattern: '\\{id\\}' } } } },
        ],
      },
      { properties: { signed: { not: { pattern: '\\{id\\}\\{|\\}\\{id\\}' } } } },
    ],
  });
export type HmacSignature = z.infer<typeof HmacSignature>;

/** The members of a webhook that define how the service reads the deliveries. */
export interface WebhookRules {
  readonly delivery_id_path?: string | undefined;
  readonly event_header?: string | undefined;
  readonly duplicate_window_seconds?: number | undefined;
  readonly signature?: HmacSignature | undefined;
}

export const defaultDuplicateWindowSeconds = 300;

/** The members of a webhook that define how the service authenticates the senders. */
interface Proof {
  readonly mode: string;
  readonly scheme: string | undefined;
  readonly hasSignature: boolean;
}

export const isUnsignedScheme = (scheme: string): boolean => unsignedSchemeNames.some((name) => name === scheme);

/** Returns the member that contradicts the other members, with the reason; undefined if there is no contradiction. */
export function faultOfProof({
  mode,
  scheme,
  hasSignature,
}: Proof): { member: 'scheme' | 'signature'; message: string } | undefined {
  if (mode === 'signature' && scheme === undefined)
    return { member: 'scheme', message: 'is required with auth_mode signature' };
  if (mode !== 'signature' && scheme !== undefined && !isUnsignedScheme(scheme))
    return { member: 'scheme', message: 'is only for auth_mode signature; leave this member out' };
  if (mode === 'signature' && scheme !== undefined && isUnsignedScheme(scheme))
    return {
      member: 'scheme',
      message: 'is a sender that signs nothing with a secret; set auth_mode to url_token or token',
    };
  if ((scheme === 'hmac') === hasSignature) return undefined;
  return {
    member: 'signature',
    message: hasSignature ? 'is only for the scheme hmac; leave this member out' : 'is required with the scheme hmac',
  };
}
