/** Tests that secrets of the setup reach setup commands, and nothing that comes after them. */
import { describe, expect, it, test } from 'vitest';
import { agent, ended, fake, of, sh, start } from '../test/run.ts';

const token = 'npm_kT9/setup+token=1';
const setupSecrets = [
  { name: 'NPM_TOKEN', variable: 'NPM_TOKEN', as: 'variable' as const, value: token },
  { name: 'KEY', variable: 'KEY', as: 'file' as const, value: `${'Ab3/'.repeat(30)}\nlast-line` },
];

const withSetup = (commands: readonly string[], ...scripts: string[]) => ({
  ...sh(...(scripts.length > 0 ? scripts : ['echo begun'])),
  setup_secrets: setupSecrets,
  redact: setupSecrets.map(({ value }) => value),
  environment: { uid: 'e', config: { setup_commands: [...commands] } },
});

const startSetup = async (commands: readonly string[], ...scripts: string[]) =>
  await start(withSetup(commands, ...scripts));

const steps = () => of('setup_step_finished').map(({ name }) => name);
const failure = () => fake.finished[0]?.error;

it('a secret of the setup is in the variables and files of setup commands, and the agent has neither', async () => {
  await startSetup(
    [`[ "$NPM_TOKEN" = '${token}' ] && echo used > used; wc -c < "$KEY" > size; echo "$KEY" > where`],
    'cat used size; echo "[$NPM_TOKEN$KEY]"; cat $(cat where) || true',
    'env | base64 -w0; cat /proc/[0-9]*/environ 2>/dev/null | grep -c "setup[+]token" || true',
  );
  await ended();
  const outputs = of('action').map(({ action_id }) => fake.output(action_id));
  expect(outputs[0]).toMatch(/^used\n130\n\[\]\n.*No such file/);
  expect(outputs[1]).toMatch(/\n?0\n$/);
  expect(steps().at(-1)).toMatch(/^searched \d+ files of the setup for NPM_TOKEN, KEY$/);
  expect(JSON.stringify([fake.events, fake.finished]) + agent.stderr()).not.toContain('setup+token');
});

const git = 'git -c user.name=a -c user.email=a@b.c';
describe('the run fails and names the file if the setup leaves a secret', () => {
  test.each<[string, string, RegExp]>([
    ['in .npmrc', 'echo "//registry/:_authToken=$NPM_TOKEN" > ~/.npmrc', /NPM_TOKEN in \S+\/\.npmrc\. /],
    [
      'in the configuration of git',
      'git init -q r; git -C r config http.extraHeader "Bearer $NPM_TOKEN"',
      /r\/\.git\/config/,
    ],
    [
      'in a remote address of git, url-encoded',
      'git init -q r; git -C r remote add o "https://x:npm_kT9%2Fsetup%2Btoken%3D1@h/r"',
      /r\/\.git\/config/,
    ],
    [
      'in a commit',
      `git init -q r; cd r; echo "$NPM_TOKEN" > f; git add f; ${git} commit -qm a; rm f; git reset -q`,
      /\.git\/objects\//,
    ],
    ['in the history of a shell', 'echo "npm login $NPM_TOKEN" >> ~/.bash_history', /\.bash_history/],
    ['in a packed cache', 'mkdir -p ~/.npm/_cacache; echo "$NPM_TOKEN" | gzip > ~/.npm/_cacache/x', /_cacache\/x/],
    [
      'in base64 with line breaks',
      'head -c 100 /dev/zero | cat - "$KEY" | base64 -w 20 > wrapped',
      /KEY in \S+\/wrapped/,
    ],
    ['in a link', 'ln -s "https:/$NPM_TOKEN" link', /NPM_TOKEN in \S+\/link/],
    ['in the name of a file', 'mkdir -p "d/npm_kT9"; touch "d/npm_kT9%2Fsetup%2Btoken%3D1"', /NPM_TOKEN in \S+\/d/],
    ['in a file with a strange name', 'echo "$NPM_TOKEN" > "$(printf \'a\\377b\')"', /NPM_TOKEN in \S+\/a.b/],
    [
      'in a file without permission to read',
      'echo "$NPM_TOKEN" > closed; chmod 000 closed',
      /NPM_TOKEN in \S+\/closed/,
    ],
    ['in a file with an old time', 'echo "$NPM_TOKEN" > old; touch -d 2001-01-01 old', /NPM_TOKEN in \S+\/old/],
    ['in a link to the file of the secret', 'ln "$KEY" link 2>/dev/null || cp "$KEY" link', /KEY in \S+\/link/],
    [
      'across the border of two pieces',
      'head -c 1048566 /dev/zero > big; printf %s "$NPM_TOKEN" >> big',
      /NPM_TOKEN in \S+\/big/,
    ],
  ])('%s', async (_, command, message) => {
    await startSetup([command]);
    await ended();
    expect(failure()).toMatchObject({ code: 'environment_setup_failed', message: expect.stringMatching(message) });
    expect(failure()?.message).toContain('Only setup commands may see');
    expect(of('action')).toEqual([]);
  });
});

test('the run fails if a packed file unpacks to more than the limit of the search', {
  timeout: 180_000,
  tags: 'long',
}, async () => {
  // One gigabyte of zeros, nine times in one file: a gzip file may have several members.
  await startSetup([
    'head -c 1000000000 /dev/zero | gzip -1 > one; for i in 1 2 3 4 5 6 7 8 9; do cat one; done > bomb; rm one',
  ]);
  await ended();
  expect(failure()?.message).toContain('more than 8 GB');
});

it('processes that the setup left end before the agent begins, also those that left their group', async () => {
  await startSetup(
    ['setsid sleep 987654 > /dev/null 2>&1 & setsid sh -c "exec sleep 987655" > /dev/null 2>&1 &'],
    'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n" | grep -c "98765[45]"; true',
  );
  await ended();
  expect(fake.output(of('action')[0]?.action_id ?? '')).toBe('0\n');
  expect(steps().at(-1)).toMatch(/; ended 2 processes of the setup$/);
});

it('the report of a failed setup command contains no secret, neither of a variable nor of a file', async () => {
  await startSetup(['echo "$NPM_TOKEN"; cat "$KEY"; exit 3']);
  await ended();
  expect(failure()?.message).toContain('exited with code 3');
  expect(JSON.stringify([fake.events, fake.finished])).not.toMatch(/setup\+token|Ab3\/Ab3/);
});

test('the setup does not begin if services from images run already, because they could keep a secret of the setup', async () => {
  const task = withSetup(['touch begun']);
  const services = [{ name: 'db', image: 'db:1', ready: 'true' }];
  await start({ ...task, environment: { uid: 'e', config: { ...task.environment.config, services } } });
  await ended();
  expect(failure()).toMatchObject({
    code: 'environment_setup_failed',
    message: expect.stringContaining('services with an image. In a pod, such services run during the setup'),
  });
  expect(steps()).toEqual([]);
});
