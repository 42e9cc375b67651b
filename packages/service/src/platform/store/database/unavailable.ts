/** Temporary failures of database, disk and bucket: the same request may succeed later. */
import { sqlState } from './connections.ts';

/**
 * `database`: its connection was lost or could not be opened. `disk`: the disk is full. `blobs`: the bucket does not answer.
 */
export type UnavailableReason = 'database' | 'disk' | 'blobs';

/** Thrown instead of a temporary error. It has the message and the code of that error; the error itself is the `cause`. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
  readonly reason: UnavailableReason;
  readonly code: string | undefined;
  constructor(reason: UnavailableReason, cause: Error) {
    super(cause.message, { cause });
    this.reason = reason;
    this.code = sqlState(cause);
  }
}

/**
 * Codes of a connection that was lost or refused: PostgreSQL's (08: connection exceptions, 57P01 to 57P05: shut down, crashed,
 * starting, timed out, 53300: too many clients, 25P03: idle in a transaction for too long; appendix A of its manual) and the system's.
 */
const lostCodes =
  /^(08...|57P0[1235]|53300|25P03|ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN|ENOTFOUND|EAI_AGAIN)$/;

/** Errors of `pg` and `pg-pool` that have no code. */
const lostMessages =
  /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/;

/** Codes of PostgreSQL (`disk_full`) and of the file system. */
const fullCodes = ['53100', 'ENOSPC', 'EDQUOT'];

/**
 * Returns the error to throw for an error of a connection, a statement or a file: `StoreUnavailable` if it is temporary, else the error
 * itself.
 */
export function asUnavailable(error: unknown, of: UnavailableReason): unknown {
  if (!(error instanceof Error) || error instanceof StoreUnavailable) return error;
  const code = sqlState(error);
  if (code !== undefined && fullCodes.includes(code)) return new StoreUnavailable('disk', error);
  const isLost = code === undefined ? lostMessages.test(error.message) : lostCodes.test(code);
  return of === 'database' && isLost ? new StoreUnavailable('database', error) : error;
}
