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
    name: 'validate_factory_files',
    title: 'Check the files of a factory',
    description:
      'Checks the files that define a factory and returns each fault with its file, line and column. Does not check that environments, models, secrets or webhooks exist in the team, and changes nothing.',
    operation: 'validateFactoryFiles',
    members: ['files'],
    effect: 'reads',
    maxText: 2_000,
  },
  {
    name: 'list_teams',
    title: 'List teams',
    description: 'Lists the teams of the owner of the key.',
    operation: 'listTeams',
    effect: 'reads',
    maxText: 2_000,
  },
  {
    name: 'create_factory',
    title: 'Create a factory',
    description: 'Creates a factory, a group of agents that work on the same repositories.',
    operation: 'createFactory',
    members: ['name', 'description', 'alias', 'repositories'],
    effect: 'adds',
  },
  {
    name: 'send_task',
    title: 'Send a task to a factory',
    description:
      'Gives new work to the foreman of a factory and returns the id of its run. Write into the note the goal, the context, the constraints and the work that is already done; push branches that it names first.',
    operation: 'dispatchFactory',
    members: ['title', 'prompt', 'ticket_ref', 'ticket_url'],
    renamed: { note: 'prompt' },
    effect: 'adds',
  },
  {
    name: 'list_tasks',
    title: 'List the tasks of a factory',
    description: 'Lists tasks with their stages, the newest first. `q` searches their titles.',
    operation: 'listFactoryTasks',
    effect: 'reads',
    untrusted: true,
    maxText: 1_000,
  },
  {
    name: 'get_task',
    title: 'Read a task',
    description: 'Returns stage, current run and outputs of a task, such as its pull requests.',
    operation: 'getFactoryTask',
    effect: 'reads',
    untrusted: true,
    maxText: 20_000,
  },
  {
    name: 'message_foreman',
    title: 'Send a message to the foreman of a task',
    description:
      'Sends a message to the run of a task: progress, questions, blockers, or work that you hand back. `current_run` of get_task has its `run_id`.',
    operation: 'sendFollowup',
    members: ['message'],
    required: ['message'],
    effect: 'adds',
  },
  getConversation,
  {
    name: 'complete_task',
    title: 'Complete a task',
    description: 'Sets the stage of a task to COMPLETE. Its run is not changed.',
    operation: 'updateFactoryTask',
    fixed: { stage: 'COMPLETE' },
    effect: 'adds',
  },
];
