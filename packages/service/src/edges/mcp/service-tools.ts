/** The tools of `/mcp`. */
import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { Tool } from './tool.ts';

/** Members of a configuration that a model needs most. The schema of all members has many thousand characters. */
const configMembers = [
  'name',
  'model_id',
  'base_prompt',
  'environment_id',
  'skill_spec',
  'harness',
  'output_schema',
  'max_cost_usd',
  'max_duration_minutes',
];

/**
 * Filters that the tool `list_runs` accepts. Filters by error code and by id are omitted, because their schemas make each request to a
 * model larger.
 */
const filtersOfList = Object.keys(ListRunsQuery.shape).filter(
  (name) => !['view', 'error_code', 'run_id'].includes(name),
);

/** Maximum seconds of a wait, because clients cancel a call after 60 seconds. */
export const maxWaitSeconds = 50;

/** Bounds of the argument `max_characters`. */
export const conversationCharacters = { least: 1_000, usual: 40_000, most: 200_000 } as const;

export const getConversation: Tool = {
  name: 'get_conversation',
  title: 'Read the conversation of a run',
  description:
    'Returns the messages and tool calls of a run, the newest that fit. The last message of the role assistant is the result of the run.',
  operation: 'getRunConversation',
  own: {
    max_characters: {
      type: 'integer',
      minimum: conversationCharacters.least,
      maximum: conversationCharacters.most,
      default: conversationCharacters.usual,
      description: 'Maximum number of characters of the answer. Older messages are left out, and counted',
    },
  },
  effect: 'reads',
  untrusted: true,
  maxText: 8_000,
  handling: 'newest_messages',
};

export const listFactories: Tool = {
  name: 'list_factories',
  title: 'List factories',
  description: 'Lists the factories of the team with their UIDs. Automations and webhooks belong to factories.',
  operation: 'listFactories',
  effect: 'reads',
  maxText: 2_000,
};

export const listInbox: Tool = {
  name: 'list_inbox',
  title: 'List the inbox',
  description:
    'Lists notifications that need your user: questions and permission requests of runs, plans and pull requests to review, failed runs and revisions to accept. With an agent key, use the scope team.',
  operation: 'listNotifications',
  members: ['scope', 'factory_uid', 'kind', 'limit', 'cursor'],
  effect: 'reads',
  untrusted: true,
  maxText: 400,
};

export const serviceTools: readonly Tool[] = [
  {
    name: 'start_run',
    title: 'Start a run',
    description:
      'Gives a task to a cloud agent and returns the id of the run at once. The agent works in a sandbox of its own: name repositories through an environment (list_environments), and say all that it must know in the prompt. Then call wait_for_run.',
    operation: 'createRun',
    members: [
      'prompt',
      'title',
      'config',
      'skill',
      'mode',
      'conversation_id',
      'agent_identity_uid',
      'parent_run_id',
      'metadata',
    ],
    configMembers,
    effect: 'adds',
  },
  {
    name: 'get_run',
    title: 'Read a run',
    description:
      'Returns state, configuration, artifacts and, if it is BLOCKED, what the run asks (`blocked_on`). Use wait_for_run to wait.',
    operation: 'getRun',
    effect: 'reads',
    untrusted: true,
    maxText: 20_000,
  },
  {
    name: 'wait_for_run',
    title: 'Wait for a run',
    description: `Waits until the run has ended or is BLOCKED, at most ${maxWaitSeconds} seconds, and returns the run. If \`state\` is QUEUED, PENDING, CLAIMED or INPROGRESS, the run is not finished yet: call again.`,
    operation: 'getRun',
    own: {
      timeout_seconds: {
        type: 'integer',
        minimum: 0,
        maximum: maxWaitSeconds,
        default: maxWaitSeconds,
        description: 'Maximum seconds to wait',
      },
    },
    effect: 'reads',
    untrusted: true,
    maxText: 20_000,
    handling: 'wait',
  },
  {
    name: 'list_runs',
    title: 'List runs',
    description:
      'Lists the runs of the team, the last changed first. Long prompts are shortened; get_run returns a longer part.',
    operation: 'listRuns',
    members: filtersOfList,
    effect: 'reads',
    untrusted: true,
    maxText: 400,
  },
  {
    name: 'send_followup',
    title: 'Send a message to a run',
    description:
      'Gives a run another message: the next turn of a run at work, or the continuation of a run that has ended. Use answer_request if the run is BLOCKED.',
    operation: 'sendFollowup',
    members: ['message', 'mode'],
    required: ['message'],
    effect: 'adds',
  },
  {
    name: 'answer_request',
    title: 'Answer the question of a run',
    description:
      'Answers the request of a BLOCKED run: `decision` for a permission, `message` for a question. Ask your user first: a permission lets the agent act. An agent key may answer only if the run allows it.',
    operation: 'sendFollowup',
    members: ['request_id', 'decision', 'allow_for', 'message'],
    required: ['request_id'],
    effect: 'adds',
  },
  {
    name: 'cancel_run',
    title: 'Cancel a run',
    description: 'Ends a run and all runs that it started.',
    operation: 'cancelRun',
    effect: 'ends',
  },
  {
    name: 'rerun',
    title: 'Start a run again',
    description:
      'Starts a new run with prompt, configuration and attachments of another. Each argument replaces a member.',
    operation: 'rerunRun',
    members: ['prompt', 'title', 'config', 'metadata'],
    configMembers,
    effect: 'adds',
  },
  getConversation,
  {
    name: 'get_artifact',
    title: 'Read an artifact',
    description:
      'Returns a plan, file or screenshot of a run: with its content if that is a short text or a small picture, else with a signed URL. The UIDs are in `artifacts` of the run.',
    operation: 'getArtifact',
    effect: 'reads',
    untrusted: true,
    maxText: 100_000,
    handling: 'read_file',
  },
  {
    name: 'list_environments',
    title: 'List environments',
    description:
      'Lists the environments: which repositories a sandbox has, and how it is prepared. `config.environment_id` of start_run names one.',
    operation: 'listEnvironments',
    effect: 'reads',
    maxText: 2_000,
  },
  {
    name: 'list_agents',
    title: 'List agents',
    description: 'Lists the agents (skills) of the repositories. `skill` of start_run names one.',
    operation: 'listAgents',
    effect: 'reads',
    untrusted: true,
    maxText: 2_000,
  },
  {
    name: 'list_automations',
    title: 'List automations',
    description: 'Lists the automations of a factory: which events start which runs.',
    operation: 'listAutomations',
    effect: 'reads',
    maxText: 2_000,
  },
  listFactories,
  listInbox,
];
