import { expect, test } from 'vitest';
import { type ContainerView, containerRequest } from './container.ts';

const view: ContainerView = {
  image: { id: 'sha256:1', env: [], volumes: [] },
  labels: { a: 'b' },
  folders: { top: '/s/1', workspace: '/s/1/workspace', home: '/s/1/home' },
  runtimeFolder: '/r',
  files: { '/etc/passwd': '/s/1/passwd' },
  hasInit: false,
  hasRelay: true,
  hasEgress: false,
  uid: 70_001,
  gid: 70_001,
  nofile: 1024,
  limits: { memoryMb: 256, processes: 64, tmpMb: 16, diskMb: 64, openFiles: 65_536, cpus: 0 },
  command: ['/opt/runyard/agent/node', 'agent'],
  env: { PATH: '/opt/runyard/bin:/usr/bin:/bin', HOME: '/home/agent' },
};
interface Request {
  readonly Env: string[];
  readonly HostConfig: { readonly Mounts: { Type: string; Source?: string; Target: string; ReadOnly: boolean }[] };
}
const request = (change: Partial<ContainerView> = {}) => containerRequest({ ...view, ...change }) as Request;

test('the container has a separate user and limits, but no additional rights, no network and no access to the engine', () => {
  expect(request()).toMatchObject({
    User: '70001:70001',
    Entrypoint: ['/opt/runyard/agent/node'],
    Cmd: ['agent'],
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      Privileged: false,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      ReadonlyRootfs: true,
      NetworkMode: 'none',
      IpcMode: 'private',
      LogConfig: { Type: 'none' },
      Memory: 256 << 20,
      MemorySwap: 256 << 20,
      PidsLimit: 65,
    },
  });
  const mounts = request().HostConfig.Mounts;
  const writable = mounts.filter(({ ReadOnly }) => !ReadOnly).map(({ Source }) => Source);
  expect(writable).toEqual(['/s/1/workspace', '/s/1/home']);
  expect(mounts.some(({ Target }) => Target.includes('docker.sock'))).toBe(false);
});

test('the request for a container limits processors only if the worker or the run does, and names a runtime only if the settings do', () => {
  expect(request().HostConfig).not.toHaveProperty('NanoCpus');
  expect(request({ limits: { ...view.limits, cpus: 2 } }).HostConfig).toMatchObject({ NanoCpus: 2e9 });
  expect(request({ vcpus: 1.5, runtime: 'runsc' }).HostConfig).toMatchObject({ NanoCpus: 1.5e9, Runtime: 'runsc' });
});

test('the container gets the variables of the image, except variables that affect the programs of the agent', () => {
  const env = [
    'JAVA_HOME=/jdk',
    'LD_PRELOAD=/evil.so',
    'NODE_OPTIONS=-r /evil',
    'OPENSSL_CONF=/e',
    'RUNYARD_RUN_TOKEN_FD=9',
    'A B=c',
    'HOME=/e',
  ];
  const found = request({ image: { ...view.image, env: [...env, 'PATH=/jdk/bin:relative:/bin'] } }).Env;
  // An entry without `=` makes the engine remove the variable of the image.
  expect(found.filter((entry) => !entry.includes('=')).sort()).toEqual(
    ['A B', 'LD_PRELOAD', 'NODE_OPTIONS', 'OPENSSL_CONF', 'RUNYARD_RUN_TOKEN_FD'].sort(),
  );
  expect(found).not.toContain('JAVA_HOME');
  expect(found).toContain('HOME=/home/agent');
  expect(found).toContain('PATH=/opt/runyard/bin:/jdk/bin:/bin:/usr/bin');
});

test('the container has an empty read-only folder in place of each volume of the image', () => {
  const { Mounts } = request({ image: { ...view.image, volumes: ['/data', '/workspace'] } }).HostConfig;
  expect(Mounts.filter(({ Type }) => Type === 'tmpfs')).toEqual([{ Type: 'tmpfs', Target: '/data', ReadOnly: true }]);
});
