/**
 * Tests the public client libraries of the model providers in runs of the harness `command`. The programs ask a model, and their code
 * contains no address and no key.
 */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withEsbuild } from '../packages/worker/src/runtime/with-esbuild.ts';
import { describeSystemWithModels } from './support/describe-system.ts';
import { installPythonPackages, type PythonPackages } from './support/python-packages.ts';

const folder = path.join(import.meta.dirname, 'model-clients');
/** The path of Python in sandboxes. */
const python = '/usr/bin/python3';

/**
 * Installs the Python packages and compiles their modules, because programs in a sandbox cannot write compiled modules to the folder
 * of the packages.
 */
async function installForSandboxes(): Promise<PythonPackages> {
  const packages = await installPythonPackages(path.join(folder, 'requirements.txt'), 11);
  if (packages.kind === 'missing') return packages;
  const versionOf = (command: string) =>
    existsSync(command) || command === 'python3' ? execFileSync(command, ['--version'], { encoding: 'utf8' }) : 'none';
  const [inside, outside] = [python, 'python3'].map((command) => versionOf(command).split('.', 2).join('.'));
  if (inside !== outside) return { kind: 'missing', reason: `${python} is ${inside}, and python3 is ${outside}` };
  if (!existsSync(path.join(packages.folder, 'litellm/__pycache__'))) {
    const env = { PYTHONPYCACHEPREFIX: '', LITELLM_LOCAL_MODEL_COST_MAP: 'True' };
    await packages.start(['-c', 'import openai, anthropic, litellm, google.genai'], { env });
  }
  return packages;
}

/** Returns another folder with the same files, because the user of a sandbox cannot enter the home folder of root. */
async function linkForSandboxes(packages: string): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'runyard-python-'));
  await chmod(made, 0o755);
  const target = path.join(made, 'packages');
  // Use hard links if both folders are on one file system. Otherwise copy the files.
  const copy = (...options: string[]) => promisify(execFile)('cp', [...options, '-T', packages, target]);
  await copy('-al').catch(() => copy('-a', '--force'));
  return target;
}

/** Bundles the program that uses the Vercel AI SDK, and returns the text of the bundle. */
async function bundleAiSdk(): Promise<string> {
  const entryPoints = [path.join(folder, 'ai-sdk.ts')];
  const banner = { js: "import { createRequire as r } from 'node:module';const require = r(import.meta.url);" };
  const options = { entryPoints, banner, bundle: true, write: false, platform: 'node', format: 'esm' } as const;
  const { outputFiles } = await withEsbuild(({ build }) => build(options));
  return outputFiles[0]?.text ?? '';
}

let packages: PythonPackages | undefined;
let linked = '';
let aiSdk = '';
beforeAll(async () => {
  [packages, aiSdk] = await Promise.all([installForSandboxes(), bundleAiSdk()]);
  if (packages.kind === 'ready') linked = await linkForSandboxes(packages.folder);
}, 900_000);
afterAll(async () => {
  if (packages?.kind === 'ready') await packages.remove();
  if (linked) await rm(path.dirname(linked), { recursive: true, force: true });
});
const options = async () => {
  const memory = { RUNYARD_SANDBOX_MEMORY_MB: '4096' };
  return { env: linked ? { ...memory, RUNYARD_HARNESS_DIR: linked } : memory };
};

describeSystemWithModels('the clients of model providers', options, (system, models) => {
  const run = async (model_id: string, command: string) => {
    models.script(() => ({ text: ['The answer ', 'is 42.'] }));
    const before = models.requests.length;
    const file = (file_name: string, text: string) => ({
      file_name,
      mime_type: 'text/plain',
      data: Buffer.from(text).toString('base64'),
    });
    const env = { PYTHONPATH: '/opt/harnesses', PYTHONDONTWRITEBYTECODE: '1', LITELLM_LOCAL_MODEL_COST_MAP: 'True' };
    const runId = await system.createRun('What is the answer?', {
      config: { model_id, harness: { type: 'command', command: ['sh', '-c', command], env } },
      attachments: [file('clients.py', await readFile(path.join(folder, 'clients.py'), 'utf8')), file('ai.mjs', aiSdk)],
    });
    const ended = await system.untilEnded(runId, 120_000);
    const answer = await fetch(`${system.baseUrl()}/api/v1/agent/runs/${runId}/transcript`, {
      headers: { authorization: `Bearer ${system.key}` },
    });
    const transcript = await answer.text();
    expect(ended.state, `${JSON.stringify(ended.status_message)}\n${transcript}`).toBe('SUCCEEDED');
    const timeline = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/timeline`));
    const requests = models.requests.slice(before);
    return { transcript, requests, timeline, cost: ended.request_usage };
  };

  const answersIn = (transcript: string) =>
    Object.fromEntries([...transcript.matchAll(/\["[^"\n]+", ?"[^"\n]*"\]/g)].map(([line]) => JSON.parse(line)));

  const is = 'The answer is 42.';
  test.each([
    [
      'anthropic/claude-opus-4-5',
      { anthropic: is, 'anthropic stream': is, 'anthropic models': 'claude-opus-4-5', 'anthropic /v1/v1': is },
    ],
    ['openai/gpt-5.2', { 'openai chat': is, 'openai models': 'gpt-5.2', 'openai responses': is }],
    ['google/gemini-2.5-pro', { 'google-genai': is, 'google-genai stream': is, 'google-genai v1': is }],
    ['local/fake-local', { 'openai chat': is, 'openai models': 'fake-local' }],
  ])(
    'the model %s gets the requests of each client, and the gateway does not change them',
    async (model_id, expected) => {
      const hasPython = packages?.kind === 'ready';
      const command = hasPython
        ? `tee q | ${python} attachments/clients.py && node attachments/ai.mjs < q`
        : 'node attachments/ai.mjs';
      const { transcript, requests, timeline } = await run(model_id, command);
      const litellm = model_id.startsWith('local/') ? {} : { litellm: is };
      expect(answersIn(transcript)).toEqual({
        ...(hasPython ? { ...expected, ...litellm } : {}),
        ai: is,
        'ai stream': is,
      });
      const generating = Object.keys({ ...answersIn(transcript) }).filter((name) => !name.endsWith(' models'));
      expect(requests.map(({ provider }) => provider)).toEqual(generating.map(() => model_id.split('/')[0]));
      expect(timeline).not.toContain('model_request_changed');
    },
    180_000,
  );

  test('the Python packages are installed, so that the tests of each model also use the Python clients', ({ skip }) => {
    if (packages?.kind !== 'ready') skip(packages?.reason);
  });
});
