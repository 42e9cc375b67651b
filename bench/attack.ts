/**
 * A client of `attacks.ts` that sends requests as fast as it can: `node attack.ts URL KEY CONNECTIONS PIPELINED`. With `PIPELINED`
 * requests in each packet, it does not wait for the answers. It runs until its standard input ends.
 */
import net from 'node:net';

const [address = '', key = '', connections = '1', pipelined = '1'] = process.argv.slice(2);
const url = new URL(address);
const authorization = key === '' ? '' : `Authorization: Bearer ${key}\r\n`;
const request = `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n${authorization}\r\n`;
const packet = Buffer.from(request.repeat(Number(pipelined)));

function attack(): void {
  const socket = net.connect({ host: url.hostname, port: Number(url.port), noDelay: true });
  socket.on('error', () => {});
  socket.once('close', () => setTimeout(attack, 10));
  if (Number(pipelined) > 1) {
    const more = (error?: Error | null): void => void (error || socket.write(packet, more));
    socket.resume();
    more();
    return;
  }
  let rest = '';
  let left = -1;
  socket.write(packet);
  socket.setEncoding('latin1').on('data', (text: string) => {
    rest += text;
    for (;;) {
      if (left < 0) {
        const end = rest.indexOf('\r\n\r\n');
        if (end === -1) return;
        left = Number(/content-length: (\d+)/i.exec(rest.slice(0, end))?.[1] ?? 0);
        rest = rest.slice(end + 4);
      }
      if (rest.length < left) return;
      rest = rest.slice(left);
      left = -1;
      socket.write(packet);
    }
  });
}

for (let n = 0; n < Number(connections); n += 1) attack();
process.stdin.resume().once('end', () => process.exit(0));
