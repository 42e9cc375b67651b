/**
 * Encrypts the literal headers of MCP servers that a configuration describes. They are credentials, and a configuration is in the database,
 * in backups and in answers to viewers. An encrypted header works only in the same team, for the same URL and the same name.
 */
import { McpHeaders } from '@runyard/contract/team/mcp-servers';
import { type ConfigSeal, isSealedValue } from '../../platform/secrets/config-seal.ts';
import { invalid } from '../../platform/serving/refusal.ts';
import { namesSecret } from './secret-references.ts';

const purposeOf = (teamId: string, url: string, header: string): string =>
  JSON.stringify(['mcp header', teamId, URL.parse(url)?.href ?? url, header.toLowerCase()]);

type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json => value !== null && typeof value === 'object';

/** Deepest level of a body at which a configuration can be. */
const maxDepth = 6;

/** Returns a copy of a value in which `change` has replaced each header of each described MCP server. */
function withHeaders(value: unknown, change: (url: string, name: string, text: string) => string, depth = 0): unknown {
  if (!isObject(value) || depth > maxDepth) return value;
  if (Array.isArray(value)) return value.map((each) => withHeaders(each, change, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      name === 'mcp_servers' && isObject(member) && !Array.isArray(member)
        ? Object.fromEntries(Object.entries(member).map(([server, described]) => [server, ofServer(described, change)]))
        : withHeaders(member, change, depth + 1),
    ]),
  );
}

function ofServer(server: unknown, change: (url: string, name: string, text: string) => string): unknown {
  if (!isObject(server) || typeof server.url !== 'string' || !isObject(server.headers)) return server;
  const { url } = server;
  const headers = Object.entries(server.headers).map(([name, text]) => [
    name,
    typeof text === 'string' ? change(url, name, text) : text,
  ]);
  return { ...server, headers: Object.fromEntries(headers) };
}

/**
 * Returns the body of a request in which literal headers are encrypted. A header that names a secret stays, and so does a header that is
 * not valid, which the check of the configuration refuses. @throws Refusal (400) for an encrypted header that was made for another place
 */
export async function sealHeaders(configSeal: ConfigSeal, teamId: string, body: unknown): Promise<unknown> {
  let isNeeded = false;
  withHeaders(body, (_url, name, text) => {
    isNeeded ||= isSealedValue(text) || isLiteral(name, text);
    return text;
  });
  if (!isNeeded) return body;
  const seal = await configSeal.load();
  return withHeaders(body, (url, name, text) => {
    const purpose = purposeOf(teamId, url, name);
    if (!isSealedValue(text)) return isLiteral(name, text) ? seal.seal(purpose, text) : text;
    if (seal.open(purpose, text) !== null) return text;
    const message = 'is the sealed value of another header, URL or team. Send the value itself';
    throw invalid([{ path: `mcp_servers headers ${name}`, message }]);
  });
}

const isLiteral = (name: string, text: string): boolean =>
  text !== '' && !namesSecret(text) && McpHeaders.safeParse({ [name]: text }).success;

/** Returns the headers of a described server with their values; null if a value cannot be decrypted. */
export async function openHeaders(
  configSeal: ConfigSeal,
  teamId: string,
  { url, headers }: { readonly url: string; readonly headers: Readonly<Record<string, string>> },
): Promise<Readonly<Record<string, string>> | null> {
  if (!Object.values(headers).some(isSealedValue)) return headers;
  const seal = await configSeal.load();
  const opened = Object.entries(headers).map(([name, text]) => [
    name,
    isSealedValue(text) ? seal.open(purposeOf(teamId, url, name), text) : text,
  ]);
  return opened.some(([, text]) => text === null) ? null : Object.fromEntries(opened);
}
