/** The allowed imports between folders. docs/architecture.md shows the same picture; a test compares the two. */
import path from 'node:path';
import { findCycles, type Import, readImports, readSourceFiles } from './import-graph.ts';

/** The parts of other packages that each package may import. */
export const packageRules: Readonly<Record<string, readonly string[]>> = {
  contract: [],
  client: ['contract'],
  service: ['contract'],
  worker: ['contract'],
  agent: ['contract'],
  // Starts the other programs. Their `exports` list the modules that it uses.
  cli: ['contract', 'client', 'service', 'worker'],
};

/** Rooms of the service, from the top to the bottom: a room imports only rooms on lines below its own. */
export const serviceLayers: readonly (readonly string[])[] = [
  ['main.ts'],
  ['service.ts'],
  ['start'],
  ['http'],
  ['gateway'],
  ['definitions'],
  ['automations'],
  ['factory-runs', 'harness-support', 'workers', 'live', 'repositories', 'retention', 'schedules'],
  ['runs', 'webhooks'],
  ['files'],
  ['executions'],
  ['skills'],
  ['code-hosts', 'conversations', 'environments', 'factories', 'mcp', 'stored-secrets', 'subscriptions', 'usage'],
  ['models'],
  ['access', 'content-policy', 'idempotency', 'redaction', 'uploads'],
  ['bodies', 'domain.ts', 'operator-files', 'secrets'],
  ['store'],
  ['fault.ts'],
];

const packageOf = (file: string): string => file.split('/')[1] ?? '';
const servicePrefix = 'packages/service/src/';
/** A room: a folder or a file directly in `src`. */
const roomOf = (file: string): string => file.slice(servicePrefix.length).split('/')[0] ?? '';

/** The folder in which cycles are searched for; a file directly in `src` counts for itself. */
function folderOf(file: string): string {
  const folder = path.dirname(file);
  return folder.endsWith('/src') ? file : folder;
}

function packageFault({ from, to }: Import): string | undefined {
  const [a, b] = [packageOf(from), packageOf(to)];
  if (a === b || packageRules[a]?.includes(b)) return undefined;
  return `${from} imports ${to}: ${a} may import ${packageRules[a]?.join(', ') || 'no other package'}`;
}

function layerFault({ from, to }: Import): string | undefined {
  if (!from.startsWith(servicePrefix) || !to.startsWith(servicePrefix) || roomOf(from) === roomOf(to)) return undefined;
  const [above, below] = [from, to].map((file) => serviceLayers.findIndex((layer) => layer.includes(roomOf(file))));
  if (above === undefined || below === undefined || above < 0) {
    return `${from}: the folder ${roomOf(from)} is in no layer of test/checks/import-rules.ts`;
  }
  return above < below ? undefined : `${from} imports ${to}: ${roomOf(from)} is not above ${roomOf(to)}`;
}

/** Every import that breaks a rule, and every cycle between folders, as sentences. */
export function findImportFaults(root: string): string[] {
  const imports = readImports(root, readSourceFiles(root));
  const faults = imports.flatMap((each) => packageFault(each) ?? layerFault(each) ?? []);
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
