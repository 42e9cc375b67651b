/** Program that runs a worker with the fixture agent in a separate process, so that tests can kill the worker. */
import { fileURLToPath } from 'node:url';
import { parseSettings } from '@runyard/contract/settings/settings';
import { pino } from 'pino';
import { closeInheritedDescriptors } from '../src/inherited-descriptors.ts';
import { endOnSignals } from '../src/signals.ts';
import { startWorker, WorkerRefused } from '../src/worker.ts';

closeInheritedDescriptors();
const parsed = parseSettings(process.env);
if (!parsed.ok) throw new Error(parsed.problems.join('; '));
const agentEntry = fileURLToPath(new URL('./fixture-agent.ts', import.meta.url));
const worker = await startWorker(parsed.settings, { log: pino({ level: 'silent' }), agentEntry }).catch(
  (error: unknown) => {
    process.exit(error instanceof WorkerRefused ? 3 : 1);
  },
);
endOnSignals(worker);
process.exit((await worker.drained).exitCode);
