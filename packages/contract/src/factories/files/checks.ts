/** Checks in definition files: those of `RunCheck` in the spelling of the files. */
import { z } from 'zod';
import { RunChecks } from '../../runs/checks.ts';
import { strictObject } from './strict-object.ts';

const FileDiffLimits = strictObject({
  maxFiles: z.int().optional().describe('How many files may differ'),
  maxLines: z.int().optional().describe('How many lines may be added and removed together'),
  paths: z.array(z.string()).optional().describe('Only files that match one of these patterns may differ'),
});

const FileCheck = strictObject({
  name: z.string().describe('Name of the check'),
  command: z.string().optional().describe('Shell command; the check passes with exit code 0'),
  artifact: z.string().optional().describe('The run must have an artifact with this file name, title or type'),
  diff: FileDiffLimits.optional().describe('Limits of the changes'),
  timeoutSeconds: z.int().optional().describe('How long `command` may take'),
  fresh: z.boolean().optional().describe('True: in a new sandbox with the base commit and the stored changes'),
  trustedPaths: z.array(z.string()).optional().describe('Files that the new sandbox takes from the base commit'),
});
type FileCheck = z.infer<typeof FileCheck>;

const given = <T>(name: string, value: T | undefined): Record<string, T> =>
  value === undefined ? {} : { [name]: value };

/** Returns a check of a definition file in the spelling of the API. */
function toRunCheck({ name, command, artifact, diff, timeoutSeconds, fresh, trustedPaths }: FileCheck): unknown {
  const limits = diff && {
    ...given('max_files', diff.maxFiles),
    ...given('max_lines', diff.maxLines),
    ...given('paths', diff.paths),
  };
  return {
    name,
    ...given('command', command),
    ...given('artifact', artifact),
    ...given('diff', limits),
    ...given('timeout_seconds', timeoutSeconds),
    ...given('fresh', fresh),
    ...given('trusted_paths', trustedPaths),
  };
}

/** Returns the checks of a definition file in the spelling of the API. `FileChecks` has checked them. */
export const toRunChecks = (checks: FileChecks): RunChecks => RunChecks.parse(checks.map(toRunCheck));

export const FileChecks = z.array(FileCheck).superRefine((checks, context) => {
  const parsed = RunChecks.safeParse(checks.map(toRunCheck));
  for (const { path, message } of parsed.error?.issues ?? [])
    context.addIssue({ code: 'custom', path: path.map(toFileName), message });
});
export type FileChecks = z.infer<typeof FileChecks>;

/** Returns the name of a member in definition files: `trusted_paths` is `trustedPaths` there. */
const toFileName = (part: PropertyKey): PropertyKey =>
  typeof part === 'string' ? part.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()) : part;
