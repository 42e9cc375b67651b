/**
 * Program of a thread that watches a service while a test attacks the service. The thread has its own event loop. Its `workerData` is
 * a `WatchedService`. The thread answers each message with a `Watched`, which covers the time since the start of the thread.
 */
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

export interface WatchedService {
  readonly pid: number;
  readonly baseUrl: string;
}

export interface Watched {
  /** Highest resident memory of the service, in MB. */
  readonly memoryMb: number;
  /** Highest processor time that the service took during one request of `/healthz`, milliseconds. */
  readonly healthMs: number;
  /** Number of answers that the thread got from the service. */
  readonly answers: number;
  /** Answers of the service other than 200, and reasons why it did not answer. */
  readonly problems: readonly string[];
}

const { pid, baseUrl }: WatchedService = workerData;
let memoryMb = 0;
let healthMs = 0;
let answers = 0;
const problems: string[] = [];

setInterval(() => {
  const [, kb] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  memoryMb = Math.max(memoryMb, Number(kb) / 1024);
}, 20);

/**
 * Returns the processor time of the process in hundredths of a second, see proc(5). Unlike the duration of an answer, this time hardly
 * depends on other programs of the machine.
 */
function processorMs(): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function ask(): void {
  const before = processorMs();
  const next = (problem?: string): void => {
    healthMs = Math.max(healthMs, processorMs() - before);
    if (problem === undefined) answers += 1;
    else problems.push(problem);
    setTimeout(ask, 50);
  };
  get(`${baseUrl}/healthz`, { agent: false }, (response) => {
    response.resume().once('end', () => next(response.statusCode === 200 ? undefined : String(response.statusCode)));
  }).once('error', (error) => next(error.message));
}
ask();

parentPort?.on('message', () => {
  parentPort?.postMessage({ memoryMb, healthMs, answers, problems } satisfies Watched);
});
