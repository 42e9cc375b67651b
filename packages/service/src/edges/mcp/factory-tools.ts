/** The tools of `/api/v1/mcp/factory`, with the names that the public service gives them. */
import { getConversation, listFactories, listInbox } from './service-tools.ts';
import { startArguments } from './start-working.ts';
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
    own: {
      factory_task_uid: {
        type: 'string',
        description:
          'Hands this task back instead of sending a new one: the run of the task gets note, branch and pr_url',
      },
      branch: { type: 'string', description: 'Branch with the work that is handed back' },
      pr_url: { type: 'string', description: 'Pull request with the work that is handed back' },
      stage_hint: { type: 'string', description: 'Stage to which the task moves, such as REVIEW' },
    },
    handling: 'hand_back',
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
    name: 'search_task',
    title: 'Search tasks',
    description: 'Finds tasks of all factories by a part of their titles.',
    operation: 'searchFactoryTasks',
    effect: 'reads',
    untrusted: true,
    maxText: 1_000,
  },
  {
    name: 'get_task',
    title: 'Read a task',
    description:
      'Returns stage, current run and outputs of a task, such as its pull requests. The task is named by its UID, or by a run, ticket, pull request or branch. With start_working it suggests the commands to work on the task in your own clone, and can notify the foreman.',
    operation: 'getFactoryTask',
    findsTask: true,
    own: startArguments,
    handling: 'start_working',
    // The message to the foreman.
    effect: 'adds',
    untrusted: true,
    maxText: 20_000,
  },
  {
    name: 'message_foreman',
    title: 'Send a message to the foreman of a task',
    description:
      'Sends a message to the run of a task: progress, questions, blockers, or work that you hand back. The task is named by factory_task_uid, or by the id of its run.',
    operation: 'sendFollowup',
    findsTask: true,
    members: ['message'],
    required: ['message'],
    effect: 'adds',
  },
  getConversation,
  listInbox,
  {
    name: 'complete_task',
    title: 'Complete a task',
    description: 'Sets the stage of a task to COMPLETE. Its run is not changed.',
    operation: 'updateFactoryTask',
    findsTask: true,
    fixed: { stage: 'COMPLETE' },
    effect: 'adds',
  },
];
