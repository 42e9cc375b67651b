/** Writes the settings of the programs of a real node. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { stringify } from 'yaml';
import type { ControlPlane } from './control-plane.ts';

export interface NodePlaces {
  readonly folder: string;
  /** Socket of containerd. */
  readonly socket: string;
  /** Parent cgroup of all pods. */
  readonly cgroup: string;
  /** Name of the network bridge for pods, and the address of the machine on this bridge. */
  readonly bridge: string;
  readonly address: string;
}

/**
 * Writes the settings of containerd. containerd uses the fake registry at the URL `registry` in place of all other registries. `plugins`
 * is the folder of network plugins.
 */
export async function writeContainerd(
  { folder, socket, bridge, address }: NodePlaces,
  plugins: string,
  registry: string,
): Promise<void> {
  const inFolder = (...parts: string[]): string => path.join(folder, ...parts);
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  await writeFile(
    inFolder('containerd.toml'),
    `version = 2
root = "${inFolder('data')}"
state = "${inFolder('state')}"
[grpc]
address = "${socket}"
[ttrpc]
address = "${socket}.ttrpc"
[${cri}]
sandbox_image = "ghcr.io/test/pause:1"
netns_mounts_under_state_dir = true
restrict_oom_score_adj = true
[${cri}.cni]
bin_dir = "${plugins}"
conf_dir = "${inFolder('network')}"
[${cri}.registry]
config_path = "${inFolder('registries')}"
`,
  );
  const mirror = inFolder('registries', '_default');
  await mkdir(mirror, { recursive: true });
  const url = `http://${registry}`;
  await writeFile(
    path.join(mirror, 'hosts.toml'),
    `server = "${url}"\n[host."${url}"]\ncapabilities = ["pull", "resolve"]\n`,
  );
  const subnet = address.replace(/\d+$/, '0/24');
  // Routes for pods to the addresses of Services. Forwarding to the right server must be set up by the test.
  const routes = [{ dst: '10.0.0.0/24' }];
  const ipam = { type: 'host-local', ranges: [[{ subnet }]], routes, dataDir: inFolder('addresses') };
  const plugin = { type: 'bridge', bridge, isGateway: true, ipMasq: false, ipam };
  await mkdir(inFolder('network'));
  await writeFile(
    inFolder('network', '10-pods.conflist'),
    JSON.stringify({ cniVersion: '0.4.0', name: 'pods', plugins: [plugin] }),
  );
}

/** Writes the settings of the kubelet. */
export async function writeKubelet(
  plane: ControlPlane,
  { folder, socket, cgroup, address }: NodePlaces,
  port: number,
): Promise<void> {
  const settings = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address,
    port,
    healthzPort: 0,
    tlsCertFile: path.join(plane.folder, 'server.crt'),
    tlsPrivateKeyFile: path.join(plane.folder, 'server.key'),
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
    containerRuntimeEndpoint: `unix://${socket}`,
    podLogsDir: path.join(folder, 'logs'),
    cgroupDriver: 'cgroupfs',
    cgroupRoot: cgroup,
    failSwapOn: false,
    makeIPTablesUtilChains: false,
    // Sets low limits, so that the kubelet does not evict pods if the memory or the disk of the machine is nearly full.
    evictionHard: { 'memory.available': '1Mi', 'nodefs.available': '1Mi', 'imagefs.available': '1Mi' },
    imageGCHighThresholdPercent: 100,
    nodeStatusUpdateFrequency: '5s',
  };
  await writeFile(path.join(folder, 'kubelet.yaml'), stringify(settings));
}
