import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openApiDocument } from '@runyard/contract/openapi/openapi';
import { beforeEach, expect, test } from 'vitest';
import { compareAnswers } from './checks/answers.ts';
import { newFolder } from './support/close-at-end.ts';

let folder: string;
beforeEach(() => {
  folder = newFolder();
});

/** Returns the lines that test processes write if they receive every declared status of every operation. */
function allAnswers(): string[] {
  const { paths } = openApiDocument('') as {
    paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
  };
  return Object.entries(paths).flatMap(([route, operations]) =>
    Object.entries(operations).flatMap(([method, { responses }]) =>
      Object.keys(responses).map(
        (status) => `${method.toUpperCase()} /api/v1${route.replaceAll('{', ':').replaceAll('}', '')} ${status}`,
      ),
    ),
  );
}

test('the check of answers combines the files of several test processes and ignores routes that are not in the OpenAPI document', async () => {
  const answers = allAnswers();
  await writeFile(path.join(folder, '1.txt'), `${answers.slice(0, 50).join('\n')}\nGET /healthz 200\n`);
  await writeFile(path.join(folder, '2.txt'), `${answers.slice(40).join('\n')}\nHEAD /api/v1/agent/runs 200\n`);
  expect(compareAnswers(folder)).toEqual([]);
});

test('the check of answers reports each declared status that no test has received, and each received status that is not declared', async () => {
  const answers = allAnswers().filter((line) => line !== 'POST /api/v1/agent/run 413');
  await writeFile(path.join(folder, '1.txt'), `${answers.join('\n')}\nGET /api/v1/agent/models 418\n`);
  expect(compareAnswers(folder).sort()).toEqual([
    'createRunDeprecated declares 413, and no test has seen it',
    'listModels answered 418, which it does not declare',
  ]);
});
