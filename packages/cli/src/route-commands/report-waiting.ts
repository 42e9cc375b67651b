import type { WaitingAfterChange } from '@runyard/contract/runs/acceptances';
import type { UserProfile } from '@runyard/contract/wire/profiles';
import type { Context } from '../context/context.ts';
import { harmlessLine } from '../terminal/harmless.ts';

const nameOf = ({ display_name, uid, type }: UserProfile): string => display_name ?? uid ?? type;

/** Reports who must accept a content after the caller has changed it. */
export function reportWaiting(context: Context, waiting: WaitingAfterChange | undefined): void {
  if (!waiting) return;
  const { kind, uid, revision, kept_authors, starts, people } = waiting;
  const report = (line: string) => context.report(harmlessLine(line));
  if (kept_authors.length > 0)
    report(
      `what you changed keeps ${kept_authors.map(nameOf).join(', ')} as author beside you; read and accept it with: bin/runyard accept ${kind} ${uid}`,
    );
  for (const start of starts)
    report(
      `${start.kind} ${start.name} lacks ${start.withheld.map(({ right, name }) => name ?? right).join(', ')} until ${nameOf(start.executor)} accepts revision ${revision} of ${kind} ${uid}`,
    );
  if (people.length > 0)
    report(
      `runs of ${people.map(nameOf).join(', ')} have no personal rights here until they accept revision ${revision}`,
    );
}
