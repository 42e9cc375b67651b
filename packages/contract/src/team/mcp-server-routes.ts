import { z } from 'zod';
import { maxMcpServers } from '../limits.ts';
import { teamReads } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import { CreateMcpServerRequest, ListMcpServersResponse, McpServer, UpdateMcpServerRequest } from './mcp-servers.ts';

const path = '/agent/mcp-servers';
const server = z.object({ serverId: z.string().meta({ description: 'Id of the MCP server' }) });
const missing = { 404: 'No such MCP server, or it belongs to another team' };

/**
 * Agent keys cannot manage servers. Otherwise an agent could change the address of a server and so get the credentials that the service
 * sends there.
 */
const writes = { user: 'member' } as const;

export const mcpServerRoutes = {
  listMcpServers: {
    method: 'GET',
    path,
    tag: 'mcp_servers',
    summary: 'List MCP servers',
    allow: teamReads,
    answer: { status: 200, description: 'All of the team, oldest first', schema: ListMcpServersResponse },
  },
  createMcpServer: {
    method: 'POST',
    path,
    tag: 'mcp_servers',
    summary: 'Store an MCP server',
    description:
      'Runs use it by its id: `config.mcp_servers: {"NAME": {"warp_id": "ID"}}`. Values of `env` and `headers` are sealed and in no answer.',
    allow: writes,
    body: CreateMcpServerRequest,
    once: 'createMcpServer',
    answer: { status: 201, description: 'Stored', schema: McpServer },
    errors: {
      400: 'A wrong type, or a url that the service may not reach',
      409: `The team has ${maxMcpServers} MCP servers, or the Idempotency-Key was used with another body`,
    },
  },
  getMcpServer: {
    method: 'GET',
    path: `${path}/{serverId}`,
    tag: 'mcp_servers',
    summary: 'Read an MCP server',
    allow: teamReads,
    params: server,
    answer: { status: 200, description: 'The server', schema: McpServer },
    errors: missing,
  },
  updateMcpServer: {
    method: 'PATCH',
    path: `${path}/{serverId}`,
    tag: 'mcp_servers',
    summary: 'Change an MCP server',
    description:
      'Runs that are at work use the new address and headers from their next request on. A command is content: runs that were created before do not execute a new one, and become FAILED `resource_not_found` when a sandbox begins.',
    allow: writes,
    params: server,
    body: UpdateMcpServerRequest,
    answer: { status: 200, description: 'The server as it is now', schema: McpServer },
    errors: { ...missing, 400: 'A wrong type, or a change that would give stored values to another server' },
  },
  deleteMcpServer: {
    method: 'DELETE',
    path: `${path}/{serverId}`,
    tag: 'mcp_servers',
    summary: 'Delete an MCP server',
    description: 'Later runs that name it become FAILED `resource_not_found`.',
    allow: writes,
    params: server,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: missing,
  },
} as const satisfies Record<string, Route>;
