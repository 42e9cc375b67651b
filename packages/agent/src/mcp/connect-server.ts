import { createHash } from 'node:crypto';
import { Client, type Transport } from '@modelcontextprotocol/client';
import { firstPart, shorten } from '@runyard/contract/wire/shorten';
import { z } from 'zod';
import { isOdd } from './repair-tools.ts';
import { silence } from './silence.ts';
import { type McpResult, toolResult } from './tool-result.ts';
import { providerSchema } from './tool-schema.ts';

/** OpenAI, Anthropic and Google accept tool names of up to 64 characters of [A-Za-z0-9_-]. */
const maxNameLength = 64;
const maxServerLength = 24;

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);

/**
 * Returns the server's part of a tool name. This part is unique among the servers of a run and has no `__`, so no tool can get the
 * name of another server's tool. The servers cannot influence this part: the person who creates the run chooses the server names, and
 * a server chooses only the names of its tools.
 */
function serverPart(server: string): string {
  const plain = server.replaceAll(/[^A-Za-z0-9-]+/g, '_').replaceAll(/^_+|_+$/g, '');
  if (plain === server && plain.length <= maxServerLength) return plain;
  return `${plain.slice(0, maxServerLength - 9)}-${hashOf(server)}`;
}

/** Returns the name that a tool has for the model: `mcp__server__tool`. No built-in tool has a name of this form. */
export function toolName(server: string, tool: string): string {
  const plain = tool.replaceAll(/[^A-Za-z0-9_-]/g, '_');
  const name = `mcp__${serverPart(server)}__${plain}`;
  if (plain === tool && plain !== '' && name.length <= maxNameLength) return name;
  return `${name.slice(0, maxNameLength - 9)}_${hashOf(tool)}`;
}

/** A tool of an MCP server. */
export interface McpTool {
  /** Name that the tool has for the model. */
  readonly name: string;
  readonly server: string;
  /** Name that the tool has at its server. */
  readonly tool: string;
  readonly description: string;
  /** JSON schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** True: the server marks the tool as read-only (`readOnlyHint`). */
  readonly onlyReads: boolean;
  /** Calls the tool. If the server fails, resolves with a failed result. Rejects only if `signal` aborts. */
  call(input: unknown, signal: AbortSignal): Promise<McpResult>;
}

/** Tools that the model does not get: they have no usable name, or the server has too many tools or too large schemas. */
export interface LeftOutTools {
  readonly tools: number;
  /** Names of the first of these tools, as far as the server has sent their names. */
  readonly names: readonly string[];
}

export interface ConnectedServer {
  readonly tools: readonly McpTool[];
  /** True: strict clients or model providers refuse the list of tools as the server sends it. */
  readonly isOdd: boolean;
  readonly leftOut: LeftOutTools;
  close(): Promise<void>;
}

/** Limits for the tools of one server. The tools need limits because each request to the model contains them. */
const maxTools = 64;
const maxPages = 20;
const maxDescriptionLength = 2_000;
const maxSchemaLength = 16 * 1024;
/** Maximum number of characters of all schemas of a server together. */
const maxSchemas = 128 * 1024;

/** Maximum number of names in `LeftOutTools`. */
const maxNames = 20;

/**
 * The parts of a list of tools that the agent reads. The schemas of the SDK refuse the whole list if one tool has, for example, an input
 * schema without a type.
 */
const ToolList = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });
const ListedTool = z.object({
  name: z.string().min(1),
  description: z.string().optional().catch(undefined),
  inputSchema: z.unknown().optional(),
  annotations: z.object({ readOnlyHint: z.boolean().optional() }).optional().catch(undefined),
});
const CallResult = z.object({
  content: z.array(z.unknown()).optional(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional().catch(undefined),
});

/** Timeout of a tool call. A call may take long, but must end. */
const callTimeoutMs = 600_000;

/** The schemas of a server are never compiled, because their patterns could run forever. The server checks its own input. */
const noValidator = { getValidator: () => (input: unknown) => ({ valid: true, data: input, errorMessage: undefined }) };

/** Returns the message of an error. If the error has an HTTP status, the message begins with the status. */
function textOf(error: unknown): string {
  const { status } = ((error as { data?: unknown }).data ?? {}) as { status?: unknown };
  const message = error instanceof Error ? error.message : String(error);
  return typeof status === 'number' ? `HTTP status ${status}: ${message}` : message;
}

/** Connects to a server and lists its tools. Rejects if connecting or listing fails or takes longer than `timeoutMs`. */
export async function connectServer(
  server: string,
  transport: Transport & { readonly ended?: string | undefined },
  { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<ConnectedServer> {
  const client = new Client(
    { name: 'runyard', version: '1' },
    { capabilities: {}, jsonSchemaValidator: noValidator as never },
  );
  const deadline = AbortSignal.timeout(timeoutMs);
  const options = { signal: AbortSignal.any([signal, deadline]), timeout: timeoutMs };

  async function call(tool: string, input: unknown, over: AbortSignal): Promise<McpResult> {
    const failed = (text: string): McpResult => ({ text, images: [], failed: true });
    if (transport.ended !== undefined)
      return failed(`the MCP server ${server} does not run any more: ${transport.ended}`);
    try {
      const params = { name: tool, arguments: (input ?? {}) as Record<string, unknown> };
      const limits = { signal: over, timeout: callTimeoutMs, resetTimeoutOnProgress: false };
      return toolResult(await client.request({ method: 'tools/call', params }, CallResult, limits));
    } catch (error) {
      over.throwIfAborted();
      const reason = transport.ended ?? textOf(error);
      return failed(`the MCP server ${server} failed: ${firstPart(reason, 2_000)}`);
    }
  }

  try {
    await client.connect(transport, options);
    const found = new Map<string, McpTool>();
    const leftOut = { tools: 0, names: [] as string[] };
    let schemas = 0;
    let hasOdd = false;
    let cursor: string | undefined;

    function add(listed: unknown): void {
      const { success, data } = ListedTool.safeParse(listed);
      const name = success ? toolName(server, data.name) : '';
      const size = success ? JSON.stringify(data.inputSchema ?? {}).length : 0;
      const fits = found.size < maxTools && size <= maxSchemaLength && schemas + size <= maxSchemas;
      if (!success || found.has(name) || !fits) {
        leftOut.tools += 1;
        if (success && leftOut.names.length < maxNames) leftOut.names.push(shorten(data.name, 100));
        return;
      }
      schemas += size;
      const { schema, note } = providerSchema(data.inputSchema);
      found.set(name, {
        name,
        server,
        tool: data.name,
        description: [firstPart(data.description ?? '', maxDescriptionLength), note ?? ''].join('\n').trim(),
        inputSchema: schema,
        onlyReads: data.annotations?.readOnlyHint === true,
        call: (input, over) => call(data.name, input, over),
      });
    }

    for (let page = 1; page <= maxPages; page += 1) {
      const params = cursor === undefined ? {} : { cursor };
      const listed = await client.request({ method: 'tools/list', params }, ToolList, options);
      for (const tool of listed.tools) {
        hasOdd ||= isOdd(tool);
        add(tool);
      }
      cursor = listed.nextCursor;
      if (cursor === undefined || found.size >= maxTools) break;
    }
    if (cursor !== undefined) leftOut.tools += 1;
    return { tools: [...found.values()], isOdd: hasOdd, leftOut, close: () => client.close() };
  } catch (error) {
    const { ended } = transport;
    await client.close().catch(() => {});
    signal.throwIfAborted();
    if (deadline.aborted) throw new Error(`${silence} ${timeoutMs / 1000} s`);
    throw new Error(ended ?? textOf(error));
  }
}
