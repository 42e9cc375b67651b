/**
 * Starts the agent in a container as the docker and kubernetes backends of `oz-agent-worker` do
 * (github.com/warpdotdev/oz-agent-worker, `internal/worker/docker.go` and `kubernetes.go`). First the content of the sidecar image is
 * copied to a volume. Then a container with the image of the run mounts this volume at /agent. Unlike the containers of these
 * backends, this container uses the network of the machine.
 */
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Engine } from '../../packages/worker/src/sandboxes/engine/engine.ts';

export interface FakeContainerRun {
  readonly runId: string;
  readonly serverRoot: string;
  readonly runToken: string;
  /** Image of the run's environment. */
  readonly image: string;
  /** Volume with the content of the sidecar image. */
  readonly volume: string;
  readonly backend: 'docker' | 'kubernetes';
}

export interface FakeContainer {
  readonly id: string;
  /** Resolves to the exit code of the agent. */
  readonly ended: Promise<number>;
  /** Returns the output of the container so far. */
  output(): Promise<string>;
}

/** A copy of `kubernetesSidecarMaterializationScript` in the sources of oz-agent-worker. */
const copyScript = [
  'tar',
  ...['target', 'proc', 'sys', 'dev', '.dockerenv', 'var/run/secrets', 'run/secrets'].map(
    (name) => `--exclude=./${name}`,
  ),
  '-C / -cf - . | tar --no-same-owner --no-same-permissions -C /target -xf -',
].join(' ');
/** A copy of `kubernetesTaskWrapperScript` in the sources of oz-agent-worker. */
const wrapperScript = `if [ -f "$OZ_ENVIRONMENT_FILE" ]; then
  set -a
  . "$OZ_ENVIRONMENT_FILE"
  set +a
fi

exec /agent/entrypoint.sh "$@"`;

async function create(engine: Engine, json: object): Promise<string> {
  return (await engine.call<{ Id: string }>('POST', '/containers/create', { json, answerMs: 0 })).Id;
}
const start = (engine: Engine, id: string) => engine.call('POST', `/containers/${id}/start`, { answerMs: 0 });
const wait = async (engine: Engine, id: string): Promise<number> =>
  (await engine.call<{ StatusCode: number }>('POST', `/containers/${id}/wait`, { answerMs: 0 })).StatusCode;
async function outputOf(engine: Engine, id: string): Promise<string> {
  const answer = await engine.stream('GET', `/containers/${id}/logs`, { query: { stdout: '1', stderr: '1' } });
  return Buffer.concat(await answer.toArray()).toString();
}

/** Fills a volume with the content of the sidecar image, as `copySidecarFilesystemToVolume` of the docker backend. */
export async function copySidecarByExport(engine: Engine, sidecar: string, volume: string): Promise<void> {
  const whole = await create(engine, { Image: sidecar, Cmd: ['true'] });
  const id = await create(engine, {
    Image: sidecar,
    User: 'root',
    Entrypoint: ['/bin/sh', '-c'],
    Cmd: ['tar -x -C /target'],
    StdinOnce: true,
    OpenStdin: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    HostConfig: { Binds: [`${volume}:/target`], NetworkMode: 'none' },
  });
  const { socket } = await engine.attach(id);
  await start(engine, id);
  socket.resume();
  await pipeline(
    await engine.stream('GET', `/containers/${whole}/export`, { answerMs: 0 }),
    new Writable({ write: (chunk, _, done) => void socket.write(chunk, done), final: (done) => void socket.end(done) }),
  );
  const status = await wait(engine, id);
  if (status !== 0) throw new Error(`the copy ended with ${status}: ${await outputOf(engine, id)}`);
  for (const made of [whole, id]) await engine.call('DELETE', `/containers/${made}?force=1`);
}

/** Fills a volume with the content of the sidecar image, as the init container of the kubernetes backend. */
export async function copySidecarByScript(engine: Engine, sidecar: string, volume: string): Promise<void> {
  const id = await create(engine, {
    Image: sidecar,
    User: '0',
    Entrypoint: ['/bin/sh', '-c', copyScript],
    Cmd: [],
    HostConfig: { Binds: [`${volume}:/target`], NetworkMode: 'none' },
  });
  await start(engine, id);
  const status = await wait(engine, id);
  const output = await outputOf(engine, id);
  if (status !== 0 || output !== '') throw new Error(`the copy ended with ${status}: ${output}`);
  await engine.call('DELETE', `/containers/${id}?force=1`);
}

export async function startAsContainerWorker(engine: Engine, run: FakeContainerRun): Promise<FakeContainer> {
  const { runId, serverRoot, runToken, image, volume, backend } = run;
  const args = [
    ...['agent', 'run', '--share', 'team:edit', '--task-id', runId, '--sandboxed'],
    ...['--server-root-url', serverRoot, '--computer-use', '--docker-image', image, '--idle-on-complete'],
  ];
  const workspace = `workspace-of-${runId}`;
  const id = await create(engine, {
    Image: image,
    ...(backend === 'docker'
      ? { Cmd: ['/agent/entrypoint.sh', ...args] }
      : { Entrypoint: ['/bin/sh', '-c', wrapperScript, 'oz-task'], Cmd: args }),
    Env: [
      `TASK_ID=${runId}`,
      'GIT_TERMINAL_PROMPT=0',
      'GH_PROMPT_DISABLED=1',
      `WARP_SERVER_ROOT_URL=${serverRoot}`,
      `RUNYARD_RUN_TOKEN=${runToken}`,
      ...(backend === 'docker' ? [] : ['OZ_ENVIRONMENT_FILE=/workspace/.oz-env', 'OZ_WORKSPACE_ROOT=/workspace']),
    ],
    WorkingDir: '/workspace',
    HostConfig: {
      Binds: [`${volume}:/agent:ro`, ...(backend === 'docker' ? [] : [`${workspace}:/workspace`])],
      NetworkMode: 'host',
    },
  });
  await start(engine, id);
  return { id, ended: wait(engine, id), output: () => outputOf(engine, id) };
}
