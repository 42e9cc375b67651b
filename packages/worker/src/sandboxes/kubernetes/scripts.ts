/** Source texts of programs that the agent's Node runs in a pod. */
import { userFiles } from '../docker/user-files.ts';

/** `agentUser` is the uid of the agent and its commands. `placingUser` is the uid of the container that copies the agent's files. */
export const agentUser = 10001;
export const placingUser = 10002;

/** Paths in the container of the agent. */
export const places = {
  agent: '/agent',
  workspace: '/workspace',
  home: '/home/agent',
  token: '/run/runyard',
} as const;

/** Paths in the container that copies the agent's files. */
export const placing = {
  target: '/target',
  token: '/token',
  secret: '/secret',
} as const;

/**
 * The token is in a subfolder of its volume, so that the agent can remove the file. In the volume itself this is not possible: the
 * kubelet sets the sticky bit on volumes in memory, so only the owner of a file can remove the file.
 */
const tokenFolder = 'once';
const tokenFile = `${tokenFolder}/token`;

/**
 * Starts the agent in the image of the run. Opens the file with the run token and removes the file before any program of the run
 * starts. The pod starts this script of the agent and not a program of the image, because even the image's shell must not run before
 * the token is removed. First the script refuses an image in which a folder of the sandbox is below a link. If `/agent` were below a
 * link, the node would mount it at the link's target, and a command of the run might rename a folder above it. One check at the start
 * is enough, because the root file system is read-only.
 */
export const starter = `
import { openSync, realpathSync, unlinkSync } from 'node:fs';
for (const place of ${JSON.stringify([...Object.values(places), '/tmp'])}) {
  if (realpathSync(place) === place) continue;
  console.error('the image of the run is refused: ' + place + ' is below a link of the image, and the sandbox has a folder there');
  process.exit(3);
}
for (const name of Object.keys(process.env)) if (/^(?:LD_|NODE_|OPENSSL_|SSL_|GLIBC_|UV_)/.test(name)) delete process.env[name];
process.env.PATH = ['${places.agent}/commands', process.env.PATH || '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'].join(':');
const file = '${places.token}/${tokenFile}';
process.env.RUNYARD_RUN_TOKEN_FD = String(openSync(file, 'r'));
unlinkSync(file);
const { default: program } = await import('./program/main.cjs');
program.start();
`;

/**
 * Copies the agent from its own image to the volume that the container of the run sees, and copies the token to a file that the agent
 * removes. The copy of the agent belongs to another user than the agent. The user of the agent can start the copied Node but cannot
 * read its file, so no command of the run can trace the agent (docs/isolation.md). Some runtimes, such as gVisor, cannot start an unreadable
 * program; only their kernels refuse to trace a process that is not a descendant. So the script tries whether the kernel of the pod starts
 * the unreadable file. If it does not, `mayBeReadable` decides between a readable file and a failure.
 */
export const placeAgent = (mayBeReadable: boolean): string => `
const fs = require('node:fs');
const { spawnSync } = require('node:child_process');
const from = '${places.agent}';
const to = '${placing.target}';
for (const name of ['node', 'program/main.cjs']) {
  if (fs.existsSync(from + '/' + name)) continue;
  console.error('the image of the agent has no ' + from + '/' + name);
  process.exit(3);
}
// In the image, the folder is a link to the image's root, which holds more files than the agent's.
for (const entry of fs.readdirSync(from + '/', { withFileTypes: true }))
  if (entry.isFile() || ['program', 'commands', 'bin'].includes(entry.name))
    fs.cpSync(from + '/' + entry.name, to + '/' + entry.name, { recursive: true, verbatimSymlinks: true });
fs.chmodSync(to + '/node', 0o111);
const { error } = spawnSync(to + '/node', ['--version'], { env: {}, stdio: 'ignore' });
if (error?.code === 'EACCES' && ${mayBeReadable}) fs.chmodSync(to + '/node', 0o555);
else if (error) {
  console.error('the runtime of the pod cannot start a program whose file is unreadable (' + error.code + '): set RUNYARD_KUBERNETES_RUNTIME_CLASS to a RuntimeClass with gVisor or with a Linux kernel');
  process.exit(3);
}
fs.writeFileSync(to + '/start.mjs', ${JSON.stringify(starter)}, { mode: 0o644 });
fs.mkdirSync(to + '/etc');
for (const [name, text] of Object.entries(${JSON.stringify(userFiles(agentUser, agentUser))})) fs.writeFileSync(to + '/etc/' + name, text, { mode: 0o644 });
fs.mkdirSync('${placing.token}/${tokenFolder}');
fs.chmodSync('${placing.token}/${tokenFolder}', 0o777);
fs.copyFileSync('${placing.secret}/token', '${placing.token}/${tokenFile}');
fs.chmodSync('${placing.token}/${tokenFile}', 0o444);
`;
