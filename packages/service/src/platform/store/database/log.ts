/** The part of a pino logger that the store writes to. */
export interface StoreLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Logs nothing. Used by tests, and by commands that print their own result. */
export const silentLog: StoreLog = { debug() {}, info() {}, warn() {}, error() {} };
