import { closeSync, readdirSync, readFileSync } from 'node:fs';
import { getCACertificates } from 'node:tls';

const closeOnExec = 0o2000000;

/**
 * Closes descriptors that the parent process left open by mistake, because every sandbox would inherit them. Node itself sets close-on-exec
 * only up to the first gap in the numbers. Standard streams, Node's channel to its parent and the descriptors of `kept` stay open.
 */
export function closeInheritedDescriptors(kept: readonly number[] = []): void {
  // A thread of Node reads the file of NODE_EXTRA_CA_CERTS through a descriptor without close-on-exec. This call waits for the thread, so
  // that the descriptor is not closed while the thread uses it.
  getCACertificates('default');
  const channel = Number(process.env.NODE_CHANNEL_FD ?? -1);
  for (const name of readdirSync('/proc/self/fd')) {
    const descriptor = Number(name);
    if (descriptor <= 2 || descriptor === channel || kept.includes(descriptor)) continue;
    try {
      const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'utf8'))?.[1];
      if (flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0) closeSync(descriptor);
    } catch {
      // Ignores the descriptor with which `readdirSync` read the folder, because it is already closed.
    }
  }
}
