/**
 * Chaos test: three services, four workers, PostgreSQL and an S3 server run in network namespaces under load, with faults that a seed
 * chooses. Afterwards, the test checks that nothing was lost, done twice or left over. `bin/chaos --minutes 10 --seed 7`. Needs root,
 * bubblewrap, PostgreSQL, iproute2 and iptables.
 */
import { parseArgs } from 'node:util';
import { slowRate } from '../test/chaos/network.ts';
import { runChaos } from '../test/chaos/run.ts';
import { type Place, startAlone } from '../test/chaos/start-alone.ts';
import { report } from './report.ts';

const { values } = parseArgs({
  options: { minutes: { type: 'string' }, seed: { type: 'string' }, write: { type: 'boolean' } },
});
const minutes = Number(values.minutes ?? 10);
if (!(minutes >= 2)) throw new Error('--minutes must be at least 2: schedules fire once a minute');
const seed = Number(values.seed ?? Date.now() % 100_000);
const options = ['--minutes', String(minutes), '--seed', String(seed), ...(values.write ? ['--write'] : [])];

await startAlone(options, measure);

async function measure(place: Place): Promise<void> {
  const say = (line: string) => void process.stdout.write(`${line}\n`);
  const found = await runChaos({ ...place, minutes, seed, say });
  const faults = found.promises.flatMap((each) => each.faults);
  const counts = (all: Readonly<Record<string, number>>) =>
    Object.entries(all)
      .map(([name, count]) => `${count} ${name}`)
      .toSorted()
      .join(', ');
  for (const fault of faults) say(`FAULT ${fault}`);
  report(
    'Chaos',
    `\`bin/chaos --minutes ${minutes} --seed ${seed}\` runs 3 services, 4 workers with 3 slots each, PostgreSQL ${found.postgres} and SeaweedFS on one machine, each in a separate network namespace with a separate disk (tmpfs). For ${minutes} minutes, clients create, continue and cancel runs. Senders sign deliveries and send each delivery again until they get an answer. Schedules fire each minute, and readers follow the stream of the team. Meanwhile the test causes faults that the seed chooses: kill -9, SIGSTOP, an unplugged link, a node that loses all packets of another node, a slow link, a full disk (the test shrinks the file system to the size of its content), and kill -9 of an agent. A slow link has ${slowRate}, delays a packet by up to a second, and loses one packet in twenty; the test uses \`tbf\` and iptables, because this kernel has no \`netem\`. Then all faults end, and each promise is checked ${found.settledSeconds} s later. Each check of rows, commands, blobs and leftovers must also find faults that the test plants (${found.plants} planted, ${found.blind.length} not seen). After all programs have stopped, the test looks for leftovers: processes, folders and loop disks of sandboxes, mounts and network namespaces.\n\nFaults: ${counts(found.inflicted)}. Requests that were sent again: ${found.repeats}. Ends of runs: ${counts(found.ends)}; reasons of errors: ${counts(found.errors) || 'none'}. Blobs without a row that the nightly sweep removes: ${found.swept}.${found.failures.length === 0 ? '' : `\n\nRuns that ended FAILED or ERROR, rare messages first:\n\n${found.failures.join('\n')}`}`,
    ['promise', 'checked', 'broken'],
    found.promises.map(({ promise, count, faults: broken }) => [promise, count, broken.length]),
  );
  for (const blind of found.blind) say(`NOT SEEN ${blind}`);
  if (faults.length > 0 || found.blind.length > 0) process.exitCode = 1;
}
