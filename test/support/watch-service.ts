/**
 * A thread with its own event loop that watches a service while a test attacks the service. `workerData` is a WatchedService. The
 * thread answers each message with a Watched for the time since its start.
 */
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

export interface WatchedService {
  readonly pid: number;
  readonly baseUrl: string;
}

export interface Watched {
  /** Highest resident memory that was seen, MB. */
  readonly memoryMb: number;
  /** Highest processor time that the service took during one request of `/healthz`, milliseconds. */
  readonly healthMs: number;
  /** Number of answers of the service. */
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

/** Processor time in hundredths of a second, see proc(5). Unlike the duration, it does not depend on other work of the machine. */
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
