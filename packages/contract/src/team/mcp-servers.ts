import { z } from 'zod';
import { WaitingAfterChange } from '../runs/acceptances.ts';
import { NonBlank, Text, Timestamp, Uuid, webAddressPattern } from '../wire/primitives.ts';

/** The name of a header is a token (RFC 9110, 5.1). */
const HeaderName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, { error: 'must be the name of an HTTP header' });
/** The value of a header has no line breaks or other control characters (RFC 9110, 5.5). */
const HeaderValue = z
  .string()
  .max(8_192)
  .regex(/^[\t\x20-\x7e\x80-\xff]*$/, { error: 'must be the value of an HTTP header' });
/** The name of an environment variable (IEEE Std 1003.1, 8.1). */
const VariableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,199}$/, { error: 'must be the name of an environment variable' });

const maxPairs = 50;
const fewPairs = <T extends Record<string, string>>(pairs: T) => Object.keys(pairs).length <= maxPairs;
const manyPairs = { error: `takes at most ${maxPairs} pairs` };

/** Headers for an MCP server over HTTP. Only the service sends these headers, so no sandbox gets them. */
export const McpHeaders = z
  .record(HeaderName, HeaderValue)
  .refine(fewPairs, manyPairs)
  .meta({ maxProperties: maxPairs });
/** Maximum number of characters of the value of a variable for an MCP server. */
export const maxMcpVariableLength = 32_768;
const McpVariables = z
  .record(VariableName, Text.max(maxMcpVariableLength))
  .refine(fewPairs, manyPairs)
  .meta({ maxProperties: maxPairs });

const name = NonBlank.max(100).describe('Name for people, at most 100 characters');
const command = NonBlank.max(4_096).describe(
  'Program that is started inside the sandbox; it speaks MCP on its standard streams',
);
const args = z
  .array(Text.max(8_192))
  .max(100)
  .describe('Arguments of `command`; they are visible, so they must not contain secrets');
const env = McpVariables.describe('Environment variables of `command`. They are sealed and never shown');
const url = Text.max(2_000).regex(new RegExp(webAddressPattern), { error: 'must be an https:// URL' }).meta({
  description:
    'Address of a server that speaks Streamable HTTP: https, or an address in RUNYARD_ALLOW_PRIVATE_NETWORKS. Only the service connects to it',
});
const headers = McpHeaders.describe(
  'Headers of the requests to `url`. They are encrypted, never shown, and never reach a sandbox',
);

/** An MCP server that the team has stored. */
export const McpServer = z
  .object({
    id: Uuid.describe('Id of the server; runs name it as `warp_id`'),
    name: z.string().describe('Name for people'),
    command: z.string().optional().describe('Program that is started inside the sandbox'),
    args: z.array(z.string()).optional().describe('Arguments of `command`'),
    env_names: z.array(z.string()).optional().describe('Names of the environment variables of `command`'),
    url: z.string().optional().describe('Address of a server that is reached over HTTP'),
    header_names: z.array(z.string()).optional().describe('Names of the headers that the service adds'),
    waiting: WaitingAfterChange.optional(),
    created_at: Timestamp.describe('When it was created, RFC 3339 in UTC'),
    updated_at: Timestamp.describe('When it last changed, RFC 3339 in UTC'),
  })
  .meta({ id: 'McpServer', description: 'An MCP server of the team, without the values of its variables and headers' });
export type McpServer = z.infer<typeof McpServer>;

/** Body of the request that stores an MCP server. */
export const CreateMcpServerRequest = z
  .object({
    name,
    command: command.optional(),
    args: args.optional(),
    env: env.optional(),
    url: url.optional(),
    headers: headers.optional(),
  })
  .superRefine((server, context) => {
    const fault = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
    if ((server.command === undefined) === (server.url === undefined)) {
      fault('command', 'needs exactly one of command and url');
      return;
    }
    if (server.command === undefined) {
      for (const member of ['args', 'env'] as const)
        if (server[member] !== undefined) fault(member, 'is only for a server with a command; leave this member out');
    } else if (server.headers !== undefined) fault('headers', 'is only for a server with a url; leave this member out');
  })
  .meta({
    id: 'CreateMcpServerRequest',
    description: 'An MCP server to store: exactly one of `command` and `url`',
    allOf: [
      {
        oneOf: [
          { required: ['command'], not: { anyOf: [{ required: ['url'] }, { required: ['headers'] }] } },
          {
            required: ['url'],
            not: { anyOf: [{ required: ['command'] }, { required: ['args'] }, { required: ['env'] }] },
          },
        ],
      },
    ],
  });
export type CreateMcpServerRequest = z.infer<typeof CreateMcpServerRequest>;

/** Body of the request that changes a stored MCP server. */
export const UpdateMcpServerRequest = z
  .object({
    name: name.optional(),
    command: command.optional(),
    args: args.optional(),
    env: env.optional().describe('All variables; absent: they stay unchanged'),
    url: url.optional(),
    headers: headers.optional().describe('All headers; absent: they stay unchanged'),
  })
  .meta({
    id: 'UpdateMcpServerRequest',
    description:
      'Absent members stay unchanged. A new `command` or `url` needs `env` or `headers` too if some are stored, because the stored values were meant for the earlier command or URL',
  });
export type UpdateMcpServerRequest = z.infer<typeof UpdateMcpServerRequest>;

export const ListMcpServersResponse = z
  .object({ mcp_servers: z.array(McpServer).describe('MCP servers of the team, oldest first') })
  .meta({ id: 'ListMcpServersResponse', description: 'MCP servers of the team' });
