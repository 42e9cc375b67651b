/** Makes `/agent` of the agent's image, as a folder. */
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { makeRuntime } from '../../src/runtime/runtime.ts';
import { silentLog } from './silent-log.ts';

/** Returns the folder. `entry`: the agent's `main.ts`, or what stands in for it. */
export async function makeAgentFolder(parent: string, entry: string): Promise<string> {
  const runtime = await makeRuntime({ stateRoot: parent, entry, portableIn: '/agent', log: silentLog });
  const folder = path.join(parent, 'agent');
  await mkdir(path.join(folder, 'commands'), { recursive: true, mode: 0o755 });
  const files = await readdir(runtime, { withFileTypes: true });
  // Node and its libraries.
  for (const { name } of files.filter((file) => file.isFile()))
    await cp(path.join(runtime, name), path.join(folder, name));
  const ofAgent = (source: string) => !['node', 'cache'].includes(path.relative(path.join(runtime, 'agent'), source));
  await cp(path.join(runtime, 'agent'), path.join(folder, 'program'), { recursive: true, filter: ofAgent });
  for (const name of ['report-artifact', 'child-run', 'pull-request']) {
    const script = `#!/bin/sh\nexec /agent/node /agent/program/main.mjs ${name} "$@"\n`;
    await writeFile(path.join(folder, 'commands', name), script, { mode: 0o755 });
  }
  return folder;
}
