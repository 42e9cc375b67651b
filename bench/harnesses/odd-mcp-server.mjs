/** An MCP server on stdio with one usual tool. Model providers or clients refuse the input schemas of its other tools. */
import { createInterface } from 'node:readline';

const text = { type: 'string' };
const branch = (name) => ({ type: 'object', properties: { [name]: text }, required: [name] });
const tools = [
  { name: 'untyped', description: 'Has a schema without a type.', inputSchema: {} },
  {
    name: 'create-attachment',
    description: 'Has alternatives at the top of its schema.',
    inputSchema: { type: 'object', anyOf: [branch('content'), branch('source_url')] },
  },
  { name: 'echo', description: 'Repeats the message.', inputSchema: branch('message') },
  {
    name: 'label',
    description: 'Has an array without items.',
    inputSchema: { type: 'object', properties: { labels: { type: 'array' } } },
  },
];

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answers = {
    initialize: () => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'odd', version: '1' },
    }),
    'tools/list': () => ({ tools }),
    'tools/call': () => ({ content: [{ type: 'text', text: `Echo: ${params.arguments?.message}` }] }),
  };
  const result = answers[method]?.();
  const answer = result === undefined ? { error: { code: -32_601, message: 'unknown' } } : { result };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
});
