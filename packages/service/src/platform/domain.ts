/** The parts that a domain of the service registers. `service.ts` lists the domains. There is no other list of routes, loops or blobs. */
import type { ReadGauges } from './metrics/gauges.ts';
import type { Search } from './search.ts';
import type { ServedRoute } from './serving/served-route.ts';
import type { Database, Queryable } from './store/database/database.ts';
import type { Statement } from './store/database/statement.ts';

/** One domain of the service, with its routes, loops and other parts. Creating a domain opens no resources. */
export interface Domain {
  readonly name: string;
  /** Returns the routes, which `edges/http` mounts. Called once, before `open`. */
  routes?(): readonly ServedRoute[];
  /** Does the work that must come before the first request. Called once, before the service listens. */
  open?(): Promise<void>;
  /** The table columns that hold keys of blobs. */
  readonly blobs?: readonly BlobColumn[];
  readonly retention?: Retention;
  /**
   * Finds the rows that are encrypted with an earlier key of the vault, and encrypts them with the present key. Returns how many rows
   * still have another key.
   */
  sealAgain?(): Promise<number>;
  /** Returns the background loops. Called once, after the service has started to listen, so its address is known. */
  loops?(): Promise<readonly Loop[]>;
  readonly readiness?: Readiness;
  /** Reads the gauges of the domain. Each statement must limit its number of rows and use an index. */
  readonly gauges?: readonly ReadGauges[];
  /** The searches for objects of the domain, one search for each kind of object. */
  readonly search?: readonly Search[];
  /** Closes the resources that the domain opened. Called after the loops have stopped, in the reverse order of the domains. */
  close?(): Promise<void>;
}

/** Work that each service process repeats. */
export interface Loop {
  /** Subject of the log line if a round fails. */
  readonly name: string;
  /** Milliseconds between two rounds. With `due`, this is the shortest time between two rounds, with a tolerance of half a second. */
  readonly everyMs: number;
  /**
   * Statements without parameters. A round starts only if one of these statements returns a row, so they must find everything that a
   * round has to do. One query each second executes these statements for all loops. Absent: a round starts every `everyMs`.
   */
  readonly due?: readonly Statement[];
  /** One round. `signal` aborts when the service stops. */
  work(signal: AbortSignal): Promise<unknown>;
}

/** A check of `/readyz`. */
export interface Readiness {
  /** Returns why requests cannot be served now; null if they can. */
  problem?(): Promise<string | null>;
  /** Returns which part does not work although requests are served; null if all parts work. */
  degraded?(): string | null;
}

/** A column that holds keys of blobs. Its table has a column `id` of type uuid. */
export interface BlobColumn {
  /** First segment of the keys. */
  readonly prefix: string;
  readonly table: string;
  readonly column: string;
  /** SQL that selects the blob keys of the runs `$1::uuid[]`. The result may contain NULL. */
  readonly ofRuns: string;
}

/** The work of the nightly sweep for a domain. */
export interface Retention {
  /** The rows to delete after a fixed time. */
  readonly rows?: readonly RowRule[];
  /** Deletes the rows and blobs that the domain stores for the conversations of runs that ended long ago. */
  readonly deleteRunDetail?: DeleteRunDetail;
  readonly nightly?: readonly NightlyTask[];
}

/** Names a table and the rows to delete in it. */
export interface RowRule {
  readonly table: string;
  /** SQL condition over a row of the table. An index must cover the condition. */
  readonly isOver: string;
}

/**
 * Deletes a batch of the details of these runs. The caller has locked the rows of the runs in the transaction `tx`. The service calls
 * the domains in the order of `service.ts`, and calls a domain only when the domains before it have nothing left to delete.
 */
export type DeleteRunDetail = (tx: Queryable, runIds: readonly string[]) => Promise<DeletedDetail>;

export interface DeletedDetail {
  /** Keys of the blobs to delete after the commit. */
  readonly blobKeys: readonly string[];
  /** False: this domain has more to delete, so the next batch calls it again. */
  readonly isDone: boolean;
}

/** Work that the sweep does every night after the deletes. */
export interface NightlyTask {
  /** The name under which the result of the sweep reports the number of rows. */
  readonly name: string;
  run(db: Database): Promise<{ readonly rows: number; readonly more: boolean }>;
}
