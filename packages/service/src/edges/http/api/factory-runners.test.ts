/** Tests runners in the definition of a factory, from the files to the assignment and task of a run. */
import { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { EnvironmentConfig } from '@runyard/contract/environments/environments';
import { beforeEach, describe, expect, test } from 'vitest';
import { baseFiles, factoryFile, testDefinitions } from '../../../../test/definitions.ts';
import { openTestService } from '../../../../test/service.ts';
import { assignmentMessage } from '../../workers/dispatcher.ts';

const service = await openTestService();
const { apply, open } = testDefinitions(service);
let path = '';
beforeEach(async () => {
  path = await open();
});

const runnerFile = (image: string, more = '') => `${more}platform:\n  linux:\n    dockerImage: ${image}\n`;
const big = 'setupCommands:\n  - corepack enable\ninstanceShape:\n  vcpus: 4\n  memoryGb: 8\n';
const files = {
  ...baseFiles,
  'factory.yaml': `${factoryFile}  runner: plain\n`,
  'runners/plain.yaml': runnerFile('node:24'),
  'runners/big.yaml': runnerFile('ghcr.io/acme/big:1', big),
};

/** The file of the foreman, which is the agent that executes all runs of this test. */
const ownRunner = { 'agents/foreman/agent.md': '---\nagentType: FOREMAN\nrunner: big\n---\n\nDivide.\n' };

const environment = async (config: EnvironmentConfig) =>
  (await service.request<{ uid: string }>('POST', '/agent/environments', { body: { config } })).body.uid;

/** Starts a run of the factory. Returns its image, its assignment and its task. */
async function start() {
  const body = { prompt: 'Look.' };
  const { body: made } = await service.request<{ run_id: string }>('POST', `${path}/runs`, { body });
  const [row] = await service.deps.db.query<{ image: string | null }>(
    'SELECT image FROM executions WHERE run_id = $1',
    [made.run_id],
  );
  // The worker of this test reports that it runs no images.
  await service.deps.db.query('UPDATE executions SET image = NULL WHERE run_id = $1', [made.run_id]);
  const assignment = await service.claimRun(made.run_id);
  const answer = await service.request('POST', '/harness-support/resolve-prompt', {
    key: assignment.runToken,
    body: {},
  });
  expect([made.run_id, answer.status]).toEqual([made.run_id, 200]);
  const { data } = assignmentMessage(assignment, []);
  return { runId: made.run_id, image: row?.image, data, task: AgentTask.parse(answer.body) };
}

describe('a runner of a definition', () => {
  test('gives runs its image, its size and its setup commands; the runner of an agent overrides the runner of the factory', async () => {
    await apply(files);
    const plain = await start();
    expect([plain.image, plain.data.instance_shape, plain.task.environment]).toEqual(['node:24', undefined, undefined]);
    await apply({ ...files, ...ownRunner });
    const review = await start();
    expect([review.image, review.data.instance_shape]).toEqual(['ghcr.io/acme/big:1', { vcpus: 4, memory_gb: 8 }]);
    expect(review.task.environment).toEqual({ config: { setup_commands: ['corepack enable'] } });
  });

  test('has priority over the environment: the image of the runner is used, and its commands run first', async () => {
    const uid = await environment({ name: 'Site', docker_image: 'node:22', setup_commands: ['npm ci'] });
    const inEnvironment = { ...files, 'factory.yaml': `${factoryFile}  environmentId: ${uid}\n` };
    await apply(inEnvironment);
    expect((await start()).image).toBe('node:22');
    await apply({ ...inEnvironment, ...ownRunner });
    const review = await start();
    expect(review.image).toBe('ghcr.io/acme/big:1');
    expect(review.task.environment).toMatchObject({ uid, config: { setup_commands: ['corepack enable', 'npm ci'] } });
  });

  test('changes with the definition for later runs only, and a rerun has the runner of the first run', async () => {
    await apply(files);
    const before = await start();
    const changes = await apply({ ...files, 'runners/plain.yaml': runnerFile('node:26') });
    expect(changes.changes).toContainEqual(
      expect.objectContaining({ kind: 'runner', name: 'plain', action: 'change' }),
    );
    expect((await start()).image).toBe('node:26');
    const { body: again } = await service.request<{ run_id: string }>('POST', `/agent/runs/${before.runId}/rerun`);
    const rows = await service.deps.db.query('SELECT image FROM executions WHERE run_id = $1', [again.run_id]);
    expect(rows).toEqual([{ image: 'node:24' }]);
  });
});

describe('a runner in the configuration of a run', () => {
  test.each([
    [{}, 'config.runner_config.docker_image'],
    [{ docker_image: 'node:24 --privileged' }, 'config.runner_config.docker_image'],
    [{ docker_image: 'node', setup_commands: [' '] }, 'config.runner_config.setup_commands.0'],
    [{ docker_image: 'node', instance_shape: { vcpus: 0, memory_gb: 1 } }, 'config.runner_config.instance_shape.vcpus'],
  ])('is refused with 400 if it is %j', async (runner_config, member) => {
    const problem = await service.problem(400, 'POST', '/agent/runs', {
      body: { prompt: 'Look.', config: { runner_config } },
    });
    expect(problem.errors?.map((error) => error.path)).toEqual([member]);
  });
});
