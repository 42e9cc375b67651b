import { limits } from '@runyard/contract/limits-table';

/** Returns `docs/limits.md`, written from the table of limits. */
export function renderLimitsPage(): string {
  const rows = limits.map(({ of, most, above }) => `| ${of} | ${most} | ${above} |`);
  return `<!-- Written by packages/cli/src/limits-page/generate.ts from packages/contract/src/limits-table.ts. -->

# Limits

No honest run should meet these. Names in capitals are [settings](settings.md), with their defaults; numbers are HTTP statuses.
[decisions/limits.md](decisions/limits.md) has the reasons. Runs are not limited in number: retention deletes them.

| what | at most | above it |
|---|---|---|
${rows.join('\n')}
`;
}
