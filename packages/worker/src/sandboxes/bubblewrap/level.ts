import { readFile, stat } from 'node:fs/promises';
import os from 'node:os';
import type { SandboxLevel } from '@runyard/contract/workers/worker-protocol';
import { type ProbeResult, unavailable } from '../backend-kind.ts';
import type { CgroupSearch } from '../cgroups/hierarchy.ts';
import type { SandboxError } from '../sandbox.ts';
import { seccompFilter } from '../seccomp/filter.ts';
import { insideUid } from './filesystem.ts';
import type { BubblewrapGround } from './ground.ts';
import { prepareSandbox } from './prepare.ts';
import { whyNoSystem } from './system-tree.ts';

/**
 * Script that runs inside the sandbox and prints facts about the isolation, one `name=value` on each line. The facts are measured inside
 * the sandbox, because the options that bwrap was started with do not prove that bwrap has applied them.
 */
const probeScript = [
  'echo uid=$(id -u)',
  'n=0; for p in /proc/[0-9]*; do n=$((n+1)); done; echo processes=$n',
  'i=0; while read -r l; do case $l in lo:*|Inter-*|face*) ;; *) i=$((i+1));; esac; done </proc/net/dev; echo interfaces=$i',
  'while read -r k v; do case $k in CapEff:) echo capabilities=$v;; NoNewPrivs:) echo nonewprivs=$v;; Seccomp:) echo seccomp=$v;; Seccomp_filters:) echo filters=$v;; esac; done </proc/self/status',
  'if command -v unshare >/dev/null; then unshare -U true 2>/dev/null && echo userns=1 || echo userns=0; else echo userns=unknown; fi',
  'h=0; for f in /root /home/*/.ssh /etc/shadow /var/lib /boot; do [ -e "$f" ] && h=1; done; echo hostfiles=$h',
  '(: >/rootfile) 2>/dev/null && echo rootwrite=1 || echo rootwrite=0',
  ': >/workspace/probe && echo workspace=1',
  'echo "kernel=$(uname -rv)"',
  // Asks `setpriv`, because /proc/self/status of some gVisor versions does not contain NoNewPrivs.
  'case $(setpriv --dump 2>/dev/null) in *"no_new_privs: 1"*) echo nonewprivs=1;; esac',
  'ls -d /workspace >/dev/null 2>&1 && echo ls=1 || echo ls=0',
].join('\n');

const longestMs = 20_000;

/** Starts a small sandbox and measures from inside how well the sandbox is isolated. */
export async function probeBubblewrap(ground: BubblewrapGround, cgroups: CgroupSearch): Promise<ProbeResult> {
  const { gvisor } = ground;
  const backend = gvisor === undefined ? 'bubblewrap' : 'gvisor';
  const failed = (...reasons: string[]): ProbeResult => unavailable(backend, ...reasons);
  let outcome: { exitCode: number; outputTail: string };
  let hostUid: number | undefined;
  try {
    const sandbox = await prepareSandbox(ground, {});
    try {
      hostUid = (await stat(sandbox.workspace)).uid;
      const running = sandbox.run(['/bin/sh', '-c', probeScript], { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' });
      const tooLong = setTimeout(() => running.kill('kill'), longestMs);
      outcome = await running.ended;
      clearTimeout(tooLong);
    } finally {
      await sandbox.dispose();
    }
  } catch (error) {
    return failed((error as SandboxError).message);
  }
  const isFiltered = gvisor === undefined && seccompFilter() !== undefined;
  const ownFilters = await filtersOfThisProcess();
  const facts = new Map(
    outcome.outputTail.split('\n').map((line) => line.split('=', 2) as [string, string | undefined]),
  );
  if (outcome.exitCode !== 0 || facts.get('workspace') !== '1') {
    const why = await explainFailure(outcome.outputTail.trim(), outcome.exitCode);
    return failed(
      gvisor === undefined ? why : `gVisor (${gvisor.program}) does not work in a bubblewrap sandbox: ${why}`,
    );
  }
  const checks: [string, boolean, string][] = [
    ['pid-namespace', Number(facts.get('processes')) < 8, 'processes of the machine are visible inside'],
    ['no-network', facts.get('interfaces') === '0', 'a network interface of the machine is visible inside'],
    ['no-capabilities', /^0+$/.test(facts.get('capabilities') ?? ''), 'the sandbox holds capabilities'],
    ['no-new-privileges', facts.get('nonewprivs') === '1', 'setuid programs work inside'],
    gvisor === undefined
      ? ['no-user-namespaces', facts.get('userns') !== '1', 'the sandbox can make user namespaces']
      : ['own-kernel', facts.get('kernel') !== hostKernel(), 'programs inside run on the kernel of the machine'],
    [
      'files',
      facts.get('hostfiles') === '0' && facts.get('rootwrite') === '0',
      'files of the machine are visible inside, or its root is writable',
    ],
    ...(isFiltered
      ? [
          [
            'system-calls',
            facts.get('seccomp') === '2' && Number(facts.get('filters') ?? ownFilters + 1) > ownFilters,
            'the filter of system calls is not in force',
          ] satisfies [string, boolean, string],
        ]
      : []),
    ['inside-user', facts.get('uid') === String(insideUid), 'the user inside is not the expected one'],
  ];
  const broken = checks.filter(([, holds]) => !holds).map(([feature, , reason]) => `${feature}: ${reason}`);
  if (broken.length > 0) return failed(...broken);
  const features = checks.map(([feature]) => feature).filter((feature) => feature !== 'inside-user');
  if (ground.ownUsers && hostUid !== 0) features.push('user');
  if (cgroups.ok) features.push('cgroup');
  if (cgroups.ok && cgroups.hierarchy.cpu !== undefined) features.push('cpu');
  if (gvisor === undefined && cgroups.ok && cgroups.hierarchy.freezer !== undefined) features.push('freeze');
  if (ground.disks.ok) features.push('disk-quota');
  const noSystem = gvisor === undefined ? await whyNoSystem() : 'programs run on gVisor';
  if (noSystem === undefined) features.push('debian');
  const missing = missingFeatures(
    ground,
    await readFlag('/proc/sys/fs/inotify/max_user_instances'),
    cgroups,
    features,
    facts.get('ls') === '1',
  );
  if (noSystem !== undefined)
    missing.push({ feature: 'debian', reason: `runs in environments with \`system: "debian"\` fail: ${noSystem}` });
  return { ok: true, reasons: [], level: { backend, features, missing } };
}

/**
 * Returns how many filters of system calls this process has. If the worker runs in a container, the filters of the container are among
 * them.
 */
async function filtersOfThisProcess(): Promise<number> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '');
  return Number(/^Seccomp_filters:\s+(\d+)/m.exec(status)?.[1] ?? 0);
}

/** Returns the kernel of the machine as `uname -rv` prints it. */
const hostKernel = (): string => `${os.release()} ${os.version()}`;

/** Returns the features that the sandboxes on this machine do not have. Each has the reason why it is missing. */
function missingFeatures(
  { gvisor, disks }: BubblewrapGround,
  inotifyInstances: string,
  cgroups: CgroupSearch,
  features: readonly string[],
  listsFiles: boolean,
): SandboxLevel['missing'] {
  const missing: SandboxLevel['missing'] = [];
  const add = (feature: string, reason: string) => void missing.push({ feature, reason });
  if (!features.includes('user'))
    add(
      'user',
      `sandboxes share the worker’s user, because only root can give each one its own, so one run can use up what the kernel counts for a user, such as all ${inotifyInstances} inotify instances (fs.inotify.max_user_instances); run the worker as root`,
    );
  if (!cgroups.ok) {
    const how = gvisor === undefined ? 'memory is limited per process, not per sandbox' : 'memory is not limited';
    add('cgroup', `${how}: ${cgroups.reason}`);
  }
  if (!features.includes('cpu')) {
    const reason = cgroups.ok ? 'no cgroup that the worker can make has the cpu controller' : cgroups.reason;
    add('cpu', `a sandbox can use all processors: ${reason}`);
  }
  if (!features.includes('freeze')) {
    const without = cgroups.ok ? 'the kernel has no freezer here' : cgroups.reason;
    const reason = gvisor === undefined ? without : 'the agent of a container of gVisor would stand still too';
    add('freeze', `commands of a run that waits for other runs continue: ${reason}`);
  }
  if (!disks.ok) add('disk-quota', `disk use is watched every few seconds, not limited by the kernel: ${disks.reason}`);
  if (gvisor === undefined && !features.includes('system-calls'))
    add('system-calls', `the numbers of system calls of ${process.arch} are not known, so all of them are allowed`);
  if (gvisor === undefined) {
    add('kernel', 'sandboxes share the machine’s kernel: not a boundary against exploits of it');
    return missing;
  }
  add('no-user-namespaces', 'programs can make user namespaces of gVisor’s kernel, which give no right on the machine');
  if (!listsFiles)
    add(
      'programs',
      `\`ls\` of this machine fails: ${gvisor.program} is older than the system’s programs; install a newer one (https://gvisor.dev/docs/user_guide/install)`,
    );
  return missing;
}

const readFlag = async (file: string): Promise<string> => (await readFile(file, 'utf8').catch(() => '')).trim();

/** Returns why bwrap failed and what to do. Finds the reason in the output of bwrap and in the settings of the machine. */
export async function explainFailure(output: string, exitCode: number): Promise<string> {
  const failure = output === '' ? `exit code ${exitCode}` : output.split('\n').slice(-3).join('; ');
  if (/Unknown option|unknown option/.test(output)) {
    return `bubblewrap is too old (${failure}): version 0.8 or newer is needed for --disable-userns`;
  }
  if (/ulimit/.test(output)) return `the limits of a sandbox cannot be set by its shell: ${failure}`;
  if (/prlimit/.test(output)) return `prlimit (package util-linux) does not work inside the sandbox: ${failure}`;
  if ((await readFlag('/proc/sys/user/max_user_namespaces')) === '0') {
    return `user namespaces are switched off (${failure}): run \`sysctl -w user.max_user_namespaces=15000\``;
  }
  if ((await readFlag('/proc/sys/kernel/unprivileged_userns_clone')) === '0') {
    return `user namespaces are for root only (${failure}): run \`sysctl -w kernel.unprivileged_userns_clone=1\``;
  }
  if ((await readFlag('/proc/sys/kernel/apparmor_restrict_unprivileged_userns')) === '1') {
    return `AppArmor restricts user namespaces (${failure}): give /usr/bin/bwrap a profile that allows \`userns\`, or run \`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\``;
  }
  const container =
    (await stat('/.dockerenv').catch(() => undefined)) ?? (await stat('/run/.containerenv').catch(() => undefined));
  if (container !== undefined) {
    return `this container does not let bubblewrap work (${failure}): start it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined`;
  }
  return `bubblewrap does not work here: ${failure}`;
}
