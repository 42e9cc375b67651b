/** Programs that run in a pod, as source text for the Node of the agent's image. */
import { userFiles } from '../docker/user-files.ts';

/** Ids of the user of the agent and its commands, and of the user who places the agent's files. */
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
 * The token has a folder of its own inside its volume. The kubelet sets the sticky bit on volumes in memory, so only the owner of a file
 * there can remove the file.
 */
const tokenFolder = 'once';
const tokenFile = `${tokenFolder}/token`;

/**
 * Starts the agent in the image of the run. Reads the token from its file and removes the file before any program of the run starts. This
 * script is a file of the agent, because no program of the image, not even its shell, may run earlier. The script first checks for links:
 * nodes mount folders at the targets of an image's links, so `/agent` could be in a folder whose parts a command can rename. One check at
 * the start is enough, because the root file system cannot be written.
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
 * Copies the agent from its image to the volume that the agent's container sees, and moves the token to a file that the agent removes. The
 * copy belongs to another user. The user of the agent can start the agent's Node but not read it, so no command of the run can trace the
 * agent (docs/isolation.md). `isReadable`: the agent's user can also read Node, for runtimes such as gVisor that cannot start an unreadable
 * program.
 */
export const placeAgent = (isReadable: boolean): string => `
const fs = require('node:fs');
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
fs.chmodSync(to + '/node', ${isReadable ? '0o555' : '0o111'});
fs.writeFileSync(to + '/start.mjs', ${JSON.stringify(starter)}, { mode: 0o644 });
fs.mkdirSync(to + '/etc');
for (const [name, text] of Object.entries(${JSON.stringify(userFiles(agentUser, agentUser))})) fs.writeFileSync(to + '/etc/' + name, text, { mode: 0o644 });
fs.mkdirSync('${placing.token}/${tokenFolder}');
fs.chmodSync('${placing.token}/${tokenFolder}', 0o777);
fs.copyFileSync('${placing.secret}/token', '${placing.token}/${tokenFile}');
fs.chmodSync('${placing.token}/${tokenFile}', 0o444);
`;
