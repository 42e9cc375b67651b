/** The allowed imports between folders. docs/architecture.md shows the same rules, and a test compares that page with this file. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { findCycles, type Import, readImports, readServiceTests, readSourceFiles } from './import-graph.ts';

/** For each package of the repository, the other packages that it may import. */
export const packageRules: Readonly<Record<string, readonly string[]>> = {
  contract: [],
  system: [],
  definitions: ['contract'],
  client: ['contract', 'system'],
  dashboard: ['contract', 'client'],
  service: ['contract', 'definitions', 'system'],
  worker: ['contract', 'system'],
  agent: ['contract', 'system'],
  // The command line starts the other programs. Their `exports` list the modules that the command line uses.
  cli: ['contract', 'definitions', 'system', 'client', 'service', 'worker'],
};

/** A floor of the service: a folder directly in `src`. */
export interface Floor {
  readonly name: string;
  /**
   * The lines of the floor, from the top to the bottom. Each line is a list of rooms: folders or files of the floor. A room may import
   * only rooms on lower lines and rooms of lower floors.
   */
  readonly rooms: readonly (readonly string[])[];
}

/** The floors of the service, from the top to the bottom. `main.ts` and `service.ts` are above them. */
export const serviceFloors: readonly Floor[] = [
  {
    name: 'edges',
    rooms: [
      ['start'],
      ['mcp'],
      ['http'],
      ['gateway', 'status'],
      ['workers', 'live', 'retention', 'search'],
      ['edge.ts'],
    ],
  },
  {
    name: 'triggers',
    rooms: [
      ['starts'],
      ['definitions'],
      ['automations'],
      ['schedules', 'factory-runs'],
      ['webhooks'],
      ['factories', 'history'],
    ],
  },
  {
    name: 'runs',
    rooms: [
      ['harness-support', 'repositories'],
      ['runs'],
      ['files'],
      ['executions'],
      ['conversations', 'subscriptions'],
    ],
  },
  {
    name: 'team',
    rooms: [
      ['acceptances', 'skills'],
      ['environments', 'mcp', 'saved-views', 'stored-secrets', 'usage'],
      ['code-hosts', 'models'],
      ['access', 'content-policy', 'redaction'],
    ],
  },
  {
    name: 'platform',
    rooms: [
      ['idempotency', 'uploads'],
      ['bodies', 'check-url.ts', 'domain.ts', 'installation', 'operator-files', 'secrets'],
      ['search.ts', 'serving', 'threads'],
      ['store'],
      ['metrics'],
      ['fault.ts'],
    ],
  },
];

/** The lines of all floors from the top to the bottom. Each line is a list of the paths of rooms, relative to `src`. */
const lines: readonly (readonly string[])[] = [
  ['main.ts'],
  ['service.ts'],
  ...serviceFloors.flatMap(({ name, rooms }) => rooms.map((line) => line.map((room) => `${name}/${room}`))),
];

/** The names of all rooms. No two floors have a room of the same name. */
export const serviceRooms: readonly string[] = serviceFloors.flatMap(({ rooms }) => rooms.flat());

const packageOf = (file: string): string => file.split('/')[1] ?? '';
const servicePrefix = 'packages/service/src/';
/** Returns the room of a file as a path relative to `src`. A room is a folder or a file of a floor, or a file directly in `src`. */
const roomOf = (file: string): string => file.slice(servicePrefix.length).split('/').slice(0, 2).join('/');

/** Returns the number of the floor of a file. 0 is the highest floor; -1 means that the file is directly in `src`, above all floors. */
const floorOf = (file: string): number =>
  serviceFloors.findIndex(({ name }) => file.startsWith(`${servicePrefix}${name}/`));

/** Returns the name of the room of a file of the service. */
export const roomNameOf = (file: string): string => path.basename(roomOf(file));

/** Returns whether a file registers its room with the service. Such an entry is named `domain.ts`, `routes.ts` or `…-routes.ts`. */
const isEntry = (file: string): boolean =>
  /^packages\/service\/src\/\w+\/[\w-]+\/(?:domain|(?:[\w-]+-)?routes)\.ts$/.test(file);

/** Returns whether the file `from` may import the entry. Only `service.ts` and other entries of the same room may import an entry. */
const mayImportEntry = (from: string, entry: string): boolean =>
  from === `${servicePrefix}service.ts` || (isEntry(from) && roomOf(from) === roomOf(entry));

function entryFault({ from, to }: Import): string | undefined {
  if (!isEntry(to) || mayImportEntry(from, to)) return undefined;
  return `${from} imports ${to}: only service.ts and the domain.ts of a room import its domain.ts and its routes`;
}

/**
 * Returns the node that stands for a file in the search for cycles: its folder. But a file directly in `src`, a room of one file and
 * an entry of a room are each a node of their own, because they are above the folders of the room.
 */
function folderOf(file: string): string {
  const folder = path.dirname(file);
  const isAlone = file.startsWith(servicePrefix) && roomOf(file) === file.slice(servicePrefix.length);
  return folder.endsWith('/src') || isAlone || isEntry(file) ? file : folder;
}

function packageFault({ from, to }: Import): string | undefined {
  const [a, b] = [packageOf(from), packageOf(to)];
  if (a === b || packageRules[a]?.includes(b)) return undefined;
  return `${from} imports ${to}: ${a} may import ${packageRules[a]?.join(', ') || 'no other package'}`;
}

function floorFault({ from, to }: Import): string | undefined {
  if (!from.startsWith(servicePrefix) || !to.startsWith(servicePrefix) || roomOf(from) === roomOf(to)) return undefined;
  const [above, below] = [from, to].map((file) => lines.findIndex((line) => line.includes(roomOf(file))));
  if (above === undefined || below === undefined || above < 0) {
    return `${from}: ${roomOf(from)} is on no floor of test/checks/import-rules.ts`;
  }
  return above < below ? undefined : `${from} imports ${to}: ${roomOf(from)} is not above ${roomOf(to)}`;
}

/**
 * Returns the fault of an import in a test file, if there is one. A test may import all rooms of its own floor and of lower floors.
 * The helpers in `packages/service/test` may import everything.
 */
function testFault({ from, to }: Import): string | undefined {
  if (!to.startsWith(servicePrefix)) return undefined;
  const [own, other] = [from, to].map((file) => floorOf(file));
  return own === undefined || other === undefined || own <= other
    ? undefined
    : `${from} imports ${to}: a test imports its own floor and the floors below`;
}

/** Returns a fault for each file on a floor below `edges` that imports the HTTP server, because domains must not depend on HTTP. */
const httpFaults = (root: string, files: readonly string[]): string[] =>
  files
    .filter(
      (file) => file.startsWith(servicePrefix) && !/^(?:edges\/|service\.ts$)/.test(file.slice(servicePrefix.length)),
    )
    .filter((file) => readFileSync(path.join(root, file), 'utf8').includes("from 'fastify'"))
    .map((file) => `${file} imports fastify: only edges do`);

/** Returns a sentence for each import that breaks a rule and for each cycle between folders. */
export function findImportFaults(root: string): string[] {
  const files = readSourceFiles(root);
  const imports = readImports(root, files);
  const ofTests = readImports(root, readServiceTests(root));
  const faults = [
    ...imports.flatMap((each) => packageFault(each) ?? floorFault(each) ?? entryFault(each) ?? []),
    ...ofTests.flatMap((each) => testFault(each) ?? []),
    ...httpFaults(root, files),
  ];
  const edges = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    const [a, b] = [folderOf(from), folderOf(to)];
    if (a !== b) edges.set(a, (edges.get(a) ?? new Set()).add(b));
  }
  for (const cycle of findCycles(edges)) {
    const inside = imports.filter(
      ({ from, to }) =>
        folderOf(from) !== folderOf(to) && cycle.includes(folderOf(from)) && cycle.includes(folderOf(to)),
    );
    faults.push(
      `folders import each other: ${cycle.join(', ')}\n${inside.map(({ from, to }) => `    ${from} → ${to}`).join('\n')}`,
    );
  }
  return [...new Set(faults)];
}
