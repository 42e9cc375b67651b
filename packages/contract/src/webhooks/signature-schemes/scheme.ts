/** Describes a kind of sender as data: how the sender signs, and how its deliveries are recognised. No provider has special code. */
export interface SignatureScheme {
  /** Headers with a sender's signature. The first set whose signature header is present is used. */
  readonly headers: readonly SchemeHeaders[];
  /** `plain`: the header contains the secret itself. `none`: the sender signs nothing, and a token proves the sender. */
  readonly algorithm: 'sha256' | 'sha1' | 'sha512' | 'plain' | 'none';
  readonly encoding: 'hex' | 'base64';
  /** Text between the parts of the signature header. Absent: the header is one part. */
  readonly separator?: string;
  /** Text before each signature; parts without it are skipped. */
  readonly prefix: string;
  /** Text before the part of the signature header that contains the timestamp, in seconds since 1970. */
  readonly timestampPrefix?: string;
  /** Member of the body that contains the timestamp, in milliseconds since 1970. */
  readonly timestampMember?: string;
  /** The signed bytes, in this order; any other text is signed literally. */
  readonly signed: readonly ('{id}' | '{timestamp}' | '{body}' | (string & {}))[];
  /** `whsec`: base64 after an optional `whsec_`. `text`: the secret's UTF-8 bytes. */
  readonly key: 'text' | 'whsec';
  /** Maximum difference between a timestamp and the current time. Absent if the signed text has no time. */
  readonly maxAgeSeconds?: number;
  /** Header with the name of the event, if the body does not contain it. */
  readonly eventHeader?: string;
  /**
   * For each event name in `eventHeader`: the members of the body that prove the event. The event of a body is the first entry for which
   * the body has all members. Events that are not listed are not compared.
   */
  readonly eventMembers?: Readonly<Record<string, readonly string[]>>;
  /** Member of the body that contains the same event name as `eventHeader`. */
  readonly eventMember?: string;
  /** Member of the body with the provider's id of the delivery, used if no header has an id. */
  readonly idMember?: string;
  /** Other headers that identify the event. None of these headers is a credential, so the log can store them. */
  readonly otherHeaders?: readonly string[];
  /** If the body is a form: the field that contains the JSON. */
  readonly formField?: string;
  /** Members that contain JSON as text; filters see the parsed values. */
  readonly jsonMembers?: readonly string[];
  /** Requests with which the provider verifies the URL. They start nothing. */
  readonly handshake?: Handshake;
  /** Advice for the person if a delivery is too large. */
  readonly ifTooLarge?: string;
}

export interface SchemeHeaders {
  readonly signature: string;
  readonly timestamp?: string;
  /** The provider's own id of the delivery. */
  readonly id?: string;
  /** Header with the id in deliveries of senders that do not send the first header. */
  readonly olderId?: string;
}

/** Members of a body are named by a path with dots; a number is the place in a list. */
export type Handshake =
  /**
   * The body has the member `when[0]` with the value `when[1]`. In the answer, `{value}` is the member `value`, and `{hmac}` is its HMAC.
   */
  | { readonly when: Member; readonly value: string; readonly answer: Readonly<Record<string, string>> }
  /** The query of the URL has this parameter. The answer is the value of the parameter. */
  | { readonly query: string }
  /**
   * The body has the member; a person has to follow the instruction `confirm`. The service fetches nothing, because the sender of the body chooses
   * the address.
   */
  | { readonly when: Member; readonly confirm: string };

type Member = readonly [path: string, value: string];

/** Maximum age of a signature (interface.md, "Limits"). */
export const fiveMinutes = 300;
