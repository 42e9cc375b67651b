import { createHash } from 'node:crypto';

/** OpenAI, Anthropic and Google take names of 64 characters of [A-Za-z0-9_-]. */
const maxNameLength = 64;
const maxServerLength = 24;

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);

/**
 * Returns the part of the name for a server, different for each of a run. It has no `__`, so a tool cannot be named as if it were one of
 * another server: the people who create the run name the servers, and only the tools are named by them.
 */
function serverPart(server: string): string {
  const plain = server.replaceAll(/[^A-Za-z0-9-]+/g, '_').replaceAll(/^_+|_+$/g, '');
  if (plain === server && plain.length <= maxServerLength) return plain;
  return `${plain.slice(0, maxServerLength - 9)}-${hashOf(server)}`;
}

/** Returns the name under which the model sees a tool: `mcp__server__tool`. No built-in tool has such a name. */
export function toolName(server: string, tool: string): string {
  const plain = tool.replaceAll(/[^A-Za-z0-9_-]/g, '_');
  const name = `mcp__${serverPart(server)}__${plain}`;
  if (plain === tool && plain !== '' && name.length <= maxNameLength) return name;
  return `${name.slice(0, maxNameLength - 9)}_${hashOf(tool)}`;
}
