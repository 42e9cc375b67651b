/**
 * A cluster for network policies: an API server in memory with fixed objects, and pods that are network namespaces of this machine. The
 * policy controller of kube-router, a real network plugin, reads the objects and writes its rules into the network namespace of the
 * node. All connections of pods go through this namespace.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Labels, Resource } from './chart.ts';

/** Addresses of this machine, which runs the API server, and of the node. */
const [machine, nodeAddress, gateway] = ['10.231.78.1', '10.231.78.2', '10.231.79.1'];
const nodeName = 'node-1';
const [nodeSpace, link] = ['ry-policy-node', 'ry-policy'];

export interface PolicyPod {
  readonly name: string;
  /** If absent, the API server does not list the pod: the pod is a place outside of the cluster. */
  readonly namespace?: string;
  readonly address: string;
  readonly labels: Labels;
  /** Ports at which the pod answers. */
  readonly ports: Readonly<Record<string, number>>;
}

const ip = (...args: string[]): void => void execFileSync('ip', args, { stdio: 'pipe' });
const inSpace = (space: string, ...words: string[]): void => ip('netns', 'exec', space, ...words);
const spaceOf = (name: string): string => `ry-policy-${name}`;

/** Returns the objects that the API server lists, by their resource. */
function objectsOf(
  all: readonly PolicyPod[],
  policies: readonly Resource[],
): Readonly<Record<string, readonly object[]>> {
  const pods = all.filter(({ namespace }) => namespace !== undefined);
  const addresses = [{ type: 'InternalIP', address: nodeAddress }];
  return {
    nodes: [{ metadata: { name: nodeName }, spec: { podCIDR: '10.231.79.0/24' }, status: { addresses } }],
    namespaces: [...new Set(pods.map(({ namespace }) => namespace))].map((name) => ({
      metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
    })),
    pods: pods.map(({ name, namespace, address, labels, ports }) => ({
      metadata: { name, namespace, labels, uid: name },
      spec: {
        nodeName,
        containers: [
          {
            name,
            ports: Object.entries(ports).map(([port, containerPort]) => ({
              name: port,
              containerPort,
              protocol: 'TCP',
            })),
          },
        ],
      },
      status: { phase: 'Running', podIP: address, podIPs: [{ ip: address }], hostIP: nodeAddress },
    })),
    networkpolicies: policies.map((policy) => ({ ...policy, metadata: { namespace: 'runyard', ...policy.metadata } })),
  };
}

const kinds: Readonly<Record<string, string>> = {
  nodes: 'Node',
  namespaces: 'Namespace',
  pods: 'Pod',
  networkpolicies: 'NetworkPolicy',
  services: 'Service',
  endpoints: 'Endpoints',
  endpointslices: 'EndpointSlice',
};

/** Answers lists with the objects, and watches with a stream that never has a change. */
async function serveObjects(objects: Readonly<Record<string, readonly object[]>>): Promise<http.Server> {
  const server = http.createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://api');
    const [, resource = '', name] = /^\/apis?\/(?:[^/]+\/)?v1\/([a-z]+)(?:\/([^/]+))?$/.exec(pathname) ?? [];
    const items = (objects[resource] ?? (resource in kinds ? [] : undefined)) as
      | readonly { readonly metadata: { readonly name: string } }[]
      | undefined;
    const found = name === undefined ? undefined : items?.find(({ metadata }) => metadata.name === name);
    const [, apiVersion] = /^\/apis?\/(.*v1)\//.exec(pathname) ?? [];
    const list = { kind: `${kinds[resource]}List`, apiVersion, metadata: { resourceVersion: '1' }, items };
    response.setHeader('content-type', 'application/json');
    if (searchParams.has('watch') && !searchParams.has('sendInitialEvents')) response.writeHead(200).flushHeaders();
    else if (pathname === '/version') response.end(JSON.stringify({ major: '1', minor: '34', gitVersion: 'v1.34.2' }));
    else if (items === undefined || searchParams.has('watch') || (name !== undefined && found === undefined))
      response.writeHead(404).end(JSON.stringify({ kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404 }));
    else response.end(JSON.stringify(found ?? list));
  });
  await once(server.listen(0, machine), 'listening');
  return server;
}

export interface PolicyCluster {
  /** URL of the API server. */
  readonly api: string;
  /** Returns whether a program in the pod gets an answer from the URL. */
  reaches(pod: string, url: string): Promise<boolean>;
  /** Starts the policy controller. */
  enforce(): void;
  /** Returns the log of the policy controller. */
  log(): string;
  stop(): Promise<void>;
}

/** Starts the cluster without its policy controller. `program` is kube-router. */
export async function startPolicyCluster(
  program: string,
  pods: readonly PolicyPod[],
  policies: readonly Resource[],
): Promise<PolicyCluster> {
  const children: ChildProcess[] = [];
  let log = '';
  const spaces = [nodeSpace, ...pods.map(({ name }) => spaceOf(name))];
  const clean = (): void => {
    for (const space of spaces) spawnSync('ip', ['netns', 'del', space]);
    spawnSync('ip', ['link', 'del', link]);
  };
  clean();
  for (const space of spaces) ip('netns', 'add', space);
  ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'outside', 'netns', nodeSpace);
  ip('addr', 'add', `${machine}/24`, 'dev', link);
  ip('link', 'set', link, 'up');
  const onNode = (...words: string[]): void => inSpace(nodeSpace, ...words);
  onNode('ip', 'addr', 'add', `${nodeAddress}/24`, 'dev', 'outside');
  for (const device of ['outside', 'lo']) onNode('ip', 'link', 'set', device, 'up');
  onNode('sysctl', '-qw', 'net.ipv4.ip_forward=1');
  onNode('ip', 'route', 'add', 'default', 'via', machine);
  ip('route', 'add', '10.231.79.0/24', 'via', nodeAddress);
  for (const [index, { name, address, ports }] of pods.entries()) {
    const inPod = (...words: string[]): void => inSpace(spaceOf(name), ...words);
    const device = `pod${index}`;
    onNode('ip', 'link', 'add', device, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', spaceOf(name));
    inPod('ip', 'addr', 'add', `${address}/32`, 'dev', 'eth0');
    for (const each of ['lo', 'eth0']) inPod('ip', 'link', 'set', each, 'up');
    onNode('ip', 'link', 'set', device, 'up');
    onNode('ip', 'addr', 'add', `${gateway}/32`, 'dev', device);
    onNode('ip', 'route', 'add', `${address}/32`, 'dev', device);
    inPod('ip', 'route', 'add', gateway, 'dev', 'eth0');
    inPod('ip', 'route', 'add', 'default', 'via', gateway);
    const answer = `for (const port of ${JSON.stringify(Object.values(ports))}) require('http').createServer((_, to) => to.end()).listen(port)`;
    children.push(spawn('ip', ['netns', 'exec', spaceOf(name), process.execPath, '-e', answer], { stdio: 'ignore' }));
  }
  const server = await serveObjects(objectsOf(pods, policies));
  const api = `http://${machine}:${(server.address() as AddressInfo).port}`;
  return {
    api,
    async reaches(pod, url) {
      const words = ['netns', 'exec', spaceOf(pod), 'curl', '-s', '-m', '2', '-o', '/dev/null', url];
      const [status] = await once(spawn('ip', words, { stdio: 'ignore' }), 'exit');
      return status === 0;
    },
    enforce() {
      const flags = ['--run-firewall=true', '--run-router=false', '--run-service-proxy=false', '--health-port=20244'];
      const own = ['--master', api, '--hostname-override', nodeName, '--service-cluster-ip-range', '10.0.0.0/24'];
      const child = spawn('ip', ['netns', 'exec', nodeSpace, program, ...own, ...flags]);
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (log += piece));
      children.push(child);
    },
    log: () => log.slice(-3000),
    async stop() {
      server.closeAllConnections();
      server.close();
      const ended = children.map((child) => (child.exitCode === null ? once(child, 'exit') : undefined));
      for (const child of children) child.kill('SIGKILL');
      await Promise.all(ended);
      clean();
    },
  };
}
