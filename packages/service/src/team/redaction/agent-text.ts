/** Cleans the values that an agent sends, before the service stores or logs them. */

import { storable } from '@runyard/contract/wire/storable-json';
import { type ByteMask, createByteMask } from '@runyard/system/redaction/mask-bytes';
import { createRedactor, type Redactor } from '@runyard/system/redaction/redactor';
import type { Vault } from '../../platform/secrets/vault.ts';

/** The secrets of the service itself, which must never be stored, and the vault that decrypts the secrets of runs. */
export interface ServiceSecrets {
  readonly secrets: readonly string[];
  readonly vault: Vault;
}

/** The encrypted copy of a value that a sandbox of a run got. */
export interface SealedValue {
  readonly id: string;
  readonly purpose: string;
  readonly sealed: Buffer;
}

/** The run whose text is cleaned. */
interface SecretHolder {
  /** The raw run token of the agent that sends the values; absent: the text does not come from an agent. */
  readonly token?: string;
  readonly grantedSecrets: readonly SealedValue[];
}

/** Maximum number of cached redactors. It is larger than the number of runs that send text to one process within a few seconds. */
const maxCached = 200;
const cached = new WeakMap<readonly string[], Map<string, Redactor>>();

/**
 * Returns the redactor for a session. It removes the session's run token, the secrets that the run was granted, and the secrets of the
 * service. Throws if this process cannot decrypt a granted secret, because text that cannot be redacted must not be stored.
 */
export function redactorOf({ secrets, vault }: ServiceSecrets, { token, grantedSecrets }: SecretHolder): Redactor {
  const redactors = cached.get(secrets) ?? new Map<string, Redactor>();
  cached.set(secrets, redactors);
  const key = [token, ...grantedSecrets.map(({ id }) => id)].join(' ');
  const opened = () => grantedSecrets.map(({ purpose, sealed }) => vault.open(purpose, sealed));
  const redactor =
    redactors.get(key) ?? createRedactor([...(token === undefined ? [] : [token]), ...opened(), ...secrets]);
  // Insert the redactor again, so that the entry that was used last is the last entry of the map.
  redactors.delete(key);
  redactors.set(key, redactor);
  const [oldest] = redactors.keys();
  if (redactors.size > maxCached && oldest !== undefined) redactors.delete(oldest);
  return redactor;
}

/** Returns the value with all its strings and member names cleaned: without secrets, and with U+FFFD in place of each NUL character. */
export function withoutSecrets<T>(service: ServiceSecrets, session: SecretHolder, value: T): T {
  return storable(redactorOf(service, session).value(value)) as T;
}

/** Returns the mask for files of a run. The mask replaces the secret values that the run was granted. */
export const byteMaskOf = (
  { vault }: Pick<ServiceSecrets, 'vault'>,
  { grantedSecrets }: Pick<SecretHolder, 'grantedSecrets'>,
): ByteMask => createByteMask(grantedSecrets.map(({ purpose, sealed }) => vault.open(purpose, sealed)));
