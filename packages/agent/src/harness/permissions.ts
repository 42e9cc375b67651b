import { asObject, asString } from './tool-output.ts';

/**
 * The option to answer a permission request with: runs are unattended inside their sandbox, so the policy is to allow.
 * `allow_once` before `allow_always`, which some harnesses write into their settings. Undefined: nothing allows.
 */
export function allowingOption(options: unknown): { optionId: string; name: string } | undefined {
  if (!Array.isArray(options)) return undefined;
  const known = options.map((option) => {
    const members = asObject(option);
    const optionId = asString(members?.optionId);
    return optionId === undefined
      ? undefined
      : { optionId, name: asString(members?.name) ?? optionId, kind: asString(members?.kind) };
  });
  for (const kind of ['allow_once', 'allow_always']) {
    const found = known.find((option) => option?.kind === kind);
    if (found !== undefined) return { optionId: found.optionId, name: found.name };
  }
  return undefined;
}
