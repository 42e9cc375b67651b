/** Test support: finds out which loops of a service have work. Only loops with `due` statements are considered, and none of them runs. */
import { makeFindDue } from '../src/edges/start/loops.ts';
import type { Loop } from '../src/platform/domain.ts';
import type { Database } from '../src/platform/store/database/database.ts';
import type { Statement } from '../src/platform/store/database/statement.ts';
import { listDomains } from '../src/service.ts';
import type { TestService } from './service.ts';

export interface DueLoops {
  readonly names: readonly string[];
  /** Returns the names of the loops that have work now. `db`: the database, or a transaction; its uncommitted changes also count. */
  findNames(db: Pick<Database, 'query'>): Promise<string[]>;
  close(): Promise<void>;
}

/** Collects the loops of all domains, but starts none of them. */
export async function listDueLoops({ deps }: TestService): Promise<DueLoops> {
  const domains = listDomains(deps);
  const loops: Loop[] = [];
  for (const domain of domains) loops.push(...((await domain.loops?.()) ?? []));
  const due = loops.flatMap(({ name, due }): { name: string; due: readonly Statement[] }[] =>
    due ? [{ name, due }] : [],
  );
  return {
    names: due.map(({ name }) => name),
    findNames: async (db) => {
      const places = await makeFindDue(
        db,
        due.map((each) => each.due),
      )();
      return places.map((place) => due[place]?.name ?? '').sort();
    },
    close: async () => await domains.find(({ name }) => name === 'subscriptions')?.close?.(),
  };
}
