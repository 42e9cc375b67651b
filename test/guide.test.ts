/**
 * Runs the commands of docs/guide.md unchanged, with the Node of the system, on a service with another port and data folder. To save
 * time, the data folder already contains a database and a runtime, and the programs start from a bundle. `newcomer.test.ts` tests the
 * first start on an empty folder.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { startFakeGitHost } from './fakes/git-host.ts';
import { startFakeModels } from './fakes/models.ts';
import { newFolder } from './support/close-at-end.ts';
import { endCommands, runCommand, startCommand } from './support/command-line.ts';
import { freePort } from './support/free-port.ts';
import { giveDatabase, giveRuntime, keepRuntime } from './support/head-start.ts';
import { isLong } from './support/long.ts';
import { runyardFile } from './support/programs.ts';
import { sandboxProblem } from './support/system.ts';

const repository = path.resolve(import.meta.dirname, '..');
const page = readFileSync(path.join(repository, 'docs/guide.md'), 'utf8');

/**
 * The commands in the `sh` blocks of the page, each with the output in the `text` block below it. A command without such a block
 * prints nothing.
 */
const steps = [...page.matchAll(/^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?/gms)].map(
  ([, command = '', prints]) => ({ command, prints }),
);
const prepare = steps[0]?.command ?? '';
/** Number of commands that `bin/test` runs. `bin/test-long` runs all, and uses the language model at the end. */
const stepCount = isLong ? steps.length : 25;

/** The three `bash` blocks of the page: start Runyard, start Runyard with a language model, use this model. */
const [up = '', upWithModel = '', useModel = ''] = [...page.matchAll(/^```bash\n(.*?)^```$/gms)].map(
  ([, command = '']) => command,
);

/** The skill that the guide shows. */
const skill = /^```markdown\n(.*?)^```$/ms.exec(page)?.[1] ?? '';

/** The definition that the guide reads from a repository. */
const definition = {
  'shipping/factory.yaml': /^schemaVersion: .*?(?=^END$)/ms.exec(page)?.[0] ?? '',
  'shipping/agents/foreman/agent.md': '---\nagentType: FOREMAN\n---\n\nDivide the work.\n',
  'shipping/agents/reviewer/agent.md': '---\nagentType: REVIEW\n---\n\nReview the change.\n',
  'shipping/webhooks/alerts.yaml': 'secretName: SHIPPING_ALERTS\n',
};

const literally = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
/** Returns a pattern that matches the expected output. `…` matches any text. */
const printed = (expected: string): RegExp =>
  new RegExp(`^${expected.trim().split('…').map(literally).join('.*')}$`, 's');

/** PATH without the Node of this repository, so that commands find the Node that the user has installed. */
const systemPath = (process.env.PATH ?? '')
  .split(':')
  .filter((folder) => !folder.includes('node_modules'))
  .join(':');

let folder: string;
let env: Record<string, string>;

beforeEach(() => {
  folder = newFolder();
  env = { PATH: systemPath, RUNYARD_DATA_DIR: path.join(folder, 'data') };
});

afterEach(async () => {
  // Stop the programs only if the test has started them.
  if (existsSync(path.join(folder, 'data')))
    await runCommand([await runyardFile(), 'down', '--force'], { cwd: repository, env });
  endCommands();
});

const bash = (script: string) => runCommand(['bash', '-c', `exec 2>&1\n${script}`], { cwd: repository, env });

/** Runs a command that starts Runyard and does not end. Resolves when Runyard is ready. */
async function start(command: string, more: Record<string, string> = {}): Promise<void> {
  const dataDir = path.join(folder, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  await giveDatabase(dataDir);
  await giveRuntime(dataDir);
  const options = { cwd: repository, env: { ...env, RUNYARD_PORT: String(await freePort()), ...more } };
  const bundled = command.replace('bin/runyard', await runyardFile());
  expect(bundled).not.toBe(command);
  await startCommand(['bash', '-c', bundled], options).sees('Ctrl-C stops everything.', 150_000);
  await keepRuntime(dataDir);
}

/**
 * Returns shell functions that replace `node` and `bin/runyard`, because starts of Node would take most of the time of the test. One
 * process of the system's Node evaluates the more than a hundred scripts of `node -pe`. `bin/runyard` starts from a bundle.
 */
async function fewStarts(): Promise<string> {
  const socket = path.join(folder, 'evaluator.sock');
  const script = path.join(import.meta.dirname, 'support/evaluator.mjs');
  await startCommand(['node', script, socket], { cwd: repository, env }).sees('ready');
  // In a subshell, for example for a command in the background, `exec` replaces the shell by Node, so that `$!` is the process id of
  // Node.
  return `node() {
    if [ "$1" != -pe ] && [ "$BASHPID" != "$$" ]; then exec node "$@"; fi
    if [ "$1" != -pe ]; then command node "$@"; return; fi
    { printf '%s\\0' "$2"; cat; } | curl -sSf --unix-socket '${socket}' --data-binary @- http://node
  }
  bin/runyard() { '${await runyardFile()}' "$@"; }`;
}

describe.skipIf(sandboxProblem)(`the guide${sandboxProblem ? ` (skipped: ${sandboxProblem})` : ''}`, () => {
  test('uses the Node of the system, not the Node of this repository', async () => {
    const { output } = await bash('node -p process.execPath');
    expect(output.trim()).toMatch(/^\/(?!.*node_modules)/);
  });

  test('shows the output that its commands really print, also on another port and data folder and with a model endpoint', {
    timeout: 300_000,
  }, async () => {
    expect(steps.length).toBeGreaterThan(20);
    const codeHost = await startFakeGitHost();
    onTestFinished(codeHost.close);
    await codeHost.commit('octocat', 'Hello-World', { README: 'Hello World!\n' });
    await codeHost.commit('acme', 'handbook', { 'skills/greet/SKILL.md': skill });
    await codeHost.commit('acme', 'factories', definition);
    const models = await startFakeModels();
    onTestFinished(models.close);
    const { RUNYARD_MODEL_BASE_URL: address = '', RUNYARD_MODEL_KEY: key = '' } = models.env;
    const withAddress = upWithModel.replace(/(?<=RUNYARD_MODEL_BASE_URL=)\S+/, address);
    expect(withAddress).toContain(address);
    // Start Runyard once, with the settings of both `up` commands. This is possible because the runs of the page are runbooks even if
    // a language model is available.
    const settings = up.replace('bin/runyard up\n', '');
    expect(settings).not.toBe(up);
    await start(settings + withAddress, { RUNYARD_CODE_HOST_URL: codeHost.template, RUNYARD_MODEL_KEY: key });
    // Run all commands in one shell, like a person at a terminal, and print a mark after each step, to separate the outputs.
    const tried = steps.slice(0, stepCount);
    const commands = [...tried.map(({ command }) => command), ...(isLong ? [useModel] : [])].map(
      (each) => `${each}\nprintf '\\036'`,
    );
    const { output } = await bash([await fewStarts(), ...commands].join('\n'));
    const outputs = output.split('\x1e');
    for (const [index, { command, prints }] of tried.entries()) {
      expect.soft(outputs[index]?.trim(), command).toMatch(prints === undefined ? /^$/ : printed(prints));
    }
    expect(outputs.at(-1)).toBe('');
    if (!isLong) return;
    expect(outputs.at(-2)).toContain('SUCCEEDED');
    expect(models.requests.map(({ body }) => JSON.stringify(body)).join('\n')).toContain('haiku about queues');
  });

  test('defines a `wait_until` that gives up after a minute if its condition does not become true', async () => {
    // Replace `sleep`, so that `wait_until` makes all tries of a minute without pauses.
    const { output } = await bash(
      `unset RUNYARD_BASE_URL\n${prepare}\nsleep() { :; }\nwait_until false || echo stopped`,
    );
    expect(output).toContain('gave up after a minute: false\nstopped');
  });
});
