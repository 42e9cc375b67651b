/** Checks that decide whether a run has succeeded. */
import { z } from 'zod';
import {
  maxCheckAttempts,
  maxCheckCommandLength,
  maxCheckSeconds,
  maxChecks,
  maxTrustedPaths,
  usualCheckAttempts,
  usualCheckSeconds,
} from '../limits.ts';
import { NonBlank } from '../wire/primitives.ts';
import { isTrustedPath } from './trusted-paths.ts';

const DiffLimits = z
  .object({
    max_files: z.int().min(0).max(1_000_000).optional().describe('How many files may differ; absent: any number'),
    max_lines: z
      .int()
      .min(0)
      .max(1_000_000_000)
      .optional()
      .describe('How many lines may be added and removed together; a file that is not text fails. Absent: any number'),
    paths: z
      .array(NonBlank.max(500))
      .min(1)
      .max(100)
      .optional()
      .describe('Only files whose path in their repository matches one of these patterns may differ, such as `src/**`'),
  })
  .refine((limits) => Object.values(limits).some((limit) => limit !== undefined), {
    error: 'needs one of max_files, max_lines and paths',
  })
  .meta({ id: 'DiffLimits', description: 'Limits of the changes in the repositories of the workspace' });

const TrustedPath = NonBlank.max(500).refine(isTrustedPath, {
  error:
    'must be a path of the repository such as test/** or package.json: without / at its ends, and without empty parts, `.`, `..`, \\ and the characters [ ] { } !',
});

/** A check of a run: exactly one of `command`, `artifact` and `diff`. */
export const RunCheck = z
  .object({
    name: NonBlank.max(100).describe('Name of the check in the timeline and in messages'),
    command: NonBlank.max(maxCheckCommandLength)
      .optional()
      .describe('Shell command in the working directory of the sandbox; the check passes with exit code 0'),
    artifact: NonBlank.max(255)
      .optional()
      .describe('The run must have an artifact with this file name, title or type, such as PULL_REQUEST'),
    diff: DiffLimits.optional(),
    timeout_seconds: z
      .int()
      .min(1)
      .max(maxCheckSeconds)
      .optional()
      .describe(`How long \`command\` may take, default ${usualCheckSeconds}`),
    fresh: z
      .boolean()
      .optional()
      .describe(
        'True: `command` runs in a new sandbox, which takes a slot. It has the base commit and the stored changes of the run, and no secrets, network, model or state of the agent',
      ),
    trusted_paths: z
      .array(TrustedPath)
      .min(1)
      .max(maxTrustedPaths)
      .optional()
      .describe(
        'Only with `fresh`: files and folders that the new sandbox takes from the base commit, so that the agent cannot change them. Paths of the repository with `*`, `?` and `**`, in the case of the files; a folder stands for everything below it. At least one file of the base commit must match each',
      ),
  })
  .superRefine((check, context) => {
    const fault = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
    if ([check.command, check.artifact, check.diff].filter((kind) => kind !== undefined).length !== 1)
      fault([], 'needs exactly one of command, artifact and diff');
    if (check.fresh === true && check.command === undefined) fault(['fresh'], 'is only for a command');
    if (check.trusted_paths !== undefined && check.fresh !== true)
      fault(
        ['trusted_paths'],
        'is only for a check with fresh: true, because the agent can change every file of its own sandbox',
      );
    if (check.timeout_seconds !== undefined && check.command === undefined)
      fault(['timeout_seconds'], 'is only for a command');
  })
  .meta({ id: 'RunCheck', description: 'A check of a run: exactly one of `command`, `artifact` and `diff`' });
export type RunCheck = z.infer<typeof RunCheck>;

export const RunChecks = z
  .array(RunCheck)
  .max(maxChecks)
  .refine((checks) => new Set(checks.map(({ name }) => name)).size === checks.length, {
    error: 'must not have two checks of one name',
  })
  .describe(
    `Checks that decide whether the run has succeeded, at most ${maxChecks}. They run in their order after each turn of the agent that ends in success; the first failed one ends the round`,
  );

export const CheckAttempts = z
  .int()
  .min(0)
  .max(maxCheckAttempts)
  .describe(
    `How often a failed check goes back to the agent in one turn, default ${usualCheckAttempts}. After that, the run is FAILED with \`checks_failed\``,
  );

export type RunChecks = z.infer<typeof RunChecks>;

/** The outcome of a check in the report of a turn. */
export const CheckOutcome = z
  .object({
    name: z.string().max(100).describe('Name of the check'),
    passed: z.boolean().describe('Whether it passed when it ran last'),
  })
  .meta({ id: 'CheckOutcome', description: 'The last outcome of a check in a turn' });
