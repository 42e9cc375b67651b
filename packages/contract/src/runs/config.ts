import { z } from 'zod';
import { maxApprovers, maxModelFallbacks, maxSkillsOfRun } from '../limits.ts';
import { SecretReferences } from '../secrets/secrets.ts';
import { followupAuthors, workerLossPolicies } from '../wire/choices.ts';
import { NonBlank, Text, Uid22 } from '../wire/primitives.ts';
import { asksForSomething, isWithoutEffect, withoutEffect } from '../wire/without-effect.ts';
import { ApprovalRules } from './approval-rules.ts';
import { ApprovalPolicy } from './approvals.ts';
import { CheckAttempts, RunChecks } from './checks.ts';
import { publishedMembers } from './published-config.ts';
import { OutputSchema } from './results.ts';
import { RunRetry } from './retry.ts';
import { RunnerConfig } from './runner.ts';
import { SandboxVariables } from './sandbox-variables.ts';

/** An MCP server of a run: exactly one of `command`, `url`, `warp_id` (alias `id`). */
export const MCPServerConfig = z
  .looseObject({
    command: NonBlank.optional().describe('Program to start inside the sandbox; it speaks MCP on its standard streams'),
    args: z.array(Text).max(1_000).optional().describe('Arguments of `command`'),
    env: z.record(Text, Text).optional().describe(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the form of a name in a configuration
      'Environment variables of `command`. `${NAME}` stands for the secret NAME, which only this server gets',
    ),
    url: NonBlank.optional().describe(
      'Address of an MCP server that is reached over HTTP (Streamable HTTP). Only the service connects to this URL; a sandbox sends its requests to the service',
    ),
    headers: z.record(Text, Text).optional().describe(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the form of a name in a configuration
      'Headers of the requests to `url`, which the service adds. `${NAME}` stands for the secret NAME, which never reaches the sandbox. The texts are in answers about the run, so other secrets belong into a stored server',
    ),
    warp_id: NonBlank.optional().describe('Stored MCP server of the team, as in `GET /agent/mcp-servers`'),
    id: NonBlank.optional().describe('Alias of `warp_id`'),
  })
  .refine((server) => [server.command, server.url, server.warp_id ?? server.id].filter(Boolean).length === 1, {
    error: 'needs exactly one of command, url and warp_id',
  })
  .meta({
    id: 'MCPServerConfig',
    description: 'An MCP server of a run: exactly one of `command`, `url` and `warp_id`',
    allOf: [
      {
        oneOf: [
          { required: ['command'] },
          { required: ['url'] },
          { anyOf: [{ required: ['warp_id'] }, { required: ['id'] }] },
        ],
      },
    ],
  });
export type MCPServerConfig = z.infer<typeof MCPServerConfig>;

/**
 * The name of a skill in requests. The pattern is only for readers of the OpenAPI document: the service itself explains what is wrong with
 * a name.
 */
export const SkillSpec = NonBlank.meta({
  maxLength: 500,
  pattern: '^([^:/]+/)?[^:/]+:([a-z0-9]+(-[a-z0-9]+)*|([^/]+/)*SKILL\\.md)$',
});

/** The harness of a run. The public service does not have the members `command` and `env`. */
export const HarnessConfig = z
  .looseObject({
    type: NonBlank.optional().meta({
      description:
        'oz (alias builtin); claude, codex, gemini, opencode or qwen: a program that the worker has installed; acp: any agent of the Agent Client Protocol; command: any program that reads the prompt from standard input',
    }),
    model_id: Text.optional().describe('Model of the harness; absent: `config.model_id`'),
    reasoning_level: Text.optional().describe('How much the model thinks, in words of its provider'),
    command: z
      .array(Text)
      .min(1)
      .max(64)
      .optional()
      .describe(
        'Program of the harnesses `acp` and `command`, with its arguments, started inside the sandbox. With the other programs: the command to start instead of the one that the worker has installed',
      ),
    env: SandboxVariables.optional().describe(
      'Environment variables of the harness, at most 100, each at most 32,768 characters. They are in answers about the run: no secrets',
    ),
  })
  .meta({ id: 'HarnessConfig', description: 'Program that works on the prompt' });
export type HarnessConfig = z.infer<typeof HarnessConfig>;

/** Members of a child run's configuration that its parent may set only if the configuration of the parent permits this. */
export const ChildOverride = z
  .enum(['worker_host', 'environment_id', 'child_runs'])
  .meta({ id: 'ChildOverride', description: 'Member of the configuration that a child run may set itself' });
export type ChildOverride = z.infer<typeof ChildOverride>;

/**
 * Defines whether the agent may start child runs, how many child runs may be live, and which members of a child run's configuration the
 * agent may set.
 */
export const ChildRunsConfig = z
  .looseObject({
    enabled: z.boolean().describe('True: the agent may start child runs'),
    max_live: z
      .int()
      .min(1)
      .max(32)
      .optional()
      .describe('How many child runs may be live at once, 1 to 32; default 8. Further ones wait QUEUED'),
    overrides: z.array(ChildOverride).max(3).optional().meta({
      description:
        'Members that a child may set itself, default none. Without them worker_host and environment_id are inherited; with child_runs a child may start runs too',
    }),
  })
  .meta({
    id: 'ChildRunsConfig',
    description: 'Absent: enabled if the mode is `orchestrate`. max_live: default 8',
  });
export type ChildRunsConfig = z.infer<typeof ChildRunsConfig>;

const MaxCost = z.number().positive({ error: 'must be more than 0' }).max(1_000_000);
const MaxTurns = z.int().min(1).max(1_000_000);
const MaxDuration = z.number().positive({ error: 'must be more than 0' }).max(100_000);

/** Limits that apply to a run together with all runs below it. */
export interface RunBudget {
  readonly max_cost_usd?: number;
  readonly max_turns?: number;
  readonly max_duration_minutes?: number;
}

const StoredBudget = z.object({
  max_cost_usd: MaxCost.optional().catch(undefined),
  max_turns: MaxTurns.optional().catch(undefined),
  max_duration_minutes: MaxDuration.optional().catch(undefined),
});

/**
 * Reads the limits of a stored configuration. An old configuration may lack these members or have other types in them.
 */
export function budgetOf(config: Readonly<Record<string, unknown>>): RunBudget {
  const entries = Object.entries(StoredBudget.parse(config)).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries);
}

/** Decides whether a run ends or continues if its machine is lost in the middle of a turn. */
export const WorkerLossPolicy = z
  .enum(workerLossPolicies, { error: 'must be fail (the run ends in ERROR, the default) or resume' })
  .meta({
    id: 'WorkerLossPolicy',
    description:
      '`fail`: the run ends in ERROR. `resume`: it continues in a new sandbox, from the last checkpoint of workspace and conversation, or from the beginning of the turn if there is none. What the agent did elsewhere since then may be done twice',
  });

export type WorkerLossPolicy = z.infer<typeof WorkerLossPolicy>;

/** The authors from whom a run accepts follow-ups, approvals and answers. */
export const FollowupsFrom = z.enum(followupAuthors, { error: 'must be same_rights (the default) or team' }).meta({
  id: 'FollowupsFrom',
  description:
    '`same_rights`: a run whose sandbox holds secrets takes follow-ups, approvals and answers only of its executor and of others who may use all of these secrets. `team`: of everybody in the team who may send follow-ups; they work with the secrets of the run. A child run has what its parent has',
});

/** The people who may open the session of a run with its link. */
export const SessionAccess = z
  .enum(['VIEWER', 'EDITOR'])
  .meta({ id: 'SessionAccess', description: 'What people with the link may do with a session' });

/** How the session of a run is shared. */
export const SessionSharing = z
  .looseObject({
    public_access: SessionAccess.optional(),
  })
  .meta({
    id: 'SessionSharing',
    description: 'How the session of a run is shared; kept and returned, without effect on this service',
  });

/** Configuration of a run in answers. Unknown members are stored and returned. */
export const AmbientAgentConfig = z
  .looseObject({
    name: Text.optional().describe('Name by which runs are grouped and filtered, such as the name of an automation'),
    model_id: Text.optional().describe(
      'Model, as in `GET /agent/models`; `runbook` runs the shell blocks of the prompt without a language model. Absent: the default model',
    ),
    model_fallbacks: z
      .array(NonBlank.max(300))
      .max(maxModelFallbacks)
      .optional()
      .describe(
        'Models to use, in this order, while the provider of the model has an outage. Empty: none. Absent: the fallbacks of the team',
      ),
    base_prompt: Text.optional().describe("Instructions that shape the agent's behaviour, in front of every prompt"),
    environment_id: Uid22.optional().describe(
      'Environment that the sandbox is set up with, 22 characters; absent: an empty workspace',
    ),
    runner_config: RunnerConfig.optional(),
    refresh_environment: z
      .boolean()
      .optional()
      .describe(
        'True: the environment is set up from the beginning, also if an earlier run left its prepared workspace, and the result replaces it',
      ),
    skill_spec: SkillSpec.optional().describe(
      'Skill to follow: owner/repo:skill-name or owner/repo:path/to/SKILL.md; the owner may be left out of a repository of the environment',
    ),
    skills: z
      .array(SkillSpec)
      .max(100)
      .optional()
      .meta({
        description: `Skills of the run, at most ${maxSkillsOfRun}, each in the form of skill_spec. The agent follows the first and may use the others. In answers, skill_spec repeats the first one`,
      }),
    mcp_servers: z.record(Text, MCPServerConfig).optional().describe('MCP servers that the agent may use, by name'),
    ...publishedMembers,
    idle_timeout_minutes: z.number().min(0).max(60).optional().meta({
      description: 'How long the sandbox waits for a follow-up after a turn, default 10; 0: it ends at once',
    }),
    approval_policy: ApprovalPolicy.optional(),
    approval_rules: ApprovalRules.optional().describe(
      'With the policies ask and auto-deny: only actions that match one of these rules are asked about or denied, and all others are allowed. Absent: all commands and changes of files',
    ),
    approvals_from: z
      .array(Text.min(1).max(200))
      .max(maxApprovers)
      .optional()
      .meta({
        description: `UIDs of agent identities, or of agent keys that act as none, whose keys may answer the requests of the run, at most ${maxApprovers}. Absent: only people and the runs above answer them. A child run has no others than its parent`,
      }),
    followups_from: FollowupsFrom.optional(),
    on_worker_loss: WorkerLossPolicy.optional().meta({
      description:
        'The reaction if the machine of the run is lost in the middle of a turn: fail (default) or resume. A child run without a policy has the policy of its parent',
    }),
    max_cost_usd: MaxCost.optional().describe(
      'US dollars that the run and all runs below it may spend on models; absent: no limit. 400 if the price of the model is unknown',
    ),
    max_turns: MaxTurns.optional().describe(
      'Model answers that the run and all runs below it may use; absent: no limit. A run without a language model uses none',
    ),
    max_duration_minutes: MaxDuration.optional().describe(
      "Minutes that the run may work in all its executions together, without waits for follow-ups; absent: the team's limit. A child run gets at most the remaining minutes of its parent",
    ),
    output_schema: OutputSchema.optional(),
    checks: RunChecks.optional(),
    check_attempts: CheckAttempts.optional(),
    retry: RunRetry.optional(),
    worker_host: Text.optional().describe(
      'Self-hosted worker that shall execute the run, by its name; absent: any worker of the service',
    ),
    harness: HarnessConfig.optional(),
    child_runs: ChildRunsConfig.optional(),
    session_sharing: withoutEffect(SessionSharing.optional()),
    secrets: SecretReferences.optional().describe(
      'Names of the secrets that the sandbox gets; personal secrets of the creator have priority over secrets of the team',
    ),
  })
  .meta({ id: 'AmbientAgentConfig', description: 'How a run is executed. Unknown members are stored and returned' });
export type AmbientAgentConfig = z.infer<typeof AmbientAgentConfig>;

/** Returns the paths of the members of a configuration that have no effect on this service, at most 20. */
export function membersWithoutEffect(config: AmbientAgentConfig): string[] {
  const { shape } = AmbientAgentConfig;
  return Object.entries(config)
    .filter(([name, value]) => {
      const schema = Object.hasOwn(shape, name) ? shape[name as keyof typeof shape] : undefined;
      return (schema === undefined || isWithoutEffect(schema)) && asksForSomething(value);
    })
    .map(([name]) => `config.${name.slice(0, 100)}`)
    .slice(0, 20);
}

/** Configuration of a run in requests. */
export const RequestedAgentConfig = AmbientAgentConfig.refine(
  (config) => config.skill_spec === undefined || config.skills === undefined,
  { error: 'skill_spec and skills exclude each other', path: ['skills'] },
).meta({
  id: 'RequestedAgentConfig',
  description: 'skill_spec and skills exclude each other',
  not: { required: ['skill_spec', 'skills'] },
});
