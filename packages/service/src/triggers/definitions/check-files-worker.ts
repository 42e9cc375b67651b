/** The code of the thread that checks definition files. The service ends the thread if a check takes too long. */
import { parentPort } from 'node:worker_threads';
import { checkFiles, type FilesToCheck } from './check-files.ts';

parentPort?.on('message', (files: FilesToCheck) => parentPort?.postMessage(checkFiles(files)));
parentPort?.postMessage('ready');
