import { z } from 'zod';
import { ApprovalPolicy } from './approvals.ts';
import { NonBlank, Text, Uid22 } from './primitives.ts';

/** An MCP server of a run: exactly one of `command`, `url`, `warp_id` (alias `id`). */
export const MCPServerConfig = z
  .looseObject({
    command: NonBlank.optional(),
    args: z.array(Text).optional(),
    env: z.record(Text, Text).optional(),
    url: NonBlank.optional(),
    headers: z.record(Text, Text).optional(),
    warp_id: NonBlank.optional(),
    id: NonBlank.optional(),
  })
  .refine((server) => [server.command, server.url, server.warp_id ?? server.id].filter(Boolean).length === 1, {
    error: 'needs exactly one of command, url and warp_id',
  })
  .meta({
    id: 'MCPServerConfig',
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

/** The harness of a run. `command` is our extension: the ACP agent of the harness `acp`, started inside the sandbox. */
export const HarnessConfig = z
  .looseObject({
    type: NonBlank.optional().meta({ description: 'oz (alias builtin) | acp | claude | codex | gemini | …' }),
    model_id: Text.optional(),
    reasoning_level: Text.optional(),
    command: z.array(Text).min(1).max(64).optional(),
  })
  .meta({ id: 'HarnessConfig' });
export type HarnessConfig = z.infer<typeof HarnessConfig>;

/** Members of the configuration that a child run may set only if its parent's configuration permits it. */
export const ChildOverride = z.enum(['worker_host', 'environment_id', 'child_runs']).meta({ id: 'ChildOverride' });
export type ChildOverride = z.infer<typeof ChildOverride>;

/** Whether the agent may start child runs, how many may be live at once, and what they may configure themselves. */
export const ChildRunsConfig = z
  .looseObject({
    enabled: z.boolean(),
    max_live: z.int().min(1).max(32).optional(),
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

/** Who may open the session of a run by its link. */
export const SessionAccess = z.enum(['VIEWER', 'EDITOR']).meta({ id: 'SessionAccess' });

/** How the session of a run is shared. */
export const SessionSharing = z
  .looseObject({
    public_access: SessionAccess.optional(),
  })
  .meta({ id: 'SessionSharing' });

/** A secret that a run asks for by name. */
export const SecretReference = z
  .looseObject({
    name: NonBlank,
  })
  .meta({ id: 'SecretReference' });

/** Configuration of a run in answers. Unknown members are stored and returned. */
export const AmbientAgentConfig = z
  .looseObject({
    name: Text.optional(),
    model_id: Text.optional(),
    base_prompt: Text.optional(),
    environment_id: Uid22.optional(),
    skill_spec: NonBlank.optional(),
    skills: z.array(NonBlank).optional().meta({
      description: 'In answers, skill_spec repeats the first one',
    }),
    mcp_servers: z.record(Text, MCPServerConfig).optional(),
    computer_use_enabled: z.boolean().optional(),
    idle_timeout_minutes: z.number().min(0).max(60).optional().meta({
      description: 'How long the sandbox waits for a follow-up after a turn, default 10; 0: it ends at once',
    }),
    approval_policy: ApprovalPolicy.optional(),
    worker_host: Text.optional(),
    harness: HarnessConfig.optional(),
    child_runs: ChildRunsConfig.optional(),
    session_sharing: SessionSharing.optional(),
    secrets: z.array(SecretReference).optional(),
  })
  .meta({ id: 'AmbientAgentConfig' });
export type AmbientAgentConfig = z.infer<typeof AmbientAgentConfig>;

/** Configuration of a run in requests. */
export const RequestedAgentConfig = AmbientAgentConfig.refine(
  (config) => config.skill_spec === undefined || config.skills === undefined,
  { error: 'skill_spec and skills exclude each other', path: ['skills'] },
).meta({
  id: 'RequestedAgentConfig',
  description: 'skill_spec and skills exclude each other',
  not: { required: ['skill_spec', 'skills'] },
});
