import type pg from 'pg';

/** A column of a statement's result, as PostgreSQL describes it. */
export interface DescribedColumn {
  readonly name: string;
  /** Object id of the column's type. */
  readonly typeOid: number;
}

interface WireConnection {
  parse(query: { name: string; text: string; types: number[] }, more: boolean): void;
  describe(target: { type: 'S'; name: string }, more: boolean): void;
  sync(): void;
}

/**
 * Prepares a statement without executing it, and returns the columns of its result. Sends the messages Parse and Describe of the
 * protocol (PostgreSQL documentation, 55.2.3). `pg` lets an object with a method `submit` send its own messages.
 */
export async function describeStatement(client: pg.Client, text: string): Promise<DescribedColumn[]> {
  const columns: DescribedColumn[] = [];
  const ended = Promise.withResolvers<void>();
  const submittable = {
    submit: (connection: WireConnection) => {
      connection.parse({ name: '', text, types: [] }, true);
      connection.describe({ type: 'S', name: '' }, true);
      connection.sync();
    },
    handleRowDescription: (message: { fields: { name: string; dataTypeID: number }[] }) => {
      for (const field of message.fields) columns.push({ name: field.name, typeOid: field.dataTypeID });
    },
    handleError: (error: Error) => ended.reject(error),
    handleReadyForQuery: () => ended.resolve(),
  };
  client.query(submittable as unknown as pg.Submittable);
  await ended.promise;
  return columns;
}
