/** The MCP servers that a team has stored for its runs. */
import type { McpServer } from '@runyard/contract/team/mcp-servers';
import { Failure } from '../../exits/failure.ts';
import { readInput } from '../../input/input-file.ts';
import { type Members, request } from '../../route-commands/row.ts';

const flags = {
  '--url <url>': { member: 'url', help: 'address of a server over HTTP, which only the service reaches' },
  '--command <program>': { member: 'command', help: 'program to start inside the sandbox' },
  '--arg <text>': { member: 'args', help: 'argument of the program; repeat for more' },
  '--values <file>': {
    member: 'env',
    help: 'JSON object of headers or of variables, which are sealed; - for standard input',
    read: (file: string | undefined) => (file === undefined ? undefined : valuesFrom(file)),
  },
} as const;

/**
 * Reads headers or variables from a file, because other users of the machine can read arguments. The text of the file is not part of error
 * messages, because it contains secrets.
 */
function valuesFrom(file: string): object {
  const text = readInput(file).toString('utf8');
  try {
    const values: unknown = JSON.parse(text);
    const isObject = typeof values === 'object' && values !== null && !Array.isArray(values);
    if (isObject && Object.values(values).every((value) => typeof value === 'string')) return values;
  } catch {
    // The text is not JSON.
  }
  throw new Failure('--values: must be a JSON object whose members are strings, such as {"authorization": "Bearer …"}');
}

/** Returns the members with the values in the place that the kind of server has: `headers` over HTTP, otherwise `env`. */
const withValues = ({ env, ...members }: Members, isHttp: boolean): Members =>
  env === undefined ? members : { ...members, [isHttp ? 'headers' : 'env']: env };

const useNote = ({ id, name }: McpServer): string =>
  `runs use ${name} with config.mcp_servers {"NAME": {"warp_id": "${id}"}}`;

const server = { usage: '<server-id>' };

/** The commands of `mcp`. */
export const mcp = [
  request('listMcpServers', 'list', 'list the MCP servers of the team, without the values of headers and variables', {
    isDefault: true,
    list: {
      of: 'mcp_servers',
      columns: [
        { header: 'SERVER', text: ({ id }) => id },
        { header: 'NAME', flexible: true, text: ({ name }) => name },
        { header: 'WHERE', flexible: true, text: ({ url, command, args = [] }) => url ?? [command, ...args].join(' ') },
        { header: 'VALUES', flexible: true, text: (one) => (one.header_names ?? one.env_names ?? []).join(', ') },
        { header: 'UPDATED', ago: ({ updated_at }) => updated_at },
      ],
      none: 'no MCP servers; store one with: bin/runyard mcp create NAME',
    },
  }),
  request('getMcpServer', 'get', 'show an MCP server as JSON', { arguments: [server] }),
  request('createMcpServer', 'create', 'store an MCP server', {
    arguments: [{ usage: '<name>', member: 'name' }],
    flags,
    complete: (members) => {
      if ((members.url === undefined) === (members.command === undefined))
        throw new Failure(
          'give either --url, for a server over HTTP, or --command, for a program that starts inside the sandbox',
          2,
        );
      return withValues(members, members.url !== undefined);
    },
    orJson: true,
    lines: ({ id }) => id,
    notes: useNote,
  }),
  request('updateMcpServer', 'update', 'change an MCP server', {
    arguments: [server],
    flags: { ...flags, '--name <name>': { member: 'name', help: 'new name' } },
    complete: async (members, { client, params: { serverId = '' } }) => {
      const { url } = await client.getMcpServer({ params: { serverId } });
      return withValues(members, url !== undefined);
    },
    orJson: true,
    lines: ({ id }) => id,
    notes: useNote,
  }),
  request('deleteMcpServer', 'delete', 'delete an MCP server', {
    arguments: [server],
    lines: (_, { serverId }) => `${serverId} is deleted`,
  }),
];
