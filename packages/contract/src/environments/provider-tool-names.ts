/** Actions that model providers run outside of the sandbox and that an environment can allow, with their meaning. */
const meanings = {
  web_search: 'searches the web',
  web_fetch: 'fetches pages whose address the model chooses',
  code_execution: 'runs code in a container of the provider',
  file_search: 'searches in vector stores of the account',
  image_generation: 'makes images with another model',
  maps: 'asks a map service',
  mcp: 'calls MCP servers that the request names',
  url_content: 'fetches images and files whose address the request contains',
  stored_content:
    'reads and writes data that the provider stores for the account: files, earlier answers, conversations, prompts, caches',
} as const;

export type ProviderTool = keyof typeof meanings;
export const providerTools = Object.keys(meanings) as readonly ProviderTool[];

/** Returns the meaning of a tool as the end of a sentence that begins with "it". */
export const meaningOf = (tool: ProviderTool): string => meanings[tool];
