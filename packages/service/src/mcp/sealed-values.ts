import type { Vault } from '../secrets/vault.ts';

/** Variables of a command or headers of an address, by name. */
export type ServerValues = Readonly<Record<string, string>>;

/** Values that are sealed for one server. A copy of them under the id of another server cannot be opened. */
export const purposeOf = (serverId: string): string => `mcp server ${serverId}`;

/** Seals the values of a server together. */
export const sealValues = (vault: Vault, serverId: string, values: ServerValues): Buffer =>
  vault.seal(purposeOf(serverId), JSON.stringify(values));

/** Opens the values of a server; null: another key sealed them, or they were changed. */
export function openValues(vault: Vault, serverId: string, sealed: Buffer): ServerValues | null {
  try {
    return JSON.parse(vault.open(purposeOf(serverId), sealed)) as ServerValues;
  } catch {
    return null;
  }
}
