/** Examples of the operations on stored MCP servers. */
import { type Example, exampleIds, exampleTimes } from '../wire/example.ts';

const server = {
  id: exampleIds.SERVER_ID,
  name: 'Tickets',
  url: 'https://example.com/mcp',
  header_names: ['authorization'],
  created_at: exampleTimes.created,
  updated_at: exampleTimes.created,
};

export const mcpServerExamples = {
  listMcpServers: { answer: { mcp_servers: [server] } },
  createMcpServer: {
    body: {
      name: 'Tickets',
      url: 'https://example.com/mcp',
      headers: { authorization: 'Bearer secret-of-the-server' },
    },
    answer: server,
  },
  getMcpServer: { answer: server },
  updateMcpServer: { body: { name: 'Issues' }, answer: { ...server, name: 'Issues' } },
  deleteMcpServer: { answer: { success: true } },
} as const satisfies Record<string, Example>;
