/**
 * Describes a kind of sender as data: how the sender signs a delivery, and where the ids and events of its deliveries are. No provider has
 * special code.
 */
export interface SignatureScheme {
  /** Sets of headers that this kind of sender uses. The first set whose signature header is in the delivery counts. */
  readonly headers: readonly SchemeHeaders[];
  /** `plain`: the header contains the secret itself. `none`: the sender does not sign, and a token authenticates it. */
  readonly algorithm: 'sha256' | 'sha1' | 'sha512' | 'plain' | 'none';
  readonly encoding: 'hex' | 'base64';
  /** Text between the parts of the signature header. Absent: the header is not divided into parts. */
  readonly separator?: string;
  /** Text before each signature. Parts of the header that do not begin with this text are ignored. */
  readonly prefix: string;
  /** Text before the part of the signature header that contains the timestamp, in seconds since 1970. */
  readonly timestampPrefix?: string;
  /** Member of the body that contains the timestamp, in milliseconds since 1970. */
  readonly timestampMember?: string;
  /** The parts of the signed text, in order. A text without braces is signed as it is. */
  readonly signed: readonly ('{id}' | '{timestamp}' | '{body}' | (string & {}))[];
  /**
   * How the key is made from the secret. `whsec`: the secret is base64; if the secret begins with `whsec_`, the base64 text follows this
   * prefix. `text`: the key is the UTF-8 bytes of the secret.
   */
  readonly key: 'text' | 'whsec';
  /** Maximum difference between a timestamp and the current time. Absent if the signed text has no time. */
  readonly maxAgeSeconds?: number;
  /** Header with the name of the event, if the body does not contain it. */
  readonly eventHeader?: string;
  /**
   * The service checks the event name in the header `eventHeader` with this list, because the signature does not cover the header.
   * Each entry has the name of an event and the members that the bodies of this event have. The event of a body is the first entry
   * whose members are all in the body. The service does not check events that are not in the list.
   */
  readonly eventMembers?: Readonly<Record<string, readonly string[]>>;
  /** Member of the body that contains the same event name as `eventHeader`. */
  readonly eventMember?: string;
  /** Member of the body with the provider's id of the delivery, used if no header has an id. */
  readonly idMember?: string;
  /** Other headers that identify the event. The log stores these headers, so none of them may be a credential. */
  readonly otherHeaders?: readonly string[];
  /** If the body is a form: the field that contains the JSON. */
  readonly formField?: string;
  /** Members of the body that contain JSON as text. Filters get the parsed values of these members. */
  readonly jsonMembers?: readonly string[];
  /** Requests with which the provider verifies the URL of the webhook. Such a request starts no runs. */
  readonly handshake?: Handshake;
  /** Advice for the owner of the webhook if a delivery is too large. */
  readonly ifTooLarge?: string;
}

export interface SchemeHeaders {
  readonly signature: string;
  readonly timestamp?: string;
  /** Header with the provider's id of the delivery. */
  readonly id?: string;
  /** Header with the id in deliveries of older senders, which do not send the header `id`. */
  readonly olderId?: string;
}

/**
 * How a provider verifies the URL of a webhook, and the answer that it expects. A member of a body is named by a path with dots, in which a
 * number is a place in a list.
 */
export type Handshake =
  /**
   * The body has the member `when[0]` with the value `when[1]`. In the answer, `{value}` stands for the member `value` of the body, and
   * `{hmac}` for the HMAC of that member.
   */
  | { readonly when: Member; readonly value: string; readonly answer: Readonly<Record<string, string>> }
  /** The query of the URL has this parameter. The answer is the value of the parameter. */
  | { readonly query: string }
  /**
   * The body has the member, and a person must then follow the instruction `confirm`. The service does not fetch the address in the
   * body itself, because the sender of the body chooses this address.
   */
  | { readonly when: Member; readonly confirm: string };

type Member = readonly [path: string, value: string];

/** Maximum age of a signature, in seconds. */
export const fiveMinutes = 300;
