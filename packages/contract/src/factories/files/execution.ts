/**
 * Keys that define how runs are executed. The key `agentDefaults` of a factory contains them, and agents and automations can override them.
 */
import { z } from 'zod';
import { builtinAlias, builtinHarness } from '../../agent/harness-presets/builtin.ts';
import { presetTypes } from '../../agent/harness-presets/preset.ts';
import { findHarness, presetAliases } from '../../agent/harness-presets/presets.ts';
import { maxMcpServersOfRun, maxSkillsOfRun } from '../../limits.ts';
import { CheckAttempts } from '../../runs/checks.ts';
import { OutputSchema } from '../../runs/results.ts';
import { NonBlank, Text, Uid22 } from '../../wire/primitives.ts';
import { makeSpelling } from '../../wire/spelling.ts';
import { FileChecks } from './checks.ts';
import { FileRetry } from './retry.ts';
import { strictObject } from './strict-object.ts';

/** Name of an agent, automation, webhook or runner. It must be valid as the name of a file or folder on every system. */
export const resourceNamePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
export const resourceNameRule = 'must be 1 to 64 characters of [A-Za-z0-9._-] and begin with a letter or a digit';
/** A reference to an agent, automation, webhook or runner by its name. */
export const ResourceName = z.string().regex(resourceNamePattern, { error: resourceNameRule });

export const SecretName = NonBlank.max(200);
const SetupSecret = strictObject({
  name: SecretName.describe('Name of the secret'),
  phase: z.literal('setup').describe('`setup`: only setup commands get the secret'),
});
const SecretEntry = z.union([SecretName, SetupSecret]);
export type SecretEntry = z.infer<typeof SecretEntry>;
/** Returns the name of a secret in a definition file. */
export const nameOfSecret = (secret: SecretEntry): string => (typeof secret === 'string' ? secret : secret.name);

/** Names of secrets without duplicates. An object names a secret that only setup commands get. */
export const SecretNames = z
  .array(SecretEntry)
  .max(100)
  .refine((secrets) => new Set(secrets.map(nameOfSecret)).size === secrets.length, {
    error: 'must not name a secret twice',
  })
  .meta({ uniqueItems: true });

/** Skills of repositories without duplicates. */
const Skills = z
  .array(
    z.string().regex(/^[A-Za-z0-9_.-]{1,100}\/[A-Za-z0-9_.-]{1,100}:[^\s:][^:]{0,300}$/, {
      error: 'must be owner/repo:skill-name or owner/repo:path/to/SKILL.md',
    }),
  )
  .max(maxSkillsOfRun)
  .refine((specs) => new Set(specs).size === specs.length, { error: 'must not name a skill twice' })
  .meta({ uniqueItems: true });
const skills =
  "Skills of repositories as `owner/repo:skill-name` or `owner/repo:path/to/SKILL.md`; runs follow the first one. They are added to the definition's own entries";

/** Stored MCP servers. Each key is the name that the server has for the agent. */
export const McpServers = z
  .record(
    z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, { error: 'must be 1 to 64 characters of [A-Za-z0-9_.-]' }),
    strictObject({ warpId: NonBlank.max(200).describe('Id of a stored MCP server of the team') }),
  )
  .refine((servers) => Object.keys(servers).length <= maxMcpServersOfRun, {
    error: `must not name more than ${maxMcpServersOfRun} servers`,
  })
  .meta({ maxProperties: maxMcpServersOfRun });

/** `source` is the source of a harness's credential. */
const HarnessAuth = strictObject({
  source: z
    .enum(['managedSecret', 'workerEnvironment'])
    .describe(
      '`managedSecret`: the secret `secretName`. `workerEnvironment`: the environment of the self-hosted worker',
    ),
  secretName: SecretName.optional().describe('Secret with the credential, for `managedSecret`'),
})
  .superRefine(({ source, secretName }, context) => {
    if (source === 'managedSecret' && secretName === undefined)
      context.addIssue({ code: 'custom', path: [], message: 'needs secretName, because source is managedSecret' });
    if (source === 'workerEnvironment' && secretName !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['secretName'],
        message: 'is only for source: managedSecret; leave it out',
      });
  })
  .meta({
    if: { properties: { source: { const: 'managedSecret' } } },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
    then: { required: ['secretName'] },
    else: { not: { required: ['secretName'] } },
  });

/**
 * Harnesses that a definition can name. `acp` and `command` are not allowed, because these harnesses need a command, and definition
 * files have no key for a command.
 */
const knownHarnesses = [builtinHarness, builtinAlias, ...presetTypes, ...presetAliases.keys()];
const harnessSpelling = makeSpelling(knownHarnesses);
const HarnessType = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,63}$/, { error: `must be the name of a harness, such as ${knownHarnesses.join(', ')}` })
  .superRefine((type, context) => {
    const suggestion = harnessSpelling.suggest(type);
    if (suggestion !== undefined && suggestion !== type)
      context.addIssue({ code: 'custom', message: `is not a known harness; did you mean ${suggestion}?` });
  })
  .describe(
    `Program that works on the prompt: ${knownHarnesses.join(', ')}. ${[...presetAliases].map(([alias, type]) => `${alias} is the same as ${type}`).join('; ')}`,
  );

const Model = NonBlank.max(200);
const reasoningLevel = Text.max(100)
  .nullable()
  .optional()
  .describe('How much the model thinks, in words of its provider; not for oz. Null: no value, not the inherited one');
const auth = HarnessAuth.nullable()
  .optional()
  .describe(
    'Where the credential of the harness comes from; not for oz. Not available on this service, kept without effect. Null: no value, not the inherited one',
  );

interface AnyHarness {
  readonly type?: string | null | undefined;
  readonly model?: string | null | undefined;
  readonly reasoningLevel?: string | null | undefined;
  readonly auth?: unknown;
}

/** The built-in harness has no credentials or reasoning levels of its own. */
function checkBuiltin(harness: AnyHarness, context: z.RefinementCtx): void {
  if (!findHarness(harness.type ?? '')?.isBuiltIn) return;
  for (const key of ['reasoningLevel', 'auth'] as const)
    if (harness[key] !== undefined && harness[key] !== null)
      context.addIssue({
        code: 'custom',
        path: [key],
        message: `is not for the harness ${harness.type}; leave it out`,
      });
}

const HarnessDefault = strictObject({
  type: HarnessType,
  model: Model.describe('Model of the harness'),
  reasoningLevel,
  auth,
}).superRefine(checkBuiltin);

const HarnessOverride = strictObject({
  type: HarnessType.nullable().optional().describe('Program that works on the prompt; null: the inherited one'),
  model: Model.nullable().optional().describe('Model of the harness; null: the inherited one'),
  reasoningLevel,
  auth,
})
  .superRefine(checkBuiltin)
  .superRefine((harness: AnyHarness, context) => {
    const isEmpty =
      (harness.type ?? harness.model) == null && harness.reasoningLevel === undefined && harness.auth === undefined;
    if (isEmpty) context.addIssue({ code: 'custom', message: 'needs one of type, model, reasoningLevel and auth' });
  })
  .meta({ minProperties: 1 });

const model = 'Model, as in `GET /agent/models`; short for `harness: {type: oz, model: …}`';
const workerHost = Text.max(200)
  .nullable()
  .optional()
  .describe('Self-hosted worker that executes the runs. Null: any worker of the service');
const outputSchema = OutputSchema.optional().describe(
  'JSON Schema (2020-12) that the result of each run must match. The runs return a result then',
);
const checks = FileChecks.optional().describe(
  'Checks that decide whether a run has succeeded: a list of `{name, command | artifact | diff, fresh, timeoutSeconds, trustedPaths}`',
);
const checkAttempts = CheckAttempts.optional();
const retry = FileRetry.optional().describe(
  'A new run after a failure with one of these error codes: `{on, max, backoffSeconds}`',
);
const runner = 'Name of a runner in `runners/`';
const environmentId = 'Environment of the runs, 22 characters';
const environment =
  'Environment of the runs by name: a file in `environments/`, or else an environment of the team; not together with `environmentId`';
const EnvironmentName = NonBlank.max(200);

/** The keys of agentDefaults; `model` and `harness` exclude each other. */
export const executionDefaults = {
  model: Model.optional().describe(model),
  harness: HarnessDefault.optional().describe('Harness and model; not together with `model`'),
  runner: ResourceName.optional().describe(runner),
  environment: EnvironmentName.optional().describe(environment),
  environmentId: Uid22.optional().describe(environmentId),
  secrets: SecretNames.optional().describe('Secrets of agents without a list of their own'),
  skills: Skills.optional().describe(skills),
  mcpServers: McpServers.optional().describe('MCP servers of agents without a list of their own'),
  outputSchema,
  checks,
  checkAttempts,
  retry,
  workerHost,
};

/**
 * The keys of agentDefaults, in an agent or an automation. Null means that the value of agentDefaults applies, unless the description of
 * the key says otherwise.
 */
export const executionOverrides = {
  model: Model.nullable().optional().describe(`${model}. Absent or null: the inherited one`),
  harness: HarnessOverride.optional().describe('Changes of the inherited harness; not together with `model`'),
  runner: ResourceName.nullable().optional().describe(`${runner}. Absent or null: the inherited one`),
  environment: EnvironmentName.nullable().optional().describe(`${environment}. Absent or null: the inherited one`),
  environmentId: Uid22.nullable().optional().describe(`${environmentId}. Absent or null: the inherited one`),
  secrets: SecretNames.optional().describe('Names of secrets, instead of the inherited ones'),
  skills: Skills.optional().describe(`${skills}. Instead of the inherited ones`),
  mcpServers: McpServers.optional().describe('MCP servers, instead of the inherited ones'),
  outputSchema,
  checks,
  checkAttempts,
  retry,
  workerHost,
};

interface Excluding {
  readonly model?: unknown;
  readonly harness?: unknown;
  readonly environment?: unknown;
  readonly environmentId?: unknown;
}

/** Refuses a file that has both `model` and `harness`, or both `environment` and `environmentId`. */
export function checkExclusions(value: Excluding, context: z.RefinementCtx): void {
  if (value.environment != null && value.environmentId != null)
    context.addIssue({ code: 'custom', path: ['environmentId'], message: 'excludes environment; keep one of the two' });
  if (value.model != null && value.harness !== undefined)
    context.addIssue({ code: 'custom', path: ['harness'], message: 'excludes model; keep one of the two' });
}
