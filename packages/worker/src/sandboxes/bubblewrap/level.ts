import { readFile, stat } from 'node:fs/promises';
import type { SandboxLevel } from '@runyard/contract/worker-protocol';
import { type ProbeResult, unavailable } from '../backend-kind.ts';
import type { CgroupSearch } from '../cgroups/hierarchy.ts';
import type { SandboxError } from '../sandbox.ts';
import { insideUid } from './filesystem.ts';
import type { BubblewrapGround } from './ground.ts';
import { prepareSandbox } from './prepare.ts';

/** Runs inside the sandbox and prints facts, one `name=value` a line. Each fact is tried out, because the options of bwrap prove nothing. */
const probeScript = [
  'echo uid=$(id -u)',
  'n=0; for p in /proc/[0-9]*; do n=$((n+1)); done; echo processes=$n',
  'i=0; while read -r l; do case $l in lo:*|Inter-*|face*) ;; *) i=$((i+1));; esac; done </proc/net/dev; echo interfaces=$i',
  'while read -r k v; do case $k in CapEff:) echo capabilities=$v;; NoNewPrivs:) echo nonewprivs=$v;; esac; done </proc/self/status',
  'if command -v unshare >/dev/null; then unshare -U true 2>/dev/null && echo userns=1 || echo userns=0; else echo userns=unknown; fi',
  'h=0; for f in /root /home/*/.ssh /etc/shadow /var/lib /boot; do [ -e "$f" ] && h=1; done; echo hostfiles=$h',
  '(: >/rootfile) 2>/dev/null && echo rootwrite=1 || echo rootwrite=0',
  ': >/workspace/probe && echo workspace=1',
].join('\n');

/** Starts a small sandbox and checks from inside how well it isolates. */
export async function probeBubblewrap(ground: BubblewrapGround, cgroups: CgroupSearch): Promise<ProbeResult> {
  const failed = (...reasons: string[]): ProbeResult => unavailable('bubblewrap', ...reasons);
  let outcome: { exitCode: number; outputTail: string };
  let hostUid: number | undefined;
  try {
    const sandbox = await prepareSandbox(ground, {});
    try {
      hostUid = (await stat(sandbox.workspace)).uid;
      const running = sandbox.run(['/bin/sh', '-c', probeScript], { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' });
      const tooLong = setTimeout(() => running.kill('kill'), 10_000);
      outcome = await running.ended;
      clearTimeout(tooLong);
    } finally {
      await sandbox.dispose();
    }
  } catch (error) {
    return failed((error as SandboxError).message);
  }
  const facts = new Map(
    outcome.outputTail.split('\n').map((line) => line.split('=', 2) as [string, string | undefined]),
  );
  if (outcome.exitCode !== 0 || facts.get('workspace') !== '1') {
    return failed(await explainFailure(outcome.outputTail.trim(), outcome.exitCode));
  }
  const checks: [string, boolean, string][] = [
    ['pid-namespace', Number(facts.get('processes')) < 8, 'processes of the machine are visible inside'],
    ['no-network', facts.get('interfaces') === '0', 'a network interface of the machine is visible inside'],
    ['no-capabilities', /^0+$/.test(facts.get('capabilities') ?? ''), 'the sandbox holds capabilities'],
    ['no-new-privileges', facts.get('nonewprivs') === '1', 'setuid programs work inside'],
    ['no-user-namespaces', facts.get('userns') !== '1', 'the sandbox can make user namespaces'],
    [
      'files',
      facts.get('hostfiles') === '0' && facts.get('rootwrite') === '0',
      'files of the machine are visible inside, or its root is writable',
    ],
    ['inside-user', facts.get('uid') === String(insideUid), 'the user inside is not the expected one'],
  ];
  const broken = checks.filter(([, holds]) => !holds).map(([feature, , reason]) => `${feature}: ${reason}`);
  if (broken.length > 0) return failed(...broken);
  const features = checks.map(([feature]) => feature).filter((feature) => feature !== 'inside-user');
  const missing: SandboxLevel['missing'] = [];
  if (ground.ownUsers && hostUid !== 0) features.push('user');
  else
    missing.push({
      feature: 'user',
      reason: 'sandboxes share the worker’s user, because only root can give each one its own; run the worker as root',
    });
  if (cgroups.ok) features.push('cgroup');
  else missing.push({ feature: 'cgroup', reason: `memory is limited per process, not per sandbox: ${cgroups.reason}` });
  if (ground.disks.ok) features.push('disk-quota');
  else {
    const reason = `disk use is watched every few seconds, not limited by the kernel: ${ground.disks.reason}`;
    missing.push({ feature: 'disk-quota', reason });
  }
  missing.push({
    feature: 'kernel',
    reason: 'sandboxes share the machine’s kernel: not a boundary against exploits of it',
  });
  return { ok: true, reasons: [], level: { backend: 'bubblewrap', features, missing } };
}

const readFlag = async (file: string): Promise<string> => (await readFile(file, 'utf8').catch(() => '')).trim();

/** Returns why bwrap failed and what to do, from its output and the machine's settings. */
export async function explainFailure(output: string, exitCode: number): Promise<string> {
  const said = output === '' ? `exit code ${exitCode}` : output.split('\n').slice(-3).join('; ');
  if (/Unknown option|unknown option/.test(output)) {
    return `bubblewrap is too old (${said}): version 0.8 or newer is needed for --disable-userns`;
  }
  if (/prlimit/.test(output)) return `prlimit (package util-linux) does not work inside the sandbox: ${said}`;
  if ((await readFlag('/proc/sys/user/max_user_namespaces')) === '0') {
    return `user namespaces are switched off (${said}): run \`sysctl -w user.max_user_namespaces=15000\``;
  }
  if ((await readFlag('/proc/sys/kernel/unprivileged_userns_clone')) === '0') {
    return `user namespaces are for root only (${said}): run \`sysctl -w kernel.unprivileged_userns_clone=1\``;
  }
  if ((await readFlag('/proc/sys/kernel/apparmor_restrict_unprivileged_userns')) === '1') {
    return `AppArmor restricts user namespaces (${said}): give /usr/bin/bwrap a profile that allows \`userns\`, or run \`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\``;
  }
  const container =
    (await stat('/.dockerenv').catch(() => undefined)) ?? (await stat('/run/.containerenv').catch(() => undefined));
  if (container !== undefined) {
    return `this container does not let bubblewrap work (${said}): start it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined`;
  }
  return `bubblewrap does not work here: ${said}`;
}
