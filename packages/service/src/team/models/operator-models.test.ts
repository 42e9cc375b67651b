import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { catalogue, catalogueMadeOn } from './catalogue.ts';
import { readKnownModels } from './operator-models.ts';

const file = path.join(await mkdtemp(path.join(tmpdir(), 'runyard-models-')), 'models.yaml');

test('the catalogue names each model once, and no two models share an id or alias', () => {
  const names = catalogue.flatMap(({ provider, providerModel, aliases }) =>
    [providerModel, ...aliases].map((name) => `${provider}/${name}`),
  );
  expect(new Set(names).size).toBe(names.length);
  expect(catalogueMadeOn).toMatch(/^\d{4}-\d\d-\d\d$/);
});

test('a file of the operator corrects only the members that it contains, and adds models', async () => {
  await writeFile(
    file,
    'models:\n  - id: openai/gpt-5\n    prices: [{input: 9, output: 99}]\n  - {id: local/my model, name: Mine}\n'.replace(
      'my model',
      'my-model',
    ),
  );
  const read = await readKnownModels(file);
  if (!read.ok) throw new Error(read.problems.join());
  expect(read.models.find(({ providerModel }) => providerModel === 'gpt-5')).toMatchObject({
    displayName: 'GPT-5',
    contextWindow: 272_000,
    prices: [{ input: 9, output: 99 }],
  });
  expect(read.models.at(-1)).toMatchObject({ provider: 'local', displayName: 'Mine', visionSupported: false });
  expect(read.models).toHaveLength(catalogue.length + 1);
});

test.each([
  ['models:\n  - id: other/x\n', 'line 2: models.0.id: must begin with'],
  ['models:\n  - id: openai/x y\n', 'line 2: models.0.id: must begin with'],
  ['models:\n  - id: openai/x\n  - id: openai/x\n', 'line 3: models.1.id: another model'],
  ['models:\n  - id: openai/x\n    price: 3\n', 'line 2: models.0: '],
  ['models:\n  - id: openai/x\n    prices: [{input: -1, output: 1}]\n', 'line 3: models.0.prices.0.input: '],
  [
    'models:\n  - id: openai/x\n    prices: [{input: 1, output: 1}, {input: 1, output: 1}]\n',
    'line 3: models.0.prices: must be in the order',
  ],
])('a catalogue file with the text %j stops the start with the problem %j', async (text, problem) => {
  await writeFile(file, text);
  const read = await readKnownModels(file);
  expect(read).toMatchObject({ ok: false, problems: [expect.stringContaining(problem)] });
});
