import { asObject, asString } from '../acp/tool-output.ts';

/**
 * The option that says `approve` or `deny` to a permission request: once before always, which some harnesses write into
 * their settings. Undefined: none says so, and the request is cancelled.
 */
export function optionFor(decision: 'approve' | 'deny', options: unknown): string | undefined {
  if (!Array.isArray(options)) return undefined;
  const known = options.map((option) => {
    const members = asObject(option);
    return { optionId: asString(members?.optionId), kind: asString(members?.kind) };
  });
  const kinds = decision === 'approve' ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
  for (const kind of kinds) {
    const found = known.find((option) => option.kind === kind && option.optionId !== undefined);
    if (found !== undefined) return found.optionId;
  }
  return undefined;
}
