/**
 * Makes nodes, each with its own network namespace, address and disk. All nodes are connected by one bridge. Also makes faults of
 * their network links and disks.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, statfsSync } from 'node:fs';
import path from 'node:path';

export interface ChaosNode {
  readonly name: string;
  readonly address: string;
  /** A file system in memory. */
  readonly folder: string;
  /** Put these words in front of a command to run it in the network namespace of the node. */
  readonly enter: readonly string[];
}

/** Address at which the nodes reach the process that makes them. */
export const driverAddress = '10.77.0.1';
/** All nodes. */
export const network = '10.77.0.0/24';

const run = (program: string, ...words: string[]) => execFileSync(program, words, { stdio: 'pipe' });
const ip = (...words: string[]) => run('ip', ...words);
const ignoring = (work: () => void) => {
  try {
    work();
  } catch {
    // It was not there.
  }
};

/**
 * Makes the bridge that connects the nodes. The process must be alone in new network and mount namespaces. The namespaces end with the
 * process, and then the system removes the bridge.
 */
export function makeBridge(): void {
  mkdirSync('/run/netns', { recursive: true });
  run('mount', '-t', 'tmpfs', 'none', '/run/netns');
  ip('link', 'set', 'lo', 'up');
  ip('link', 'add', 'br0', 'type', 'bridge');
  ip('addr', 'add', `${driverAddress}/24`, 'dev', 'br0');
  ip('link', 'set', 'br0', 'up');
}

/** Makes a node with a disk of `megabytes` below `root`. `host` is the last number of its address. */
export function makeNode(root: string, name: string, host: number, megabytes: number): ChaosNode {
  const folder = path.join(root, name);
  mkdirSync(folder);
  run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0711`, 'none', folder);
  chmodSync(folder, 0o711);
  const address = `10.77.0.${host}`;
  ip('netns', 'add', name);
  ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
  ip('link', 'set', name, 'master', 'br0', 'up');
  ip('-n', name, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
  for (const link of ['lo', 'eth0']) ip('-n', name, 'link', 'set', link, 'up');
  return { name, address, folder, enter: ['nsenter', `--net=/run/netns/${name}`, '--'] };
}

const inNode = ({ enter: [program = '', ...words] }: ChaosNode, ...command: string[]) =>
  run(program, ...words, ...command);

/** Drops all packets to and from the node. No connection is closed. */
export const unplug = (node: ChaosNode): void => void ip('link', 'set', node.name, 'down');

/** Drops the packets from `peer` to the node. Packets from the node to `peer` still arrive. */
export const deafen = (node: ChaosNode, peer: ChaosNode): void =>
  void inNode(node, 'iptables', '-A', 'INPUT', '-s', peer.address, '-j', 'DROP');

/**
 * Rate of a slow link in each direction. Packets above this rate wait up to a second in a queue. In addition, one of twenty packets to
 * the node is lost.
 */
export const slowRate = '256kbit';

/** Makes the link of the node slow in both directions. */
export function slowDown(node: ChaosNode): void {
  const shape = ['root', 'tbf', 'rate', slowRate, 'burst', '8kb', 'latency', '1s'];
  run('tc', 'qdisc', 'add', 'dev', node.name, ...shape);
  inNode(node, 'tc', 'qdisc', 'add', 'dev', 'eth0', ...shape);
  inNode(
    node,
    ...['iptables', '-A', 'INPUT', '-i', 'eth0', '-m', 'statistic', '--mode', 'random'].concat(
      '--probability',
      '0.05',
      '-j',
      'DROP',
    ),
  );
}

/** Ends all faults of the node's link. */
export function mendLink(node: ChaosNode): void {
  ip('link', 'set', node.name, 'up');
  inNode(node, 'iptables', '-F', 'INPUT');
  ignoring(() => run('tc', 'qdisc', 'del', 'dev', node.name, 'root'));
  ignoring(() => inNode(node, 'tc', 'qdisc', 'del', 'dev', 'eth0', 'root'));
}

/** Fills the disk of the node by making the disk as small as its content. Returns the function that restores the size of the disk. */
export function fillDisk(node: ChaosNode): () => void {
  const { blocks, bfree, bsize } = statfsSync(node.folder);
  const resize = (count: number) => run('mount', '-o', `remount,size=${(count * bsize) / 1024}k`, node.folder);
  // The resize fails if a file has grown since `statfsSync`, so try again with more space.
  for (let spare = 0; ; spare += 16) {
    try {
      resize(statfsSync(node.folder).blocks - statfsSync(node.folder).bfree + spare);
      break;
    } catch (error) {
      if (spare > bfree) throw error;
    }
  }
  return () => void resize(blocks);
}
