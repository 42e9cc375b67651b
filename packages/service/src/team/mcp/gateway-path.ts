/** Path below which agents reach MCP servers over HTTP. */
export const mcpGatewayPath = '/api/v1/gateway/mcp';

/** Returns the path of a server of the run, below the server root. */
export const gatewayPathOfServer = (name: string): string => `${mcpGatewayPath}/${encodeURIComponent(name)}`;
