import type { SignatureScheme } from './scheme.ts';

/** The members of a scheme for a sender that does not sign with a secret. */
export const unsigned = {
  headers: [],
  algorithm: 'none',
  encoding: 'hex',
  prefix: '',
  signed: [],
  key: 'text',
} as const satisfies SignatureScheme;
