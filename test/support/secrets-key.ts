import { randomBytes } from 'node:crypto';

/**
 * Makes a secrets key that begins like the operator's key. Redaction delays the end of an output if it may be the beginning of a
 * secret in any encoding. If the two keys began differently, a few tests would wait for the last character of an output.
 */
export const newSecretsKey = (): string => `ryk${randomBytes(32).toString('base64').slice(3)}`;
