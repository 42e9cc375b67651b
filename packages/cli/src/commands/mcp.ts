/** Commands about the MCP servers that a team has stored for its runs. */
import type { McpServer } from '@runyard/contract/team/mcp-servers';
import type { Command } from 'commander';
import { z } from 'zod';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { Failure } from '../failure.ts';
import { readInput } from '../input-file.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';
import { asJson, collect } from '../options.ts';
import { reportWaiting } from './report-waiting.ts';

type Json = { readonly json?: true };

/** The options that describe an MCP server. */
interface ServerOptions extends Json {
  readonly name?: string;
  readonly url?: string;
  readonly command?: string;
  readonly arg?: string[];
  /**
   * File with a JSON object of headers or variables, or `-` for standard input. The command line never contains the values, because they
   * may be secrets.
   */
  readonly values?: string;
}

/** Lists the servers, without the values of their headers and variables. */
async function listMcpServers(context: Context, options: Json): Promise<void> {
  const found = await connect(context).listMcpServers();
  const now = Date.now();
  const columns: Column<McpServer>[] = [
    { header: 'SERVER', text: ({ id }) => id },
    { header: 'NAME', flexible: true, text: ({ name }) => name },
    { header: 'WHERE', flexible: true, text: whereOf },
    { header: 'VALUES', flexible: true, text: (server) => (server.header_names ?? server.env_names ?? []).join(', ') },
    { header: 'UPDATED', text: ({ updated_at }) => formatAgo(updated_at, now), raw: ({ updated_at }) => updated_at },
  ];
  const none = 'no MCP servers; store one with: bin/runyard mcp create NAME';
  printList(context, { columns, rows: found.mcp_servers, json: found, none }, options);
}

const whereOf = ({ url, command, args = [] }: McpServer): string => url ?? [command, ...args].join(' ');

/** Shows one server as JSON. */
async function getMcpServer(context: Context, serverId: string): Promise<void> {
  context.out(`${harmlessJson(await connect(context).getMcpServer({ params: { serverId } }))}\n`);
}

/** Stores a server. */
export async function createMcpServer(context: Context, name: string, options: ServerOptions): Promise<void> {
  if ((options.url === undefined) === (options.command === undefined))
    throw new Failure(
      'give either --url, for a server over HTTP, or --command, for a program that starts inside the sandbox',
      2,
    );
  const body = { name, ...described(options, options.url !== undefined) };
  show(context, await connect(context).createMcpServer({ body }), options);
}

/** Changes those members of a server that the options name. */
async function updateMcpServer(context: Context, serverId: string, options: ServerOptions): Promise<void> {
  const client = connect(context);
  const { url } = await client.getMcpServer({ params: { serverId } });
  const name = options.name === undefined ? {} : { name: options.name };
  const body = { ...name, ...described(options, url !== undefined) };
  const updated = await client.updateMcpServer({ params: { serverId }, body });
  show(context, updated, options);
  if (!options.json) reportWaiting(context, updated.waiting);
}

/** Deletes a server. */
async function deleteMcpServer(context: Context, serverId: string): Promise<void> {
  await connect(context).deleteMcpServer({ params: { serverId } });
  context.out(`${serverId} is deleted\n`);
}

function show(context: Context, server: McpServer, options: Json): void {
  if (options.json) {
    context.out(`${harmlessJson(server)}\n`);
    return;
  }
  context.out(`${server.id}\n`);
  context.report(`runs use ${harmlessLine(server.name)} with config.mcp_servers {"NAME": {"warp_id": "${server.id}"}}`);
}

function described({ url, command, arg, values }: ServerOptions, isHttp: boolean) {
  return {
    ...(url === undefined ? {} : { url }),
    ...(command === undefined ? {} : { command }),
    ...(arg === undefined ? {} : { args: arg }),
    ...(values === undefined ? {} : { [isHttp ? 'headers' : 'env']: readValues(values) }),
  };
}

const Values = z.record(z.string(), z.string());

/** Reads headers or variables. The text of the file is not part of error messages, because it contains secrets. */
function readValues(file: string): Record<string, string> {
  const text = readInput(file).toString('utf8');
  try {
    return Values.parse(JSON.parse(text));
  } catch {
    throw new Failure(
      '--values: must be a JSON object whose members are strings, such as {"authorization": "Bearer …"}',
    );
  }
}

/** Declares the command `mcp`. */
export function declareMcp(mcp: Command): void {
  const described = (command: Command) =>
    command
      .option('--url <url>', 'address of a server over HTTP, which only the service reaches')
      .option('--command <program>', 'program to start inside the sandbox')
      .option('--arg <text>', 'argument of the program; repeat for more', collect)
      .option('--values <file>', 'JSON object of headers or of variables, which are sealed; - for standard input')
      .option(...asJson);
  mcp
    .command('list', { isDefault: true })
    .description('list the MCP servers of the team, without the values of headers and variables')
    .option(...asJson)
    .action((options) => listMcpServers(processContext(), options));
  mcp
    .command('get')
    .description('show an MCP server as JSON')
    .argument('<server-id>')
    .action((id) => getMcpServer(processContext(), id));
  described(mcp.command('create').description('store an MCP server').argument('<name>')).action(async (name, options) =>
    createMcpServer(processContext(), name, options),
  );
  described(mcp.command('update').description('change an MCP server').argument('<server-id>'))
    .option('--name <name>', 'new name')
    .action((id, options) => updateMcpServer(processContext(), id, options));
  mcp
    .command('delete')
    .description('delete an MCP server')
    .argument('<server-id>')
    .action((id) => deleteMcpServer(processContext(), id));
}
