/**
 * Tests clients that well-known generators make from the OpenAPI document. The clients create, read and list objects of a real
 * service.
 */
import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { installNpmPackages, type NpmPackages } from '../support/npm-packages.ts';
import { installPythonPackages, type PythonPackages } from '../support/python-packages.ts';
import type { System } from '../support/system.ts';

const run = promisify(execFile);
const source = path.join(import.meta.dirname, '../generated-clients');
const limitMs = 300_000;

/** Makes artifacts of all types, whose schemas are the variants of a union. */
const prompt = `\`\`\`sh
printf made > made.txt && report-artifact made.txt --title Made
printf png > page.png && report-artifact page.png --type SCREENSHOT
printf '# Steps' > plan.md && report-artifact plan.md --type PLAN --title Steps
report-artifact --type PULL_REQUEST --url https://github.example/o/r/pull/1 --branch topic
report-artifact --type EXTERNAL_REFERENCE --url https://tracker.example/7 --reference-type issue
\`\`\``;

/** The values that each driver reads. */
const expected = {
  state: 'SUCCEEDED',
  artifacts: ['EXTERNAL_REFERENCE', 'FILE', 'PLAN', 'PULL_REQUEST', 'SCREENSHOT'],
  listed: true,
  steps: 1,
  timeline: 'oz_run_created',
  environments: true,
  keys: true,
};

/** Returns a name in lower case and without underscores, because each generator writes names in another way. */
const bare = (name: string): string => name.replaceAll('_', '').toLowerCase();

const modulesOf = (folder: string, pattern: string): string[] =>
  globSync(pattern, { cwd: folder }).map((file) => bare(path.basename(file, '.py')));

/** Returns the names of the operations of a document, and of the schemas for which the Python client has a type. */
function namesIn(document: string): { readonly operations: string[]; readonly models: string[] } {
  const { paths, components } = JSON.parse(document) as {
    paths: Record<string, Record<string, { operationId: string }>>;
    components: { schemas: Record<string, { properties?: object; enum?: readonly string[] }> };
  };
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const types = Object.entries(components.schemas).filter(([, schema]) => schema.properties ?? schema.enum);
  return {
    operations: operations.map(({ operationId }) => bare(operationId)),
    models: types.map(([name]) => bare(name)),
  };
}

export const describeGeneratedClients = (system: System) =>
  describe('a generated client', { tags: 'long' }, () => {
    let node: NpmPackages;
    let python: PythonPackages;
    let pythonFolder: string;
    let document: string;
    const env = () => ({
      PATH: process.env.PATH ?? '',
      RUNYARD_URL: `${system.baseUrl()}/api/v1`,
      RUNYARD_API_KEY: system.key,
      PROMPT: prompt,
    });

    beforeAll(async () => {
      const answer = await fetch(`${system.baseUrl()}/api/v1/openapi.json`);
      document = await answer.text();
      pythonFolder = await mkdtemp(path.join(tmpdir(), 'runyard-generated-'));
      [node, python] = await Promise.all([
        installNpmPackages(source),
        installPythonPackages(path.join(source, 'requirements.txt'), 11),
      ]);
    }, limitMs);
    afterAll(async () => {
      if (node?.kind === 'ready') await node.remove();
      if (python?.kind === 'ready') await python.remove();
      await rm(pythonFolder, { recursive: true, force: true });
    });

    test('of openapi-python-client creates, reads and lists objects', { timeout: limitMs }, async ({ skip }) => {
      if (python.kind === 'missing') return skip(python.reason);
      const cwd = pythonFolder;
      await cp(source, cwd, { recursive: true });
      await writeFile(path.join(cwd, 'openapi.json'), document);
      await python.start(
        [
          ...['-m', 'openapi_python_client', 'generate', '--path', 'openapi.json'],
          ...['--meta', 'none', '--output-path', 'client', '--config', 'python.yaml'],
        ],
        { cwd },
      );
      // Compare the names, because the generator ends without an error even if it has left out parts of the document that it cannot read.
      const { operations, models } = namesIn(document);
      expect(modulesOf(path.join(cwd, 'client'), 'api/*/*.py')).toEqual(expect.arrayContaining(operations));
      expect(modulesOf(path.join(cwd, 'client'), 'models/*.py')).toEqual(expect.arrayContaining(models));
      const read = await python.start([path.join(cwd, 'drive.py')], { cwd, env: env() });
      expect(JSON.parse(read)).toEqual({ ...expected, environment: 'python' });
    });

    const generators = [
      {
        name: 'openapi-typescript',
        generator: 'openapi-typescript',
        arguments: ['openapi.json', '--output', 'openapi-typescript.d.ts'],
        driver: 'openapi-typescript',
      },
      {
        name: 'openapi-ts',
        generator: '@hey-api/openapi-ts',
        arguments: ['--input', 'openapi.json', '--output', 'hey-api', '--no-log-file'],
        driver: 'hey-api',
      },
    ];

    /**
     * Resolves when the clients are generated and compiled together with the programs that use them, so that the types must fit. This
     * happens once for all tests. The compiler is that of the repository, which needs a quarter of the time of the compiler that the
     * generators bring.
     */
    let compiling: Promise<void> | undefined;
    const compile = async (folder: string): Promise<void> => {
      const start = (command: string, args: readonly string[]) => run(command, [...args], { cwd: folder, env: env() });
      await writeFile(path.join(folder, 'openapi.json'), document);
      for (const each of generators) await start(path.join(folder, 'node_modules/.bin', each.name), each.arguments);
      await start(path.resolve(import.meta.dirname, '../../node_modules/.bin/tsc'), []).catch(
        (error: { stdout?: string }) => {
          throw new Error(error.stdout);
        },
      );
    };

    test.for(generators)(
      'of $generator compiles, and creates, reads and lists objects',
      { timeout: limitMs },
      async ({ driver }, { skip }) => {
        if (node.kind === 'missing') return skip(node.reason);
        compiling ??= compile(node.folder);
        await compiling;
        const { stdout } = await run(process.execPath, [path.join(node.folder, `built/drive-${driver}.js`)], {
          env: env(),
        });
        expect(JSON.parse(stdout)).toEqual({ ...expected, environment: driver });
      },
    );
  });
