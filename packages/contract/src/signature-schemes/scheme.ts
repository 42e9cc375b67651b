/** A way to sign deliveries, as data. `verify-signature.ts` reads it; there is no code per provider. */
export interface SignatureScheme {
  /** Headers in which a sender puts its signature; the first set whose signature header is present counts. */
  readonly headers: readonly SchemeHeaders[];
  /** `plain`: the header holds the secret itself. */
  readonly algorithm: 'sha256' | 'sha1' | 'plain';
  readonly encoding: 'hex' | 'base64';
  /** Text between the parts of the signature header. Absent: the header is one part. */
  readonly separator?: string;
  /** Text in front of each signature; parts without it are skipped. */
  readonly prefix: string;
  /** Text in front of the part of the signature header that holds the timestamp, in seconds since 1970. */
  readonly timestampPrefix?: string;
  /** The bytes that are signed, in this order; other texts stand for themselves. */
  readonly signed: readonly ('{id}' | '{timestamp}' | '{body}' | (string & {}))[];
  /** `whsec`: base64 after an optional `whsec_`. `text`: the secret's UTF-8 bytes. */
  readonly key: 'text' | 'whsec';
  /** Distance from now that a timestamp may have. Absent: nothing signed tells the time. */
  readonly maxAgeSeconds?: number;
  /** Header with the name of the event, where the body does not say it. */
  readonly eventHeader?: string;
  /** Other headers that say which event it is. None of them proves anything, so that the log can keep them. */
  readonly otherHeaders?: readonly string[];
  /** Body with which the provider checks the URL: its member `type` has this value, and the answer repeats `challenge`. */
  readonly handshakeType?: string;
}

export interface SchemeHeaders {
  readonly signature: string;
  readonly timestamp?: string;
  /** The provider's own id of the delivery. */
  readonly id?: string;
}

/** interface.md, "Limits": signature age. */
export const fiveMinutes = 300;
