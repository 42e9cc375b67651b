/** Test support: the official MCP client, connected to a service of the tests. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

export interface TestMcp {
  readonly client: Client;
  /** Calls a tool. Returns the content of its answer, and the texts in it. */
  call(
    tool: string,
    given?: Record<string, unknown>,
  ): Promise<{ isError: boolean; texts: string[]; content: unknown[] }>;
  /** Calls a tool, and parses the last text of its answer as JSON. Throws if the tool reports an error. */
  json<T = Record<string, unknown>>(tool: string, given?: Record<string, unknown>): Promise<T>;
}

/** Connects with a key. `newest`: true connects with the protocol revision 2026-07-28, false with the handshake of revision 2025-11-25. */
export async function connectMcp(url: string, key: string, newest = false): Promise<TestMcp> {
  const client = new Client({ name: 'test', version: '1' }, newest ? { versionNegotiation: { mode: 'auto' } } : {});
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${key}` } } }),
  );
  const call = async (tool: string, given: Record<string, unknown> = {}) => {
    const { content, isError = false } = await client.callTool({ name: tool, arguments: given });
    const texts = content.flatMap((each) => (each.type === 'text' ? [each.text] : []));
    return { isError, texts, content };
  };
  return {
    client,
    call,
    json: async <T>(tool: string, given?: Record<string, unknown>) => {
      const { isError, texts } = await call(tool, given);
      if (isError) throw new Error(texts.join('\n'));
      return JSON.parse(texts.at(-1) ?? '') as T;
    },
  };
}
