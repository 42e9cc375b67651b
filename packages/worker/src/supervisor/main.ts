/**
 * Holds one sandbox: its processes, its relay to the service, its limits and its end. It goes on when its worker ends, and the next
 * worker of the data folder adopts the sandbox. Arguments: its folder, and a label by which workers find it.
 */
import { readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { closeInheritedDescriptors } from '../inherited-descriptors.ts';
import { filesOf } from '../supervised/files.ts';
import { openLines } from '../supervised/lines.ts';
import { listenForAdoption } from './adoption.ts';
import { supervise } from './supervise.ts';

/** Descriptor of the connection to the worker that started this program. */
const workerDescriptor = 3;

closeInheritedDescriptors([workerDescriptor]);
const [, , folder = ''] = process.argv;
const secret = readFileSync(filesOf(folder).secret, 'utf8');
const supervision = supervise(folder);
await listenForAdoption(folder, secret, supervision);
const worker = new Socket({ fd: workerDescriptor });
supervision.serve(openLines(worker, { message: () => {}, closed: () => {} }));
