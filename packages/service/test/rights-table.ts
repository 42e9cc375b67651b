/** Test support: renders the table in docs/security.md that shows which rights a run keeps, by the kind and the author of its content. */
import { RunContentKind } from '@runyard/contract/runs/acceptances';
import type { RunActor } from '../src/team/access/actor.ts';
import type { RunContent } from '../src/team/access/contents/content.ts';
import { describeWithheld } from '../src/team/access/contents/describe-withheld.ts';
import { decidePersonalCredentials, decideRight } from '../src/team/access/contents/run-rights.ts';

const executor: RunActor = { kind: 'user', uid: 'executor' };

/** The kinds of authors that make a difference for the rights of a run, with the secrets that each author may use. */
const authors: readonly {
  readonly heading: string;
  readonly author: RunActor | null;
  readonly holds: readonly string[];
}[] = [
  { heading: 'the executor', author: executor, holds: ['personal', 'team'] },
  { heading: 'another person of the team', author: { kind: 'user', uid: 'other' }, holds: ['team'] },
  {
    heading: 'an agent key that may use the secret',
    author: { kind: 'service_account', uid: 'with' },
    holds: ['team'],
  },
  { heading: 'an agent key that may not', author: { kind: 'service_account', uid: 'without' }, holds: [] },
  { heading: 'somebody who is gone, or not known', author: null, holds: [] },
];

/** Returns which rights a run of the executor keeps if it executes this content. */
function rightsWith(content: RunContent): string {
  const mayUse = (right: string) => (principal: RunActor) =>
    authors.some(
      ({ author, holds }) => author?.kind === principal.kind && author.uid === principal.uid && holds.includes(right),
    );
  const kept = [
    ...(decideRight(executor, [content], mayUse('personal')).kind === 'held' ? ['personal secrets'] : []),
    ...(decidePersonalCredentials(executor, [content]).kind === 'held' ? ['personal credentials'] : []),
    ...(decideRight(executor, [content], mayUse('team')).kind === 'held' ? ["the team's secret"] : []),
  ];
  return kept.length === 3 ? 'all' : kept.join(', ') || 'none';
}

const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

/** Returns the table as Markdown. */
export function renderRightsTable(): string {
  const rows = RunContentKind.options.map((kind) => {
    const cells = authors.map(({ author }) =>
      rightsWith({ kind, uid: 'UID', author, accepted: author?.uid === executor.uid }),
    );
    const content: RunContent = { kind, uid: 'UID', author: { kind: 'service_account', uid: 'UID' }, accepted: false };
    const reason = describeWithheld({ right: 'secret', name: 'S', content }, executor, () => 'A');
    const [accept] = /bin\/runyard accept \w+/.exec(reason) ?? [];
    const accepted = rightsWith({ ...content, accepted: true });
    return line([`\`${kind}\``, ...cells, accept ? `${accepted}: \`${accept}\`` : 'cannot be accepted']);
  });
  return [
    line(['content', ...authors.map(({ heading }) => heading), 'after its acceptance']),
    `|---|${'---|'.repeat(authors.length + 1)}`,
    ...rows,
  ].join('\n');
}
