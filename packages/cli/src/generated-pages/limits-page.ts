import { limits } from '@runyard/contract/limits-table/limits-table';

/** Returns the text of `docs/limits.md`, which is made from the table of limits. */
export function renderLimitsPage(): string {
  const rows = limits.map(({ of, most, above }) => `| ${of} | ${most} | ${above} |`);
  return `<!-- Written by bin/generate from packages/contract/src/limits-table/limits-table.ts. -->

# Limits

The limits are so high that a normal run does not reach them. Names in capitals are [settings](settings.md), with their
defaults. The last column has the HTTP status, or the effect, of going above the limit. [decisions/limits.md](decisions/limits.md)
has the reasons. The number of runs has no limit: retention deletes old runs.

| limit of | at most | above the limit |
|---|---|---|
${rows.join('\n')}
`;
}
