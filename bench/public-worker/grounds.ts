/** Prepares the machine for each backend of oz-agent-worker. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { tarOf } from '../../packages/worker/src/sidecar/archive.ts';
import { sidecarContent } from '../../packages/worker/src/sidecar/content.ts';
import { makeNamespace, startControlPlane } from '../../packages/worker/test/kubernetes/control-plane.ts';
import { startNode } from '../../packages/worker/test/kubernetes/node.ts';
import { startFakeImageRegistry } from '../../test/fakes/image-registry.ts';
import { startTestEngine } from '../../test/support/container-engine.ts';

const root = path.resolve(import.meta.dirname, '../..');
const launcher = path.join(root, 'bin/runyard-agent');

export interface Ground {
  readonly serviceEnv?: Readonly<Record<string, string>>;
  readonly workerEnv?: Readonly<Record<string, string>>;
  /** The member `backend` of oz-agent-worker's configuration. */
  readonly backend: object;
  /** Container image of the runs. Absent: the backend uses no image. */
  readonly image?: string;
  close(): Promise<void>;
}

/**
 * Each function prepares one backend of oz-agent-worker in the folder `folder`. The folder `marks` has the same path on the machine and
 * in each run.
 */
export const grounds: Readonly<Record<string, (folder: string, marks: string) => Promise<Ground>>> = {
  direct: async (folder) => ({
    backend: {
      direct: {
        workspace_root: path.join(folder, 'workspaces'),
        oz_path: launcher,
        environment: [{ name: 'RUNYARD_DATA_DIR', value: path.join(folder, 'agent') }],
      },
    },
    close: async () => {},
  }),
  command: async (folder) => {
    const runs = path.join(folder, 'runs');
    await mkdir(runs);
    // The dispatch command starts the agent with the variables of the payload. From its own environment, the command passes on only the
    // variables of the machine's user, so it does not pass on RUNYARD_DATA_DIR. This script sets RUNYARD_DATA_DIR instead.
    const agent = path.join(folder, 'runyard-agent');
    await writeFile(agent, `#!/bin/sh\nRUNYARD_DATA_DIR=${folder}/agent exec ${launcher} "$@"\n`, { mode: 0o755 });
    return {
      backend: {
        command: {
          dispatch_command: path.join(root, 'examples/dispatch.py'),
          cancel_command: `echo "$OZ_EXECUTION_ID" >>${folder}/cancelled; kill -TERM -- "-$(cat "$RUNS_FOLDER/$OZ_EXECUTION_ID/pid")"`,
          environment: [
            { name: 'AGENT_PROGRAM', value: agent },
            { name: 'RUNS_FOLDER', value: runs },
          ],
        },
      },
      close: async () => {},
    };
  },
  docker: async (_folder, marks) => {
    const host = '172.30.77.1';
    if (existsSync('/sys/class/net/docker0')) throw new Error('docker0 exists: another container engine runs here');
    const engine = await startTestEngine({ kind: 'bridge', address: `${host}/24` });
    if (typeof engine === 'string') throw new Error(engine);
    const box = await engine.makeRoot();
    const entries = await sidecarContent({ root, busybox: '/bin/busybox', readableNode: false });
    const registry = await startFakeImageRegistry({
      'team/runyard-agent:1': { layer: await buffer(tarOf(entries)) },
      'team/box:1': { layer: execFileSync('tar', ['-C', box, '-c', '.'], { maxBuffer: 1 << 28 }) },
    });
    return {
      serviceEnv: { RUNYARD_HOST: host, RUNYARD_SIDECAR_IMAGE: `${registry.address}/team/runyard-agent:1` },
      workerEnv: { DOCKER_HOST: engine.host },
      backend: { docker: { volumes: [`${marks}:${marks}`] } },
      image: `${registry.address}/team/box:1`,
      close: async () => {
        await registry[Symbol.asyncDispose]();
        await engine[Symbol.asyncDispose]();
        execFileSync('ip', ['link', 'delete', 'docker0']);
      },
    };
  },
  kubernetes: async (_folder, marks) => {
    const programs = process.env.TEST_KUBERNETES_PROGRAMS;
    if (programs === undefined)
      throw new Error('TEST_KUBERNETES_PROGRAMS is not set: start this with bin/test-public-worker');
    const plane = await startControlPlane(programs);
    const node = await startNode(plane, programs, path.join(root, 'packages/agent/src/main.ts'));
    const namespace = 'agents';
    // The same rights as in the Role of oz-agent-worker's Helm chart.
    await makeNamespace(plane.admin, namespace, [
      { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'get', 'list', 'watch', 'delete'] },
      { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
      { apiGroups: [''], resources: ['events'], verbs: ['list'] },
    ]);
    const image = 'ghcr.io/team/box:2';
    return {
      serviceEnv: { RUNYARD_HOST: node.address, RUNYARD_SIDECAR_IMAGE: 'ghcr.io/test/agent:1' },
      backend: {
        kubernetes: {
          namespace,
          kubeconfig: plane.workerConfig,
          default_image: image,
          preflight_image: image,
          pod_template: {
            automountServiceAccountToken: false,
            volumes: [{ name: 'marks', hostPath: { path: marks } }],
            containers: [{ name: 'task', volumeMounts: [{ name: 'marks', mountPath: marks }] }],
          },
        },
      },
      image,
      close: async () => {
        await node[Symbol.asyncDispose]();
        await plane[Symbol.asyncDispose]();
      },
    };
  },
};
