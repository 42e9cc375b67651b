/**
 * Finds statements that read a table in a room that is neither its owner nor one of its declared readers, or that is on a floor below
 * the owner's. A room that needs such a read calls a function of the owner, or gets one as data from the room above that registers it.
 *
 * Text counts for the file that contains it. So a fragment of SQL that the owner of a table exports reads the table in the owner's
 * room, whichever statement contains it. A relation or table that the code inserts by name (`FROM ${relation}`) is not read here: it
 * is a part of the same statement, or the owner passes the name of its own table.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { readSourceFiles } from './import-graph.ts';
import { roomNameOf, serviceFloors } from './import-rules.ts';
import { readLiterals, readTables } from './sql-text.ts';
import { readsOfHigherFloors, tableRules } from './table-owners.ts';

const servicePrefix = 'packages/service/src/';
/** Migrations, export and import read all tables. */
const storePrefix = `${servicePrefix}platform/store/`;

interface Read {
  readonly file: string;
  readonly table: string;
}

/** Returns the number of the floor of a room, 0 for the highest; -1: `main.ts` and `service.ts` above all floors. */
const floorOf = (room: string): number => serviceFloors.findIndex(({ rooms }) => rooms.flat().includes(room));

/** Returns every table of the database that a statement of another room reads, once for each file. */
function readForeign(root: string): Read[] {
  const files = readSourceFiles(root).filter((file) => file.startsWith(servicePrefix) && !file.startsWith(storePrefix));
  return files.flatMap((file) => {
    const tables = new Set(readLiterals(readFileSync(path.join(root, file), 'utf8')).flatMap(readTables));
    return [...tables]
      .filter((table) => tableRules[table] && tableRules[table].owner !== roomNameOf(file))
      .map((table) => ({ file, table }));
  });
}

/** Every statement that reads a table against the rules, as sentences. */
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

/** Every declaration of `table-owners.ts` that no statement needs, as sentences. */
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
