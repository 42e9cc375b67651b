/** The tools of one MCP server, in the form in which the protocol lists and calls them. */
import type { Tool as ListedTool } from '@modelcontextprotocol/server';
import { routes } from '@runyard/contract/routes';
import { type Allow, teamReads } from '@runyard/contract/wire/access';
import type { Principal } from '../../team/access/keys/principal.ts';
import { checkPermission } from '../../team/access/permission.ts';
import { type RunTool, toolRunner } from './call-tool.ts';
import { answerSchema, argumentsSchema, type Tool } from './tool.ts';

export interface Toolset {
  /** Returns the tools whose operations the owner of a key may call. */
  listFor(principal: Principal): ListedTool[];
  find(name: string): RunTool | undefined;
}

const mayCall = (allow: Allow, principal: Principal): boolean =>
  checkPermission('user' in allow ? allow : teamReads, principal).kind === 'allowed';

/** Makes the schemas of the tools once. */
export function makeToolset(tools: readonly Tool[]): Toolset {
  const runners = new Map(tools.map((tool) => [tool.name, toolRunner(tool)]));
  const listed = tools.map((tool) => ({
    allow: routes[tool.operation].allow as Allow,
    tool: {
      name: tool.name,
      title: tool.title,
      description: tool.description,
      inputSchema: argumentsSchema(tool) as ListedTool['inputSchema'],
      outputSchema: answerSchema(tool) as NonNullable<ListedTool['outputSchema']>,
      annotations: {
        title: tool.title,
        readOnlyHint: tool.effect === 'reads',
        ...(tool.effect === 'reads' ? {} : { destructiveHint: tool.effect === 'ends' }),
        openWorldHint: tool.effect === 'adds',
      },
    },
  }));
  return {
    listFor: (principal) => listed.filter(({ allow }) => mayCall(allow, principal)).map(({ tool }) => tool),
    find: (name) => runners.get(name),
  };
}
