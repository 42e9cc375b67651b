/** Test support: reads the plans of queries. */
import type { Database, Queryable } from '../../packages/service/src/platform/store/database/database.ts';

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Shared Hit Blocks'?: number;
  readonly 'Shared Read Blocks'?: number;
  readonly Plans?: readonly PlanNode[];
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

function observe(db: Database, options: string, see: (plan: PlanNode) => void): Database {
  const observing = (to: Queryable): Queryable => ({
    query: async (statement, values) => {
      const text = typeof statement === 'string' ? statement : statement.text;
      if (!/^(EXPLAIN|SET)/.test(text)) {
        const [row] = await to.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(`EXPLAIN (${options}) ${text}`, values);
        see(row?.['QUERY PLAN'][0].Plan as PlanNode);
      }
      return await to.query(statement, values);
    },
  });
  const transaction: Database['transaction'] = (work) => db.transaction((tx) => work({ ...tx, ...observing(tx) }));
  return { ...db, query: observing(db).query, transaction };
}

/** Returns a database that forwards queries and adds to `scanned` each of `tables` that their plans read completely. */
export const observeScans = (db: Database, tables: readonly string[], scanned: Set<string>): Database =>
  observe(db, 'FORMAT JSON', (plan) => {
    for (const node of nodesOf(plan)) {
      const table = node['Relation Name'] ?? '';
      if (node['Node Type'] === 'Seq Scan' && tables.includes(table)) scanned.add(table);
    }
  });

/**
 * Returns a database that forwards queries. Runs each query a second time with EXPLAIN ANALYZE, and reports how many rows of the table
 * each node of the plan reads.
 */
export const observeRows = (db: Database, table: string, report: (rows: number) => void): Database =>
  observe(db, 'ANALYZE, FORMAT JSON', (plan) => {
    for (const node of nodesOf(plan)) {
      const { 'Actual Rows': rows = 0, 'Actual Loops': loops = 1, 'Rows Removed by Filter': removed = 0 } = node;
      if (node['Relation Name'] === table) report((rows + removed) * loops);
    }
  });

/** Returns a database that forwards queries, and reports how many pages (buffers) each of them reads, from memory or from disk. */
export const observeBuffers = (db: Database, report: (pages: number) => void): Database =>
  observe(db, 'ANALYZE, BUFFERS, FORMAT JSON', ({ 'Shared Hit Blocks': hit = 0, 'Shared Read Blocks': read = 0 }) =>
    report(hit + read),
  );
