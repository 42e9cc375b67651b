/**
 * Replaces `${NAME}` with the value of a secret of the run, in the variables and headers of an MCP server that a configuration describes.
 */
import type { AmbientAgentConfig, MCPServerConfig } from '@runyard/contract/runs/config';
import { McpHeaders, maxMcpVariableLength } from '@runyard/contract/team/mcp-servers';
import type { Fault } from '../../platform/fault.ts';
import type { ServerSecretForm } from '../access/contents/run-rights.ts';
import type { ServerValues } from './sealed-values.ts';

/** A secret that an MCP server names. */
export interface ServerSecret {
  readonly name: string;
  readonly as: ServerSecretForm;
  /** Path of the first member that names the secret. */
  readonly path: string;
}

const reference = /\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}/g;

/** Returns whether the text of a variable or header names a secret. */
export const namesSecret = (text: string): boolean => text.search(reference) >= 0;

/**
 * Returns the variables or the headers of a server: references to secrets are replaced only there. The result has no values for a stored
 * server.
 */
function valuesOf({ command, env = {}, url, headers = {} }: MCPServerConfig) {
  if (command !== undefined) return { member: 'env', as: 'mcp_variable', values: env } as const;
  return { member: 'headers', as: 'mcp_header', values: url === undefined ? {} : headers } as const;
}

/** Returns the secrets that servers name. Each secret appears at most once for each form: variable or header. */
export function secretsOfServers(servers: NonNullable<AmbientAgentConfig['mcp_servers']>): readonly ServerSecret[] {
  const found = new Map<string, ServerSecret>();
  for (const [server, described] of Object.entries(servers)) {
    const { member, as, values } = valuesOf(described);
    for (const [key, text] of Object.entries(values))
      for (const [, name = ''] of text.matchAll(reference))
        if (!found.has(`${as} ${name}`))
          found.set(`${as} ${name}`, { name, as, path: `config.mcp_servers.${server}.${member}.${key}` });
  }
  return [...found.values()];
}

/** The present values, by name, of the secrets that a run may use in one form. */
export type SecretValues = ReadonlyMap<string, string>;

export type SecretsByForm = Readonly<Record<ServerSecretForm, SecretValues>>;

/** Returns the values of those secrets of a run that the run's servers may get, by form. */
export function secretsByForm(
  secrets: readonly { readonly name: string; readonly as: string; readonly value: string }[],
): SecretsByForm {
  const inForm = (form: ServerSecretForm): SecretValues =>
    new Map(secrets.flatMap(({ name, as, value }) => (as === form ? [[name, value]] : [])));
  return { mcp_variable: inForm('mcp_variable'), mcp_header: inForm('mcp_header') };
}

/** Replaces the names of secrets in a text with values. Names without a value stay. Adds the inserted values to `used`. */
export function putSecrets(
  values: ServerValues,
  secrets: SecretValues,
): { readonly values: ServerValues; readonly used: readonly string[] } {
  const used = new Set<string>();
  const put = (text: string): string =>
    text.replace(reference, (written, name: string) => {
      const value = secrets.get(name);
      if (value === undefined) return written;
      used.add(value);
      return value;
    });
  const filled = Object.entries(values).map(([name, text]): [string, string] => [name, put(text)]);
  return { values: Object.fromEntries(filled), used: [...used] };
}

/**
 * Counts the characters that a text has after its names are replaced with values. Does not build this text, because a value may be much
 * longer than its name.
 */
const filledLength = (text: string, secrets: SecretValues): number =>
  [...text.matchAll(reference)].reduce(
    (length, [written, name = '']) => length + (secrets.get(name) ?? written).length - written.length,
    text.length,
  );

const isHeader = (name: string, value: string): boolean => McpHeaders.safeParse({ [name]: value }).success;

/** Returns the reasons why values of secrets are not allowed in the servers that name the secrets. No fault contains a value. */
export function faultsOfSecrets(
  servers: NonNullable<AmbientAgentConfig['mcp_servers']>,
  byForm: SecretsByForm,
): Fault[] {
  return Object.entries(servers).flatMap(([server, described]) => {
    const { member, as, values } = valuesOf(described);
    const secrets = byForm[as];
    return Object.entries(values).flatMap(([key, text]): Fault[] => {
      if (![...text.matchAll(reference)].some(([, name = '']) => secrets.has(name))) return [];
      const path = `config.mcp_servers.${server}.${member}.${key}`;
      if (filledLength(text, secrets) > maxMcpVariableLength)
        return [{ path, message: `is longer than ${maxMcpVariableLength} characters with the values of its secrets` }];
      if (as === 'mcp_variable' || isHeader(key, putSecrets({ [key]: text }, secrets).values[key] ?? '')) return [];
      const message =
        'is not a valid value of an HTTP header after its secrets are inserted: at most 8192 characters, no line breaks or other control characters, no characters outside of Latin-1. A file that is stored as a secret often ends with a line break, which is not allowed';
      return [{ path, message }];
    });
  });
}
