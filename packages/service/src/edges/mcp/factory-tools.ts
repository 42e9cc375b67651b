/** The tools of `/api/v1/mcp/factory`, with the names that the public service gives them. */
import { getConversation, listFactories } from './service-tools.ts';
import type { Tool } from './tool.ts';

export const factoryTools: readonly Tool[] = [
  listFactories,
  {
    name: 'get_factory_file_schema',
    title: 'Read the schemas of factory files',
    description: 'Returns the JSON Schemas of the files that define a factory.',
    operation: 'getFactoryFileSchemas',
    effect: 'reads',
  },
  {
    name: 'list_teams',
    title: 'List teams',
    description: 'Lists the teams of the owner of the key.',
    operation: 'listTeams',
    effect: 'reads',
    maxText: 2_000,
  },
  getConversation,
];
