/**
 * Setup of every test file: records answers and the processor time of the file, and sets where started programs keep compiled code.
 * Vitest runs this module for each file of a process. It may also load the imported modules again for each file, so this module
 * imports little.
 */
import { afterAll } from 'vitest';
import { answersVariable, recordAnswers } from './answers-of-process.ts';
import { keepCodeOfPrograms } from './compiled-code.ts';
import { readProcessorTime } from './processor-time.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** Processor time of a test file with the programs that it started, milliseconds. */
    processorMs?: number;
  }
}

keepCodeOfPrograms();
const folder = process.env[answersVariable];
if (folder) recordAnswers(folder);

const before = readProcessorTime();
// The measured time includes the hooks of the test file, because these hooks end before this hook.
// biome-ignore lint/correctness/noEmptyPattern: vitest wants a pattern of the fixtures that a hook uses
afterAll(({}, file) => {
  const after = readProcessorTime();
  file.meta.processorMs = after.ownMs + after.childrenMs - before.ownMs - before.childrenMs;
});
