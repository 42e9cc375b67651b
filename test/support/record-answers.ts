/** Setup of every test file. Vitest runs it again for each file of a process; modules that it imports are loaded once. */
import { answersVariable } from '../checks/answers.ts';
import { recordAnswers } from './answers-of-process.ts';

const folder = process.env[answersVariable];
if (folder) recordAnswers(folder);
