/**
 * Setup of every test file. Vitest runs it again for each file of a process; modules that it imports are loaded once, or once per file
 * where files share no modules. So it imports little.
 */
import { answersVariable, recordAnswers } from './answers-of-process.ts';

const folder = process.env[answersVariable];
if (folder) recordAnswers(folder);
