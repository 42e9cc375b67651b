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

/** A floor of a package: a folder directly in `src`. */
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
      ['workers', 'live', 'retention', 'search', 'channels'],
      ['edge.ts'],
    ],
  },
  {
    name: 'triggers',
    rooms: [
      ['starts'],
      ['definitions', 'github'],
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
      ['inbox'],
      ['conversations', 'results', 'subscriptions'],
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
      ['bodies', 'check-address.ts', 'check-url.ts', 'domain.ts', 'installation', 'operator-files', 'secrets'],
      ['search.ts', 'serving', 'threads'],
      ['store'],
      ['metrics'],
      ['fault.ts'],
    ],
  },
];

/** A line of folders and files directly in `src`, each of which is one room. */
type Line = readonly string[];

/** The packages with rules for their folders: floors and lines, from the top to the bottom. */
export const packageFloors: Readonly<Record<string, readonly (Floor | Line)[]>> = {
  service: [['main.ts'], ['service.ts'], ...serviceFloors],
  cli: [
    ['main.ts'],
    ['generated-pages'],
    ['program'],
    {
      // Each room is a noun.
      name: 'commands',
      rooms: [
        ['acceptances', 'automations', 'keys'],
        ['factories', 'installation', 'programs', 'schedules', 'webhooks'],
        [
          'agents',
          'api',
          'artifacts',
          'audit',
          'budget',
          'code-hosts',
          'completion',
          'environments',
          'github',
          'identities',
        ],
        ['inbox', 'login', 'mcp', 'models', 'runs', 'secrets', 'teams', 'users', 'workers'],
      ],
    },
    ['doctor', 'route-commands'],
    ['service'],
    ['machine', 'supervise'],
    ['context'],
    ['data-folder'],
    ['input', 'terminal'],
    ['exits'],
  ],
  agent: [
    ['main.ts'],
    ['waiting', 'arguments.ts'],
    ['run.ts', 'sandbox-commands'],
    ['run-parts.ts'],
    ['agent-socket', 'turns'],
    ['harness', 'stopping.ts'],
    ['checks', 'github-answers', 'mcp', 'pull-requests'],
    ['results', 'run-tree', 'workspace'],
    ['workspace-archive'],
    ['approvals', 'handoff', 'images', 'services'],
    ['acp', 'commands', 'egress', 'granted-secrets', 'reporting', 'run-token.ts'],
    ['artifacts'],
    ['service'],
    ['builtin-modules.ts', 'listen-on-loopback.ts', 'new-id.ts', 'open-regular-file.ts'],
    ['safe-names.ts', 'setup-failure.ts'],
  ],
  worker: [
    ['main.ts'],
    ['full-disk.ts', 'signals.ts'],
    ['worker.ts'],
    ['work.ts'],
    ['backends', 'ending.ts'],
    ['executions'],
    ['harnesses', 'supervisor-process', 'waiting-file.ts'],
    ['supervisor-client'],
    ['sandboxes'],
    ['relay-thread', 'sidecar'],
    ['cache', 'egress', 'runtime'],
    ['relay'],
    ['alive-file.ts', 'connection', 'health.ts', 'inherited-descriptors.ts', 'state'],
  ],
};

const isFloor = (each: Floor | Line): each is Floor => 'name' in each;

/** Returns the lines of a package from the top to the bottom. Each line is a list of the paths of rooms, relative to `src`. */
const linesOf = (floors: readonly (Floor | Line)[]): readonly Line[] =>
  floors.flatMap((each) =>
    isFloor(each) ? each.rooms.map((line) => line.map((room) => `${each.name}/${room}`)) : [each],
  );

/** Returns the picture of a package in docs/architecture.md. */
export const pictureOf = (floors: readonly (Floor | Line)[]): string =>
  floors
    .flatMap((each) =>
      isFloor(each) ? [each.name, ...each.rooms.map((line) => `    ${line.join(' · ')}`)] : [each.join(' · ')],
    )
    .join('\n');

/** The names of all rooms. No two floors have a room of the same name. */
export const serviceRooms: readonly string[] = serviceFloors.flatMap(({ rooms }) => rooms.flat());

const packageOf = (file: string): string => file.split('/')[1] ?? '';
const servicePrefix = 'packages/service/src/';
const workerPrefix = 'packages/worker/src/';
/** Folders in which also no two files import each other, directly or through further files. */
const withoutFileCycles: readonly string[] = [workerPrefix, `${servicePrefix}platform/`];
/** Returns the room of a file as a path relative to `src`: a folder or a file of a floor or of a line. */
function roomOf(file: string): string {
  const [first = '', second = ''] = file.split('/').slice(3);
  const isOfLine = packageFloors[packageOf(file)]?.some((each) => !isFloor(each) && each.includes(first));
  return isOfLine || second === '' ? first : `${first}/${second}`;
}

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
  const floors = packageFloors[packageOf(from)];
  if (floors === undefined || packageOf(from) !== packageOf(to) || roomOf(from) === roomOf(to)) return undefined;
  const lines = linesOf(floors);
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
  const ofFiles = imports.filter((each) =>
    withoutFileCycles.some((folder) => each.from.startsWith(folder) && each.to.startsWith(folder)),
  );
  faults.push(...cycleFaults('folders', imports, folderOf), ...cycleFaults('files', ofFiles, (file) => file));
  return [...new Set(faults)];
}

/** Returns a sentence for each cycle between the nodes of files. `nodes`: what the nodes are. */
function cycleFaults(nodes: string, imports: readonly Import[], nodeOf: (file: string) => string): string[] {
  const between = imports.filter(({ from, to }) => nodeOf(from) !== nodeOf(to));
  const edges = new Map<string, Set<string>>();
  for (const { from, to } of between) edges.set(nodeOf(from), (edges.get(nodeOf(from)) ?? new Set()).add(nodeOf(to)));
  return findCycles(edges).map((cycle) => {
    const inside = between.filter(({ from, to }) => cycle.includes(nodeOf(from)) && cycle.includes(nodeOf(to)));
    return `${nodes} import each other: ${cycle.join(', ')}\n${inside.map(({ from, to }) => `    ${from} → ${to}`).join('\n')}`;
  });
}
