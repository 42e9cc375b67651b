/**
 * A program with many readers of streams in one small process, on raw sockets. It reads commands from standard input, as lines of
 * JSON: `open` connects readers, and `report` writes the lags since the last report. Each event contains the time at which it was
 * sent, as `"sent":MILLISECONDS`.
 */
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

interface Open {
  readonly open: { readonly port: number; readonly key: string; readonly paths: readonly string[] };
}

const now = () => performance.timeOrigin + performance.now();
const sent = /"sent":(\d+(?:\.\d+)?)/g;
/**
 * Largest number of sockets that connect at the same time. More sockets at the same time could overflow the queue of the server's
 * listening socket.
 */
const atOnce = 100;

let lags: number[] = [];
let lost = 0;
const sockets = new Set<Socket>();

function openOne(port: number, key: string, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    sockets.add(socket);
    let isOpen = false;
    socket.setNoDelay();
    socket.on('data', (data: Buffer) => {
      if (!isOpen) {
        isOpen = true;
        if (data.toString('latin1', 9, 12) === '200') resolve();
        else reject(new Error(data.toString('latin1', 0, 200)));
        return;
      }
      // A heartbeat.
      if (data.length < 80) return;
      const at = now();
      for (const [, time] of data.toString('latin1').matchAll(sent)) lags.push(at - Number(time));
    });
    socket.on('error', reject);
    socket.on('close', () => {
      lost += 1;
      sockets.delete(socket);
    });
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  });
}

async function openAll({ port, key, paths }: Open['open']): Promise<void> {
  const waiting = [...paths];
  const one = async () => {
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) await openOne(port, key, path);
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as Open | { readonly report: true };
  if ('open' in command) await openAll(command.open);
  process.stdout.write(`${JSON.stringify({ open: sockets.size, lost, lags })}\n`);
  lags = [];
}
for (const socket of sockets) socket.destroy();
