/**
 * Messages between the agent and the service over HTTP below the path `/api/v1/harness-support/`. The agent sends the run token of its
 * assignment as the bearer key. If the execution of the token has ended or was superseded, the service answers 401, and the agent
 * stops at once.
 */
import { z } from 'zod';
import { EnvironmentConfig } from '../environments/environments.ts';
import { GithubTools } from '../environments/github-tools.ts';
import { AgentRequest, Decision } from '../runs/approvals.ts';
import { AmbientAgentConfig } from '../runs/config.ts';
import { RunMode } from '../runs/message-origin.ts';
import { ArtifactType, RunState } from '../runs/states.ts';
import { SecretForm } from '../secrets/secrets.ts';
import {
  CancelItem,
  ChangesItem,
  FollowUpItem,
  HeldItem,
  InterruptItem,
  LeaveItem,
  TaskAttachment,
} from './agent-inbox.ts';
import { TaskFreshCheck } from './fresh-checks.ts';
import { TaskConversation, TaskPreparedWorkspace, TaskRepository, TaskWorkspace } from './task-workspace.ts';

const ModelProtocol = z
  .enum(['anthropic', 'openai-responses', 'google', 'openai-compatible'])
  .meta({ id: 'ModelProtocol', description: 'Wire protocol of a model provider' });

/** A language model behind the gateway. */
export const AgentModel = z
  .object({
    id: z.string().describe('Id of the model, as in the list of models'),
    protocol: ModelProtocol,
    provider_model: z.string().describe("The provider's own name of the model"),
    gateway_path: z
      .string()
      .describe("Path below the server root: the SDK's base URL is server root + this. The API key is the run token"),
    vision_supported: z.boolean().describe('True: the model takes images'),
  })
  .meta({ id: 'AgentModel', description: 'A language model behind the gateway' });
export type AgentModel = z.infer<typeof AgentModel>;

const TaskDecision = z
  .object({
    request: AgentRequest,
    follow_up_id: z.string().describe('Follow-up that brought the answer'),
    decision: Decision.optional(),
    message: z.string().optional().describe("The person's words"),
  })
  .meta({
    id: 'TaskDecision',
    description:
      "The agent's open request when its sandbox ended, and the answer. Without decision and message, the request is unanswered",
  });

const TaskHarness = z
  .object({
    type: z.string().describe('Kind of the harness'),
    command: z
      .array(z.string())
      .optional()
      .describe('Program to start inside the sandbox; absent for the built-in harness and for the program of a preset'),
    env: z.record(z.string(), z.string()).optional().describe('Environment variables of the harness'),
    model: AgentModel.optional().describe('Model to use; absent: `runbook`'),
    no_model_configured: z
      .literal(true)
      .optional()
      .describe('True: the run is a runbook only because the service has no language model'),
    reasoning_level: z.string().optional().describe("How much the model thinks, in the provider's own words"),
  })
  .meta({ id: 'TaskHarness', description: 'How the prompt is worked on' });

const TaskEnvironment = z
  .object({
    uid: z.string().optional().describe('Id of the environment; absent: the run has a runner but no environment'),
    config: EnvironmentConfig,
  })
  .meta({ id: 'TaskEnvironment', description: 'Content of the sandbox before the agent begins' });

const TaskChildRuns = z
  .object({ max_live: z.int().describe('How many child runs may be live at once') })
  .meta({ id: 'TaskChildRuns', description: 'Present if the agent may start runs' });

const TaskParentRun = z
  .object({ run_id: z.string().describe('Id of the run'), title: z.string().describe('Its title') })
  .meta({ id: 'TaskParentRun', description: 'The run that started this one' });

/** A granted secret. */
const TaskSecret = z
  .object({
    name: z.string().describe('Name of the secret'),
    variable: z.string().describe('Environment variable for it'),
    as: SecretForm,
    value: z.string().describe('The value'),
  })
  .meta({ id: 'TaskSecret', description: 'A secret for the sandbox' });

const TaskMcpServer = z
  .object({
    name: z.string().describe('Name of the server in the configuration of the run'),
    command: z.string().optional().describe('Program to start inside the sandbox; absent: a server over HTTP'),
    args: z.array(z.string()).optional().describe('Arguments of `command`'),
    env: z.record(z.string(), z.string()).optional().describe('Environment variables of `command`'),
    gateway_path: z
      .string()
      .optional()
      .describe(
        "Path of the gateway below the server root, for a server over HTTP. The gateway adds the server's headers",
      ),
  })
  .meta({ id: 'TaskMcpServer', description: 'An MCP server that the agent may use: `command` or `gateway_path`' });
export type TaskMcpServer = z.infer<typeof TaskMcpServer>;

const TaskSkillFile = z
  .object({
    path: z.string().describe('Path in the folder of the skill, with / between its parts'),
    data: z.string().describe('Content in base64'),
    executable: z.literal(true).optional().describe('True: the file may be run'),
  })
  .meta({ id: 'TaskSkillFile', description: 'A file of a skill' });

export const TaskSkill = z
  .object({
    name: z.string().describe('Name of the skill and of its folder'),
    description: z.string().describe('Purpose of the skill, and when to use it'),
    files: z.array(TaskSkillFile).describe('Its files; one is SKILL.md'),
  })
  .meta({ id: 'TaskSkill', description: 'A skill to lay into the home folder of the run' });
export type TaskSkill = z.infer<typeof TaskSkill>;

const TaskLoss = z
  .object({
    message: z.string().describe('How the machine was lost'),
    kept_at: z
      .string()
      .optional()
      .describe('Time of the archive in `workspace`, RFC 3339 in UTC; absent: there is no archive'),
    record: z
      .string()
      .optional()
      .describe('Conversation after that archive, as text; absent: there is none. `conversation` has what was before'),
    done_blocks: z.int().describe('Commands of a runbook whose effects are in the archive'),
  })
  .meta({
    id: 'TaskLoss',
    description: 'Present if the machine of the run was lost in the middle of the turn that this execution resumes',
  });

const TaskAuthor = z
  .object({ name: z.string().describe('Name'), email: z.string().describe('Address') })
  .meta({ id: 'TaskAuthor', description: 'The executor of the run, as the author of its commits' });
export type TaskAuthor = z.infer<typeof TaskAuthor>;

/** `POST /harness-support/resolve-prompt` `{}` → the task of the agent. */
export const AgentTask = z
  .object({
    run_id: z.string().describe('Id of the run'),
    execution_id: z.string().describe('Id of the execution'),
    execution_number: z.int().describe('Number of the execution in its run: 1, 2, …'),
    conversation_id: z.string().describe('Id of the conversation'),
    title: z.string().describe('Title of the run'),
    prompt: z
      .string()
      .describe(
        "Prompt of the first turn: the run's prompt and follow-ups that came before it, or only follow-ups if `conversation` is continued",
      ),
    mode: RunMode.optional().describe('Mode of the first turn; absent: `normal`'),
    conversation: TaskConversation.optional(),
    workspace: TaskWorkspace.optional(),
    max_workspace_bytes: z
      .int()
      .optional()
      .describe('Maximum size of the stored archive of the workspace; absent or 0: no archive is stored'),
    max_output_file_bytes: z
      .int()
      .optional()
      .describe('Maximum size of the file with the whole output of a command; absent or 0: no such files are kept'),
    checkpoint_seconds: z
      .int()
      .optional()
      .describe('Time between two checkpoints of the workspace in the middle of a turn; absent: none are taken'),
    loss: TaskLoss.optional(),
    ended_as: RunState.optional().describe(
      'State in which the run ended before it was continued; absent: it had not ended',
    ),
    decision: TaskDecision.optional(),
    allowed: z
      .array(AgentRequest)
      .optional()
      .describe('Requests that were approved for the rest of the run; absent: none'),
    agent_config: AmbientAgentConfig.describe('Configuration of the run without its `mcp_servers`'),
    mcp_servers: z.array(TaskMcpServer).optional().describe('MCP servers of the run; absent: none'),
    skills: z
      .array(TaskSkill)
      .optional()
      .describe('Skills of the run. The text of the first is in the base prompt already; absent: none'),
    attachments: z.array(TaskAttachment).describe("All files that came with this run's prompts so far"),
    harness: TaskHarness,
    environment: TaskEnvironment.optional(),
    author: TaskAuthor.optional().describe(
      'Author of commits for which git has no other author; absent: git has no default author',
    ),
    child_runs: TaskChildRuns.optional(),
    parent_run: TaskParentRun.optional(),
    fresh_check: TaskFreshCheck.optional(),
    github_tools: GithubTools.optional().describe(
      'How often the run may use each tool that writes on GitHub; absent: `environment.config.github_tools` says it',
    ),
    repositories: z.array(TaskRepository).describe('Repositories to clone'),
    secrets: z.array(TaskSecret).readonly().optional().describe('Secrets that the run was granted'),
    setup_secrets: z
      .array(TaskSecret)
      .readonly()
      .optional()
      .describe('Secrets that only the setup commands get; absent: there are none'),
    redact: z
      .array(z.string())
      .readonly()
      .optional()
      .describe(
        'Values that the agent removes from its reports: the values of `secrets` and `setup_secrets`, and earlier values of the run',
      ),
    prepared_workspace: TaskPreparedWorkspace.optional(),
    not_prepared: z
      .string()
      .optional()
      .describe('Why the worker keeps no prepared workspace of this run, although the run has a setup'),
  })
  .meta({ id: 'AgentTask', description: 'Task of the agent, with everything that it needs to begin' });
export type AgentTask = z.infer<typeof AgentTask>;

/** An item in the inbox of the agent. */
const InboxItem = z
  .discriminatedUnion('type', [CancelItem, LeaveItem, InterruptItem, ChangesItem, HeldItem, FollowUpItem])
  .meta({ id: 'InboxItem', description: 'An item that waits for the agent' });
export type InboxItem = z.infer<typeof InboxItem>;

/**
 * `GET /harness-support/inbox?wait_ms=25000&after=POSITION&interrupted=TURN`: answers at once if the inbox has new items, and
 * otherwise after `wait_ms`. `after` and `interrupted` name the items that the agent already has. Each request renews the lease.
 */
export const AgentInbox = z
  .object({ items: z.array(InboxItem).describe('Items that the agent does not have yet') })
  .meta({ id: 'AgentInbox', description: 'Items that wait for the agent' });
export type AgentInbox = z.infer<typeof AgentInbox>;

/**
 * `POST /harness-support/report-shutdown` → `{}`: the last call of the agent before it exits. With `exited`, the program that started
 * the agent makes the call, after the agent has exited. The report ends the execution if its worker does not report the ends of
 * sandboxes.
 */
export const ReportShutdown = z
  .object({
    reason: z.string().describe('Why the agent exits'),
    exited: z
      .boolean()
      .optional()
      .describe(
        "True: the agent's process has ended, and the program that started it reports that. It ends the execution of a run whose worker is not Runyard's own; a run in the middle of its work becomes ERROR",
      ),
  })
  .meta({ id: 'ReportShutdown', description: "The agent's last call before it exits, or the report of its exit" });

/**
 * `POST /harness-support/report-artifact` → `{artifact_uid, upload_url?}`; the agent sends the bytes of a file with PUT to `upload_url`.
 * The artifact exists only after this PUT.
 */
export const ReportArtifact = z
  .object({
    artifact_type: ArtifactType,
    data: z
      .record(z.string(), z.unknown())
      .describe('Members of the artifact of this type, as in `ArtifactItem`; a PLAN has `content`'),
  })
  .meta({ id: 'ReportArtifact', description: 'An artifact that the agent made' });
export const ReportArtifactResponse = z
  .object({
    artifact_uid: z.string().describe('UID of the artifact'),
    upload_url: z
      .string()
      .optional()
      .meta({ description: 'Signed, for one PUT of the bytes (FILE, SCREENSHOT) within six hours' }),
  })
  .meta({ id: 'ReportArtifactResponse', description: 'The artifact, and where its bytes go' });
