/** Test support: factories that take their definition from a private repository on a real git host. */
import { FactorySource, FactorySync, SetFactorySourceResponse } from '@runyard/contract/factories/factory-sources';
import { afterAll, beforeEach } from 'vitest';
import { startFakeGitHost } from '../../../test/fakes/git-host.ts';
import type { SourceReader } from '../src/triggers/definitions/source/reader.ts';
import { syncDueSources } from '../src/triggers/definitions/source/sync.ts';
import { type Files, filesOf, testDefinitions } from './definitions.ts';
import { startTestService } from './service.ts';

/** Returns the faults of a sync, each as one line of text. */
export const faultsOf = (sync: FactorySync) =>
  sync.errors?.map((each) => `${each.path}:${each.line}:${each.column}: ${each.message}`);

/** Starts a service and a git host for the tests of a file. Each test begins with an empty factory. */
export async function testSources() {
  const host = await startFakeGitHost({ accepts: (_name, password) => password === 'of-team' });
  const service = await startTestService({ env: { RUNYARD_CODE_HOST_URL: host.template } });
  const definitions = testDefinitions(service);
  await service.request('POST', '/code-hosts', { body: { scope: 'team', kind: 'token', token: 'of-team' } });
  afterAll(async () => {
    await service.close();
    await host.close();
  });
  const factory = { path: '' };
  beforeEach(async () => {
    factory.path = await definitions.open();
  });

  /** Replaces the branch by one commit with these files. */
  const push = (content: Files, branch = 'main') =>
    host.replace('acme', 'factories', { branch, files: filesOf(content) });
  const set = async (more: object = {}, key = service.key): Promise<SetFactorySourceResponse> => {
    const body = { repository: 'acme/factories', ...more };
    return SetFactorySourceResponse.parse(await service.ok('PUT', `${factory.path}/source`, { key, body }));
  };
  const source = async () => FactorySource.parse(await service.ok('GET', `${factory.path}/source`));
  const syncNow = async (body?: object) =>
    FactorySync.parse(await service.ok('POST', `${factory.path}/source/sync`, body ? { body } : {}));
  const going = new AbortController().signal;
  /** Runs one round of the loop in which a service process syncs due sources. `deps` replaces dependencies of this process. */
  const round = (deps: Partial<typeof service.deps> = {}) => syncDueSources({ ...service.deps, ...deps }, going);
  /** Returns a reader that reads the repository, then does `work`, and then returns the files. */
  const readerWith = (work: () => Promise<unknown>): SourceReader => {
    const { sourceReader } = service.deps;
    return {
      read: async (...given) => {
        const files = await sourceReader.read(...given);
        await work();
        return files;
      },
    };
  };
  const makeDue = () => service.deps.db.query('UPDATE factory_sources SET due_at = now()');
  return { host, service, definitions, factory, push, set, source, syncNow, round, readerWith, makeDue };
}
