import { createByteMask } from '@runyard/system/redaction/mask-bytes';
import { createRedactor } from '@runyard/system/redaction/redactor';
import type { DecodedAttachment } from '../../files/attachments/decode.ts';
import type { NewRun } from './new-run.ts';

/**
 * Removes the values of the run's secrets from all stored members of the request, because a person who names a secret may also paste
 * its value.
 */
export function withoutValues(
  values: readonly string[],
  run: NewRun,
  files: readonly DecodedAttachment[],
): { readonly run: NewRun; readonly files: readonly DecodedAttachment[] } {
  if (values.length === 0) return { run, files };
  const redactor = createRedactor(values);
  const mask = createByteMask(values);
  const { title, prompt, config, name, metadata } = run;
  const stored = { title, prompt, config, ...(name === undefined ? {} : { name }), metadata };
  return {
    run: { ...run, ...(redactor.value(stored) as typeof stored) },
    files: files.map((file) => ({ ...file, fileName: redactor.whole(file.fileName), bytes: mask.whole(file.bytes) })),
  };
}
