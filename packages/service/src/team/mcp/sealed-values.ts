import { defineSealedRows } from '../../platform/secrets/seal-again.ts';
import type { Vault } from '../../platform/secrets/vault.ts';

/** Values of the environment variables of a command, or of the headers for an address, by name. */
export type ServerValues = Readonly<Record<string, string>>;

/** Encrypted values of one server. A copy of these values under the id of another server cannot be decrypted. */
export const purposeOf = (serverId: string): string => `mcp server ${serverId}`;

/** Encrypts the values of a server together. */
export const sealValues = (vault: Vault, serverId: string, values: ServerValues): Buffer =>
  vault.seal(purposeOf(serverId), JSON.stringify(values));

/** Decrypts the values of a server; returns null if they were encrypted with another key, or were changed. */
export function openValues(vault: Vault, serverId: string, sealed: Buffer): ServerValues | null {
  try {
    return JSON.parse(vault.open(purposeOf(serverId), sealed)) as ServerValues;
  } catch {
    return null;
  }
}

/** Names the columns with the encrypted values of stored MCP servers. */
export const sealedServers = defineSealedRows({
  table: 'mcp_servers',
  id: 'id',
  sealed: 'sealed_values',
  purpose: purposeOf,
});
