/**
 * Program that replaces the agent in the tests of the worker. Runs the fixture that `--fixture NAME ARGUMENT` names. Without this option,
 * ends at once.
 */
import { spawn } from 'node:child_process';
import { readFileSync, writeSync } from 'node:fs';

/** Waits for a run in the same way as the agent. Returns the arguments of the run, or an empty list if the worker has ended. */
function waitForRun(): string[] {
  const descriptor = Number(process.env.RUNYARD_RUN_TOKEN_FD);
  writeSync(descriptor, '\n');
  const text = readFileSync(descriptor, 'utf8');
  if (text === '') return [];
  const { args } = JSON.parse(text);
  process.title = args.slice(0, 4).join(' ');
  return args;
}

const args = process.argv[3] === 'wait' ? waitForRun() : process.argv;
const at = args.indexOf('--fixture');
const [name, argument = ''] = at < 0 ? [] : args.slice(at + 1);

switch (name) {
  case undefined:
    break;
  case 'exit':
    process.exit(Number(argument));
    break;
  case 'signal':
    process.kill(process.pid, argument);
    setInterval(() => {}, 1000);
    break;
  case 'stubborn':
    process.on('SIGTERM', () => process.stdout.write('no\n'));
    setInterval(() => {}, 1000);
    break;
  case 'polite':
    process.on('SIGTERM', () => process.exit(0));
    setInterval(() => {}, 1000);
    break;
  case 'flood': {
    const chunk = Buffer.alloc(1 << 16, 'flood\n');
    const write = (): void => {
      while (process.stdout.write(chunk));
      process.stdout.once('drain', write);
    };
    write();
    break;
  }
  case 'memory': {
    const kept: Buffer[] = [];
    for (;;) kept.push(Buffer.alloc(16 << 20, 1));
  }
  case 'sh': {
    const child = spawn('/bin/sh', ['-c', argument], { stdio: 'inherit' });
    child.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 0 : 99)));
    break;
  }
  default:
    process.stderr.write(`no fixture ${name}\n`);
    process.exit(64);
}
