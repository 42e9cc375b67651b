/**
 * Finds reads of a table by a room that is neither the owner of the table nor a declared reader, or that is on a floor below the owner. A
 * room that needs such a read calls a function of the owner. A room below the owner's floor cannot import this function, so the owner
 * registers it with that room.
 *
 * A read belongs to the file that contains the SQL text. So if the owner of a table exports an SQL fragment that reads the table, the check
 * counts this as a read by the owner, even if another room uses the fragment in a statement. The check skips a name that the code inserts
 * (`FROM ${relation}`): it is the name of a part of the same statement, or the owner has passed the name of its own table.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { readSourceFiles } from './import-graph.ts';
import { roomNameOf, serviceFloors } from './import-rules.ts';
import { readLiterals, readTables } from './sql-text.ts';
import { readsOfHigherFloors, tableRules } from './table-owners.ts';

const servicePrefix = 'packages/service/src/';
/** The check skips this folder, because migrations, export and import read all tables. */
const storePrefix = `${servicePrefix}platform/store/`;

interface Read {
  readonly file: string;
  readonly table: string;
}

/** Returns the number of the floor of a room. 0 is the highest floor; -1 means `main.ts` and `service.ts` above all floors. */
const floorOf = (room: string): number => serviceFloors.findIndex(({ rooms }) => rooms.flat().includes(room));

/** Returns a pair of file and table for each file that reads a table of another room. */
function readForeign(root: string): Read[] {
  const files = readSourceFiles(root).filter((file) => file.startsWith(servicePrefix) && !file.startsWith(storePrefix));
  return files.flatMap((file) => {
    const tables = new Set(readLiterals(readFileSync(path.join(root, file), 'utf8')).flatMap(readTables));
    return [...tables]
      .filter((table) => tableRules[table] && tableRules[table].owner !== roomNameOf(file))
      .map((table) => ({ file, table }));
  });
}

/** Returns a sentence for each read of a table that breaks the rules. */
export function findReaderFaults(root: string): string[] {
  return readForeign(root).flatMap(({ file, table }) => {
    const { owner = '', readers = [] } = tableRules[table] ?? {};
    const room = roomNameOf(file);
    if (floorOf(room) > floorOf(owner)) {
      const isListed = readsOfHigherFloors.some((each) => each.file === file && each.table === table);
      return isListed ? [] : [`${file} reads the table ${table} of ${owner}, which is on a higher floor`];
    }
    return readers.includes(room)
      ? []
      : [`${file} reads the table ${table} of ${owner}: test/checks/table-owners.ts names no reader ${room}`];
  });
}

/** Returns a sentence for each reader that `table-owners.ts` declares but no statement needs. */
export function findUnusedReaders(root: string): string[] {
  const reads = readForeign(root);
  const declared = Object.entries(tableRules).flatMap(([table, { readers = [] }]) =>
    readers.map((room) => ({ table, room })),
  );
  return [
    ...declared
      .filter(({ table, room }) => !reads.some((read) => read.table === table && roomNameOf(read.file) === room))
      .map(({ table, room }) => `no statement of ${room} reads the table ${table}`),
    ...readsOfHigherFloors
      .filter(({ file, table }) => !reads.some((read) => read.file === file && read.table === table))
      .map(({ file, table }) => `${file} does not read the table ${table}`),
  ];
}
