/** Runs programs to measure how long they take. */
import { spawn } from 'node:child_process';
import { timed } from './turns.ts';

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the program, except PATH. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Runs a program to its end and returns its output. Rejects if the program fails. */
export function run({ command, args, env, cwd }: Program): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(cwd === undefined ? {} : { cwd }),
    });
    let output = '';
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve(output);
      else reject(new Error(`${command} ${args.join(' ')} ended with ${code ?? signal}: ${errors.slice(-1000)}`));
    });
  });
}

/** Returns the milliseconds from the start of the program to its end. */
export const timeOf = (program: Program): Promise<number> => timed(() => run(program));
