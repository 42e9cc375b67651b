import type { Queryable } from '../../../platform/store/database/database.ts';
import { fromRuns, type RunRow, runColumns } from '../read/run-row.ts';
import { orderOf } from './order.ts';
import type { PageQuery, PageRequest } from './page-query.ts';

/**
 * Bytes of prompts and configurations in a page, unless its first run has more. A run has 2 MB at most, so 500 runs without
 * this limit have up to a gigabyte, which exhausts the memory of the service.
 */
const maxPageBytes = 16 * 1024 * 1024;

/** SQL: bytes of the run `r`. PostgreSQL knows the length of a long text without reading it. It reads a configuration only where its compressed form has more than 1,000 bytes. */
const runBytes = `octet_length(r.prompt)
  + CASE WHEN pg_column_size(r.config) > 1000 THEN octet_length(r.config::text) ELSE pg_column_size(r.config) END`;

/** Identifies a run of a page, and its place. */
export interface PageKey {
  id: string;
  readonly sort_value: string | null;
}
/** A run of a page. */
export interface PageRow extends RunRow, PageKey {
  /** Runs that the query found, with those that the size of the page leaves out. */
  readonly found: number;
}

/** Reads the rows of the runs that the query finds, up to the size of a page. */
export async function readPage(db: Queryable, request: PageRequest, { text, values }: PageQuery): Promise<PageRow[]> {
  const { collation, direction } = orderOf(request.query);
  const order = `page.sort_value${collation} ${direction} NULLS LAST, page.id ${direction}`;
  return await db.query<PageRow>(
    `WITH page AS MATERIALIZED (${text}), sized AS MATERIALIZED (
       SELECT page.id, page.sort_value, count(*) OVER () AS found,
         sum(${runBytes}) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS bytes
       FROM page JOIN runs r ON r.id = page.id)
     SELECT ${runColumns}, page.sort_value, page.found::integer ${fromRuns}
     JOIN sized page ON page.id = r.id AND page.bytes <= ${maxPageBytes} ORDER BY ${order}`,
    values,
  );
}
