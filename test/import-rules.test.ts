import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { findImportFaults, packageFloors, pictureOf } from './checks/import-rules.ts';
import { newFolder } from './support/close-at-end.ts';

let root: string;

beforeEach(() => {
  root = newFolder();
});

/** Writes source files below `packages`. The keys of `files` are their paths. */
async function writeSources(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [file, content] of Object.entries(files)) {
    const target = path.join(root, 'packages', file);
    await mkdir(path.dirname(target), { recursive: true });
    await writeFile(target, content);
  }
}

test('the check accepts imports of rooms that are below the importing room', async () => {
  await writeSources({
    'service/src/runs/files/read.ts': "import type { Database } from '../../platform/store/database.ts';\n",
    'service/src/platform/store/database.ts':
      "import { Repository } from '@runyard/contract/environments/environments';\n",
    'contract/src/environments.ts': '',
  });
  expect(findImportFaults(root)).toEqual([]);
});

test('the check rejects an import from a higher floor, even of a type', async () => {
  await writeSources({
    'service/src/runs/files/read.ts': "import type {\n  Refusal,\n} from '../../edges/http/problem.ts';\n",
    'service/src/edges/http/problem.ts': '',
  });
  expect(findImportFaults(root)).toEqual([
    'packages/service/src/runs/files/read.ts imports packages/service/src/edges/http/problem.ts: runs/files is not above edges/http',
  ]);
});

test('the check rejects an import of a room that is above on the same floor', async () => {
  await writeSources({
    'service/src/runs/files/read.ts': "import '../runs/list.ts';\n",
    'service/src/runs/runs/list.ts': '',
  });
  expect(findImportFaults(root)).toEqual([
    'packages/service/src/runs/files/read.ts imports packages/service/src/runs/runs/list.ts: runs/files is not above runs/runs',
  ]);
});

test('the check lets tests import any room of their own floor, but no room of a higher floor', async () => {
  await writeSources({
    'service/src/runs/files/read.test.ts':
      "import '../runs/list.ts';\nimport { answer } from '../../edges/http/problem.ts';\nimport '../../service.ts';\nimport '../../../test/service.ts';\n",
    'service/src/runs/runs/list.ts': '',
    'service/src/edges/http/problem.ts': '',
    'service/src/service.ts': '',
    'service/test/service.ts': "import '../src/service.ts';\n",
  });
  expect(findImportFaults(root)).toEqual(
    ['edges/http/problem.ts', 'service.ts'].map(
      (file) =>
        `packages/service/src/runs/files/read.test.ts imports packages/service/src/${file}: a test imports its own floor and the floors below`,
    ),
  );
});

test('the check rejects an import of a package that the importing package may not use', async () => {
  await writeSources({
    'agent/src/run.ts': "import { startService } from '@runyard/service/service';\n",
    'service/src/service.ts': '',
  });
  expect(findImportFaults(root)).toEqual([
    'packages/agent/src/run.ts imports packages/service/src/service.ts: agent may import contract, system',
  ]);
});

test('the check rejects folders that import each other, also through other folders or with dynamic imports', async () => {
  await writeSources({
    'client/src/a/one.ts': "import { two } from '../b/two.ts';\n",
    'client/src/b/two.ts': "export { three } from '../b/c/three.ts';\n",
    'client/src/b/c/three.ts': "const one = await import('../../a/one.ts');\n",
  });
  const [fault] = findImportFaults(root);
  expect(fault).toContain(
    'folders import each other: packages/client/src/a, packages/client/src/b, packages/client/src/b/c',
  );
});

test('the check lets domain.ts and routes import folders of their room, and lets these folders import another file of the room', async () => {
  await writeSources({
    'service/src/service.ts': "import { runsDomain } from './runs/runs/domain.ts';\n",
    'service/src/runs/runs/domain.ts': "import { runRoutes } from './run-routes.ts';\n",
    'service/src/runs/runs/run-routes.ts': "import { list } from './list/list.ts';\n",
    'service/src/runs/runs/list/list.ts': "import { limit } from '../limit.ts';\n",
    'service/src/runs/runs/limit.ts': '',
  });
  expect(findImportFaults(root)).toEqual([]);
});

test('the check rejects an import of the routes of a room by any file except the domain.ts of the room', async () => {
  await writeSources({
    'service/src/runs/runs/routes.ts': '',
    'service/src/runs/runs/list/list.ts': "import '../routes.ts';\n",
    'service/src/edges/http/app.ts': "import '../../runs/runs/routes.ts';\n",
  });
  expect(findImportFaults(root).map((fault) => fault.split(' imports ')[0])).toEqual([
    'packages/service/src/edges/http/app.ts',
    'packages/service/src/runs/runs/list/list.ts',
  ]);
});

test('the check rejects an import of the HTTP server on floors below `edges`', async () => {
  const fastify = "import type { FastifyInstance } from 'fastify';\n";
  await writeSources({
    'service/src/service.ts': fastify,
    'service/src/edges/http/app.ts': fastify,
    'service/src/runs/runs/routes.ts': fastify,
  });
  expect(findImportFaults(root)).toEqual(['packages/service/src/runs/runs/routes.ts imports fastify: only edges do']);
});

test('the check rejects a folder of the service that is on no floor', async () => {
  await writeSources({
    'service/src/runs/helpers/all.ts': "import '../../platform/store/database.ts';\n",
    'service/src/platform/store/database.ts': '',
  });
  expect(findImportFaults(root)).toEqual([
    'packages/service/src/runs/helpers/all.ts: runs/helpers is on no floor of test/checks/import-rules.ts',
  ]);
});

test('docs/architecture.md shows the same floors and rooms as the check', async () => {
  const page = await readFile(path.join(import.meta.dirname, '../docs/architecture.md'), 'utf8');
  for (const floors of Object.values(packageFloors))
    expect(page).toContain(`\n\`\`\`text\n${pictureOf(floors)}\n\`\`\`\n`);
});

test('the check rejects an import from a higher line or floor of the command line', async () => {
  await writeSources({
    'cli/src/terminal/list.ts': "import { connect } from '../service/connect.ts';\n",
    'cli/src/service/connect.ts': '',
    'cli/src/commands/runs/list.ts': "import { fires } from '../schedules/fires.ts';\n",
    'cli/src/commands/schedules/fires.ts': "import { list } from '../../terminal/list.ts';\n",
  });
  expect(findImportFaults(root)).toEqual([
    'packages/cli/src/commands/runs/list.ts imports packages/cli/src/commands/schedules/fires.ts: commands/runs is not above commands/schedules',
    'packages/cli/src/terminal/list.ts imports packages/cli/src/service/connect.ts: terminal is not above service',
  ]);
});

test('the check reports a room of the worker that imports a higher room, and files that import each other', async () => {
  await writeSources({
    'worker/src/runtime/program.ts': `import type { Sandbox } from '../sandboxes/sandbox.ts';\n`,
    'worker/src/sandboxes/sandbox.ts': `import { prepare } from './prepare.ts';\n`,
    'worker/src/sandboxes/prepare.ts': `import { sandbox } from './sandbox.ts';\n`,
    'worker/src/strange.ts': `import { sandbox } from './sandboxes/sandbox.ts';\n`,
  });
  const [prepare, sandbox] = ['prepare', 'sandbox'].map((name) => `packages/worker/src/sandboxes/${name}.ts`);
  expect(findImportFaults(root)).toEqual([
    `packages/worker/src/runtime/program.ts imports ${sandbox}: runtime is not above sandboxes`,
    'packages/worker/src/strange.ts: strange.ts is on no floor of test/checks/import-rules.ts',
    `files import each other: ${prepare}, ${sandbox}\n    ${prepare} → ${sandbox}\n    ${sandbox} → ${prepare}`,
  ]);
});
