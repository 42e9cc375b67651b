import type { ActionCategory } from '@runyard/contract/runs/conversations';
import { shorten } from '@runyard/contract/wire/shorten';

export interface ToolIdentity {
  name: string;
  category: ActionCategory;
}

/**
 * Returns the name of an MCP tool. Reads the formats of different harnesses: `mcp__srv__tool` (claude), `mcp.srv.tool` (codex), `tool (srv
 * MCP Server)` (gemini) and `srv_tool` (opencode). In the format of opencode, a tool counts as an MCP tool only if its name begins
 * with the name of a server of the run.
 */
function mcpTool(text: string, servers: readonly string[]): string | undefined {
  const marked = /^mcp__(.+?)__(.+)$/.exec(text) ?? /^mcp\.([^.\s]+)\.(\S+)/.exec(text);
  if (marked) return `${marked[1]}.${marked[2]}`;
  const suffixed = /^(.+?) \((.+) MCP Server\)/.exec(text);
  if (suffixed) return `${suffixed[2]}.${suffixed[1]}`;
  const server = servers.find((name) => text.startsWith(`${name}_`));
  return server === undefined ? undefined : `${server}.${text.slice(server.length + 1)}`;
}

const categoryOfKind: Readonly<Record<string, ActionCategory>> = {
  read: 'files',
  edit: 'files',
  delete: 'files',
  move: 'files',
  search: 'search',
  fetch: 'search',
  execute: 'command',
};

/**
 * Categories by the name of the tool. Used if the kind of the tool call, such as `other` or `think`, gives no category. The first match
 * counts.
 */
const categoryOfName: readonly (readonly [RegExp, ActionCategory])[] = [
  [/skill/i, 'skill'],
  [/review/i, 'review'],
  [/screenshot|computer|browser|click|keyboard|mouse/i, 'computer'],
  [/todo|plan|notebook|note|document|memory/i, 'documents'],
  [/bash|shell|terminal|exec|command|run_/i, 'command'],
  [/search|grep|glob|find|fetch|web/i, 'search'],
  [/file|read|write|edit|patch|artifact|list|^ls$/i, 'files'],
];

/** Returns the name and the category of a tool call. The texts from the harness may have any content. */
export function identifyTool(
  call: { name?: string | undefined; kind?: string | undefined; title?: string | undefined },
  mcpServers: readonly string[],
): ToolIdentity {
  for (const text of [call.name, call.title]) {
    const tool = text === undefined ? undefined : mcpTool(text.trim(), mcpServers);
    if (tool !== undefined) return { name: shortName(tool), category: 'integration' };
  }
  const category =
    (call.kind === undefined ? undefined : categoryOfKind[call.kind]) ??
    categoryOfName.find(([pattern]) => pattern.test(call.name ?? call.title ?? ''))?.[1] ??
    'integration';
  const known = call.kind !== undefined && call.kind !== 'other' ? nameOfKind(call.kind) : undefined;
  return { name: shortName(call.name ?? known ?? call.title ?? 'tool'), category };
}

const nameOfKind = (kind: string) => (kind === 'execute' ? 'shell' : kind);

function shortName(name: string): string {
  const line = name.trim().split('\n', 1)[0] ?? '';
  return shorten(line, 120) || 'tool';
}
