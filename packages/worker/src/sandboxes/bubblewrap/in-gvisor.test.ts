import { expect, test } from 'vitest';
import { containerStart } from './in-gvisor.ts';

const limits = { memoryMb: 512, processes: 64, tmpMb: 16, diskMb: 64, openFiles: 65_536, cpus: 0 };
const folders = { top: '/state/s/1', workspace: '/state/s/1/workspace', home: '/state/s/1/home', system: '/nowhere' };

const start = () =>
  containerStart({
    gvisor: { program: '/usr/bin/runsc', platform: 'systrap' },
    view: {
      shared: ['--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin'],
      folders,
      relaySocket: '/state/s/1/relay.sock',
      runtime: '/state/runtime/1',
      limits,
    },
    command: ['/opt/runyard/node', 'agent'],
    env: { API_SECRET: 'geheim €' },
    outerEnv: { RUNYARD_SANDBOX_OWNER: 'owner' },
    limits: { nproc: 64, nofile: 1024, fileBytes: 64 },
  });

test('the environment of the run is passed to the program in the container and not to gVisor', () => {
  const { options, specification } = start();
  expect(JSON.parse(specification).process.env).toEqual(['API_SECRET=geheim €']);
  expect(options.join('\n')).not.toContain('geheim');
});

test('the start command of gVisor gets the length of the specification, because the run token follows in the same descriptor', () => {
  const { options, specification } = start();
  expect(options.join(' ')).toContain(`--setenv RUNYARD_SPECIFICATION_BYTES ${Buffer.byteLength(specification)}`);
});

test('the container contains all files of the run, and only the workspace and the home folder are writable', () => {
  const { options, specification } = start();
  const text = options.join(' ');
  for (const bind of [
    `--bind ${folders.workspace} /container/workspace`,
    `--bind ${folders.home} /container/home/agent`,
    '--ro-bind /state/s/1/relay.sock /container/run/runyard/relay.sock',
    '--ro-bind /state/runtime/1 /container/opt/runyard',
    '--ro-bind /usr /container/usr --symlink usr/bin /container/bin',
  ])
    expect(text).toContain(bind);
  const { root, mounts } = JSON.parse(specification);
  expect(root).toEqual({ path: '/container', readonly: true });
  const binds = mounts.filter(({ type }: { type: string }) => type === 'bind');
  expect(binds.map(({ destination }: { destination: string }) => destination)).toEqual(['/workspace', '/home/agent']);
});
