import { closeSync, readdirSync, readFileSync } from 'node:fs';

const closeOnExec = 0o2000000;

/**
 * Closes what whoever started this process left open by mistake: such descriptors would go on into every sandbox. Node itself
 * marks only those that follow each other without a gap. Standard streams and Node's channel to its parent stay.
 */
export function closeInheritedDescriptors(): void {
  const channel = Number(process.env.NODE_CHANNEL_FD ?? -1);
  for (const name of readdirSync('/proc/self/fd')) {
    const descriptor = Number(name);
    if (descriptor <= 2 || descriptor === channel) continue;
    try {
      const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'utf8'))?.[1];
      if (flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0) closeSync(descriptor);
    } catch {
      // The folder's own descriptor, closed by now.
    }
  }
}
