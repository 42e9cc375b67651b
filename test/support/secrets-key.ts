import { randomBytes } from 'node:crypto';

/**
 * Makes a secrets key that begins like the operator's key. Redaction holds back the end of a text that may be the beginning of a secret in any
 * of its spellings. With another beginning, a few tests would wait for the last character of an output.
 */
export const newSecretsKey = (): string => `ryk${randomBytes(32).toString('base64').slice(3)}`;
