/** Main file of the background process that the command `run` starts, and which runs the service and the worker. */

import { readSettings } from '../context/read-settings.ts';
import { dataFolder } from '../data-folder/installation.ts';
import { Failure } from '../exits/failure.ts';
import { supervise } from './supervise.ts';

const report = (message: string) => console.log(`${new Date().toISOString()} ${message}`);

try {
  const settings = readSettings(process.env);
  await supervise({
    mode: 'background',
    settings,
    env: process.env,
    folder: dataFolder(settings, process.env),
    service: true,
    worker: true,
    report,
    onReady: (stack) => report(`started: ${stack.origin}`),
  });
  report('stopped');
} catch (error) {
  console.log(error instanceof Failure ? error.message : error);
  process.exitCode = error instanceof Failure ? error.exitCode : 1;
}
