/** A way to sign deliveries, as data. `verify-signature.ts` reads it; no provider has code of its own. */
export interface SignatureScheme {
  /** Headers in which a sender puts its signature. The first set whose signature header is present is used. */
  readonly headers: readonly SchemeHeaders[];
  /** `plain`: the header contains the secret itself. */
  readonly algorithm: 'sha256' | 'sha1' | 'plain';
  readonly encoding: 'hex' | 'base64';
  /** Text between the parts of the signature header. Absent: the header is one part. */
  readonly separator?: string;
  /** Text before each signature; parts without it are skipped. */
  readonly prefix: string;
  /** Text before the part of the signature header that contains the timestamp, in seconds since 1970. */
  readonly timestampPrefix?: string;
  /** The bytes that are signed, in this order; any other text means itself. */
  readonly signed: readonly ('{id}' | '{timestamp}' | '{body}' | (string & {}))[];
  /** `whsec`: base64 after an optional `whsec_`. `text`: the secret's UTF-8 bytes. */
  readonly key: 'text' | 'whsec';
  /** Distance from now that a timestamp may have. Absent: the signed text has no time. */
  readonly maxAgeSeconds?: number;
  /** Header with the name of the event, if the body does not contain it. */
  readonly eventHeader?: string;
  /** Other headers that identify the event. None of them is a credential, so the log can store them. */
  readonly otherHeaders?: readonly string[];
  /** Body with which the provider checks the URL: its member `type` has this value, and the answer repeats `challenge`. */
  readonly handshakeType?: string;
}

export interface SchemeHeaders {
  readonly signature: string;
  readonly timestamp?: string;
  /** The provider's own id of the delivery. */
  readonly id?: string;
  /** Its id in senders that do not know the first header. */
  readonly olderId?: string;
}

/** interface.md, "Limits": signature age. */
export const fiveMinutes = 300;
