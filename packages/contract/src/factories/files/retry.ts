/** The retry of runs in definition files: `RunRetry` in the spelling of the files. */
import type { z } from 'zod';
import { RunRetry } from '../../runs/retry.ts';
import { strictObject } from './strict-object.ts';

const { on, max, backoff_seconds: backoffSeconds } = RunRetry.shape;

export const FileRetry = strictObject({ on, max, backoffSeconds }).superRefine((retry, context) => {
  for (const { path, message } of RunRetry.safeParse(toRunRetry(retry)).error?.issues ?? [])
    context.addIssue({ code: 'custom', path, message });
});
export type FileRetry = z.infer<typeof FileRetry>;

interface Given {
  readonly on: RunRetry['on'];
  readonly max: number;
  readonly backoffSeconds?: number | undefined;
}

/** Returns the retry of a definition file in the spelling of the API. */
export function toRunRetry({ backoffSeconds: seconds, ...retry }: Given): RunRetry {
  return { ...retry, ...(seconds === undefined ? {} : { backoff_seconds: seconds }) };
}
